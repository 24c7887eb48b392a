/* All words of gradus/parallel.h and gradus/cilk.h, where each may go wrong; prints what it computes. */
#include <gradus/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long fib(long n) {
  if (n < 2) return n;
  long x = cilk_spawn fib(n - 1);
  long y = fib(n - 2);
  cilk_sync;
  return x + y;
}

/* Two functions that call each other, a structure as result, a statement as task. */
struct pair { long sum; double most; };
static struct pair odd(const int *a, long n);
static struct pair even(const int *a, long n) {
  if (n == 0) return (struct pair){0, -1};
  if (n == 1) return (struct pair){a[0], a[0] * 0.5};
  struct pair x, y;
  gr_spawn x = odd(a, n / 2);
  y = odd(a + n / 2, n - n / 2);
  gr_sync();
  return (struct pair){x.sum + y.sum, x.most > y.most ? x.most : y.most};
}
static struct pair odd(const int *a, long n) {
  struct pair all = even(a, n > 3 ? 3 : n);
  if (n > 3) {
    struct pair rest = even(a + 3, n - 3);
    all.sum += rest.sum;
    if (rest.most > all.most) all.most = rest.most;
  }
  return all;
}

static void sorted(int *a, long n) {
  if (n < 2) return;
  int p = a[n / 2];
  long i = 0, j = n - 1;
  for (;;) {
    while (a[i] < p) i++;
    while (a[j] > p) j--;
    if (i >= j) break;
    int t = a[i]; a[i] = a[j]; a[j] = t;
    i++; j--;
  }
  long m = j + 1;
  if (m <= 0 || m >= n) m = n / 2;
  gr_scope {
    gr_spawn sorted(a, m);
    gr_spawn sorted(a + m, n - m);
  }
}

/* Tasks with memory of their own; results in an array, whose index runs on. */
static long spread(long *out, int n) {
  for (int i = 0; i < n; i++) out[i] = cilk_spawn fib(i + 3);
  for (int i = 0; i < n; i++)
    gr_spawn {
      char text[32];
      snprintf(text, sizeof text, "%d", i * i);
      out[n + i] = strtol(text, 0, 10);
    }
  gr_sync();
  long s = 0;
  for (int i = 0; i < 2 * n; i++) s = s * 7 + out[i];
  return s;
}

/* A result that is wanted before the wait, one that keeps its old value, one that is overwritten. */
static long early(long n, int c) {
  long x = 5, y = 7, z = 1;
  gr_spawn x = fib(n);
  long w = x * 2;
  if (c) gr_spawn y = fib(n + 1);
  for (int i = 0; i < 4; i++) {
    gr_spawn z = z + fib(i + 2);
    gr_sync();
  }
  gr_sync();
  return w + y * 1000 + z * 1000000;
}

/* A queens board that every child copies. */
static long queens(int n, int row, const char *board) {
  if (row == n) return 1;
  long counts[16] = {0};
  for (int column = 0; column < n; column++) {
    int free = 1;
    for (int i = 0; i < row; i++)
      if (board[i] == column || board[i] - column == row - i || column - board[i] == row - i) free = 0;
    if (!free) continue;
    gr_spawn {
      char next[16];
      memcpy(next, board, (size_t)row);
      next[row] = (char)column;
      counts[column] = queens(n, row + 1, next);
    }
  }
  gr_sync();
  long all = 0;
  for (int column = 0; column < n; column++) all += counts[column];
  return all;
}

static double loops(double *x, long n) {
  gr_for (long i = 0; i < n; i++) {
    double t[4];
    for (int k = 0; k < 4; k++) t[k] = (double)((i * 7 + k) % 13);
    x[i] = t[i % 4] + t[(i + 1) % 4];
  }
  double s = 0, most = -1;
  long count = 0;
  gr_for (long i = 0; i < n; i += 3) {
    s += x[i];
    count += 1;
    most = x[i] > most ? x[i] : most;
  }
  cilk_for (int i = 0; i < 10; i++) {
    long a, b;
    gr_spawn a = fib(i);
    b = fib(i + 1);
    gr_sync();
    x[i] = (double)(a * b);
  }
  for (int k = 0; k < 3; k++)
    gr_for (unsigned i = 0; i < 20; i++) gr_for (int j = 0; j < 5; j++) x[i * 5 + j] += i * j + k;
  return s + most * 1e6 + count;
}

/* What must run where it stands. */
static long left(const long *a, long n) {
  long at = -1;
  gr_for (long i = 0; i < n; i++) {
    if (a[i] == 13) { at = i; break; }
  }
  long h = 1;
  gr_for (long i = 0; i < n; i++) h = h * 31 + a[i];
  for (int k = 0; k < 5; k++) gr_spawn { if (k == 3) break; h += k; }
  gr_spawn if (h > 0) return h + at;
  return at;
}

/* Words whose statement is one branch, or one loop inside of theirs, and tasks with memory of their own in a loop of
 * an iteration: an optimiser makes one condition of two, and takes a loop of one iteration away. */
static long merged(long *out, int n) {
  gr_scope if (n > 3) {
    gr_spawn out[0] = fib(n + 12);
    out[1] = n;
  }
  long s = out[0] - out[1];
  gr_spawn if (s > 5) out[2] = fib(n + 10);
  gr_sync();
  gr_for (int i = 0; i < 1; i++)
    for (int j = 0; j < 40; j++) out[3] = out[3] * 3 + j;
  gr_for (int i = 0; i < 12; i++) {
    long found[4] = {0};
    for (int j = 0; j < 4; j++)
      gr_spawn {
        char text[32];
        snprintf(text, sizeof text, "%d", i * 10 + j);
        found[j] = strtol(text, 0, 10);
      }
    gr_sync();
    out[4 + i] = found[0] * found[1] + found[2] * found[3];
  }
  for (int i = 2; i < 16; i++) s = s * 7 + out[i];
  return s;
}

static void walk(long *cells, long n) {
  if (n == 0) return;
  gr_spawn cells[0] = cells[0] * 3 + n;
  walk(cells + 1, n - 1);
}

int main(void) {
  printf("%ld\n", fib(20));
  int a[1000];
  for (int i = 0; i < 1000; i++) a[i] = (i * 7919) % 1000;
  struct pair p = even(a, 1000);
  printf("%ld %g\n", p.sum, p.most);
  sorted(a, 1000);
  for (int i = 0; i < 1000; i++) if (a[i] != i) printf("unsorted at %d\n", i);
  long out[40];
  printf("%ld\n", spread(out, 20));
  printf("%ld %ld\n", early(10, 0), early(11, 1));
  printf("%ld\n", queens(7, 0, ""));
  static double x[3000];
  printf("%.15g\n", loops(x, 3000));
  double s = 0;
  for (int i = 0; i < 3000; i++) s = s * 0.99 + x[i];
  printf("%.15g\n", s);
  printf("%ld\n", left(out, 40));
  long few[16] = {0};
  printf("%ld\n", merged(few, 5));
  long cells[300];
  for (int i = 0; i < 300; i++) cells[i] = i;
  walk(cells, 300);
  long c = 0;
  for (int i = 0; i < 300; i++) c = c * 5 + cells[i];
  printf("%ld\n", c);
  return 0;
}

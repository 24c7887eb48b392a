// Regions with `if` clauses. Where the condition does not hold, there is one thread, and iterations take from each other.
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int tree(int n) {
  int a, b;
  if (n < 2) return n;
#pragma omp task shared(a)
  a = tree(n - 1);
  b = tree(n - 2);
#pragma omp taskwait
  return a + b;
}
__attribute__((noinline)) static int are_several(void) { return omp_get_num_threads() > 1; }
static long below(long n, int c) {
  long s = 0;
#pragma omp parallel for if (c) reduction(+ : s)
  for (long i = 0; i < n; i++) s += i * i % 7;
  return s;
}
static void in_order(double *a, const double *b, int n, int never) {
#pragma omp parallel for if (never)
  for (int i = 1; i < n; i++) a[i] = a[i - 1] * 0.5 + b[i];
#pragma omp parallel for if (never) schedule(static, 3)
  for (int i = n - 1; i > 0; i--) a[i - 1] += a[i] * 0.25;
#pragma omp parallel for if (never) schedule(dynamic, 3)
  for (int i = n - 1; i > 0; i--) a[i - 1] += a[i] * 0.25;
#pragma omp parallel for if (never) schedule(guided) lastprivate(never)
  for (int i = 1; i < n; i++) {
    a[i] += a[i - 1] * 0.125;
    never = i;
  }
#pragma omp parallel if (never < 0) num_threads(3)
  {
#pragma omp for schedule(static, 2) nowait
    for (int i = 1; i < n; i++) a[i] += a[i - 1] * 0.125;
#pragma omp for schedule(static, 5)
    for (int i = 1; i < n; i++) a[i] += a[i - 1] * 0.125;
  }
  printf("%.12g %.12g %.12g %d\n", a[0], a[n / 2], a[n - 1], never);
}
static void asked(int c) {
  int ranks = 0, all = 0, inside = 0, level = 0, told = 0;
#pragma omp parallel if (c) num_threads(4)
  {
#pragma omp atomic
    ranks++;
#pragma omp single
    {
      all = omp_get_num_threads();
      inside = omp_in_parallel();
      level = omp_get_level();
    }
  }
#pragma omp parallel for if (c) num_threads(2) reduction(max : told)
  for (int i = 0; i < 100; i++)
    if (are_several()) told = 1;
  printf("%d %d %d %d %d\n", ranks, all, inside, level, told);
}
static void shared(double *a, double *b, int n, int c) {
  long s = 0;
  int most = 0, first = 3;
  double last = -1, some = 0, length = 0;
#pragma omp parallel for if (c) num_threads(3) reduction(+ : s) reduction(max : most) lastprivate(last)
  for (int i = 0; i < n; i++) {
    s += i;
    if (i % 5 > most) most = i % 5;
    last = b[i];
  }
#pragma omp parallel if (c)
  {
    double own[16];
    memset(own, 0, sizeof own);
#pragma omp for firstprivate(first)
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < 16; j++) own[j] = b[i] * j;
      first = i;
      a[i] = own[first % 16];
    }
#pragma omp for schedule(static, 2)
    for (int i = 0; i < n; i++) b[i] += 1;
#pragma omp sections
    {
#pragma omp section
      s += 5;
#pragma omp section
      most += 7;
    }
#pragma omp single
    s += tree(10);
#pragma omp master
    most += 1;
  }
  int w = n % 13 + 1;
#pragma omp parallel for if (c) reduction(+ : length)
  for (int i = 0; i < n; i++) {
    double v[w];
    for (int j = 0; j < w; j++) v[j] = b[i] + j;
    length += v[i % w];
  }
#pragma omp parallel for if (c) schedule(static, 7)
  for (unsigned i = 0; i < (unsigned)n; i++) {
#pragma omp critical
    some += 1;
  }
  printf("%ld %d %g %.12g %.12g %g\n", s, most, last, a[n / 2], length, some);
}
static void nested(int n, int c) {
  long all = 0, inside = 0;
#pragma omp parallel for reduction(+ : all) if (n > 3)
  for (int i = 0; i < 8; i++) all += below(i * 100, c);
  omp_set_max_active_levels(2);
#pragma omp parallel reduction(+ : inside) if (c) num_threads(2)
  {
#pragma omp for
    for (int i = 0; i < 8; i++) {
      long z = 0;
#pragma omp parallel for if (i % 2) reduction(+ : z) num_threads(3)
      for (int j = 0; j < 50 * i; j++) z += j % 3;
#pragma omp parallel if (!c) reduction(+ : z) num_threads(3)
      {
#pragma omp for
        for (int j = 0; j < 30 * i; j++) z += j % 5;
      }
      inside += z;
    }
  }
  omp_set_max_active_levels(1);
  printf("%ld %ld\n", all, inside);
}
int main(int count, char **words) {
  int n = atoi(words[1]);
  double *a = calloc(n, 8), *b = calloc(n, 8), sum = 0;
  for (int c = 0; c < 2; c++) {
    for (int i = 0; i < n; i++) {
      b[i] = i % 11 * 0.25;
      a[i] = 1;
    }
    in_order(a, b, n, c && n < 0);
    asked(c);
    shared(a, b, n, c);
    nested(n, c);
    int turn = 0;
    for (int r = 0; r < 6; r++) {
#pragma omp parallel for if (turn % 2) reduction(+ : sum)
      for (int i = 0; i < n; i++) {
        sum += b[i];
        if (i == 0) turn++;
      }
    }
    printf("%d %.12g\n", turn, sum);
  }
  return 0;
}

// merge sort whose merges are recursive too
#include "page.h"

static int before(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

static void merge(const int *a, long na, const int *b, long nb, int *out) {
  if (na < nb) {
    const int *t = a; a = b; b = t;
    long n = na; na = nb; nb = n;
  }
  if (na + nb < 1024) {
    long i = 0, j = 0;
    while (i < na && j < nb) *out++ = a[i] <= b[j] ? a[i++] : b[j++];
    while (i < na) *out++ = a[i++];
    while (j < nb) *out++ = b[j++];
    return;
  }
  TASKS;
  long half = na / 2, lo = 0, hi = nb;
  while (lo < hi) {
    long middle = (lo + hi) / 2;
    if (b[middle] < a[half]) lo = middle + 1; else hi = middle;
  }
  SPAWN(merge(a, half, b, lo, out));
  merge(a + half, na - half, b + lo, nb - lo, out + half + lo);
  SYNC;
}

static void sort(int *a, int *t, long n) {
  if (n < 512) {
    qsort(a, n, sizeof *a, before);
    return;
  }
  TASKS;
  long q = n / 4;
  SPAWN(sort(a, t, q));
  SPAWN(sort(a + q, t + q, q));
  SPAWN(sort(a + 2 * q, t + 2 * q, q));
  sort(a + 3 * q, t + 3 * q, n - 3 * q);
  SYNC;
  SPAWN(merge(a, q, a + q, q, t));
  merge(a + 2 * q, q, a + 3 * q, n - 3 * q, t + 2 * q);
  SYNC;
  merge(t, 2 * q, t + 2 * q, n - 2 * q, a);
}

int main(void) {
  long n = 500000;
  int *given = (int *)malloc(n * sizeof *given), *a = (int *)malloc(n * sizeof *a), *t = (int *)malloc(n * sizeof *t);
  for (long i = 0; i < n; i++) given[i] = (int)(chance() * 1e9);
  BENCH("cilksort", memcpy(a, given, n * sizeof *a), sort(a, t, n));
  unsigned h = 0;
  for (long i = 0; i < n; i++) h = h * 31 + (unsigned)a[i];
  for (long i = 1; i < n; i++) if (a[i - 1] > a[i]) h = 0;
  printf("%u\n", h);
}

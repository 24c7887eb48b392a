// factors of a matrix by blocks
#include "page.h"

enum { SIDE = 16 };

static void factor(double *a, long s) {
  for (int k = 0; k < SIDE; k++)
    for (int i = k + 1; i < SIDE; i++) {
      double f = a[i * s + k] /= a[k * s + k];
      for (int j = k + 1; j < SIDE; j++) a[i * s + j] -= f * a[k * s + j];
    }
}

static void lower(const double *l, double *b, long s) {
  for (int k = 0; k < SIDE; k++)
    for (int i = k + 1; i < SIDE; i++)
      for (int j = 0; j < SIDE; j++) b[i * s + j] -= l[i * s + k] * b[k * s + j];
}

static void upper(const double *u, double *b, long s) {
  for (int i = 0; i < SIDE; i++)
    for (int k = 0; k < SIDE; k++) {
      b[i * s + k] /= u[k * s + k];
      for (int j = k + 1; j < SIDE; j++) b[i * s + j] -= b[i * s + k] * u[k * s + j];
    }
}

static void less(const double *a, const double *b, double *c, long s) {
  for (int i = 0; i < SIDE; i++)
    for (int k = 0; k < SIDE; k++)
      for (int j = 0; j < SIDE; j++) c[i * s + j] -= a[i * s + k] * b[k * s + j];
}

/* c -= a · b for n by m blocks, b one row of them and a one column. */
static void update(const double *a, const double *b, double *c, long n, long m, long s) {
  if (n == 1 && m == 1) {
    less(a, b, c, s);
  } else if (n >= m) {
    TASKS;
    long h = n / 2;
    SPAWN(update(a, b, c, h, m, s));
    update(a + h * SIDE * s, b, c + h * SIDE * s, n - h, m, s);
    SYNC;
  } else {
    TASKS;
    long h = m / 2;
    SPAWN(update(a, b, c, n, h, s));
    update(a, b + h * SIDE, c + h * SIDE, n, m - h, s);
    SYNC;
  }
}

static void lu(double *a, long blocks, long s) {
  for (long k = 0; k < blocks; k++) {
    double *d = a + k * SIDE * (s + 1);
    long rest = blocks - k - 1;
    factor(d, s);
    LOOP(i, 1, rest + 1, {
      lower(d, d + i * SIDE, s);
      upper(d, d + i * SIDE * s, s);
    });
    if (rest > 0) update(d + SIDE * s, d + SIDE, d + SIDE * (s + 1), rest, rest, s);
  }
}

int main(void) {
  long n = 384;
  double *given = numbers(n * n), *a = (double *)malloc(n * n * sizeof *a);
  for (long i = 0; i < n; i++) given[i * n + i] += n;
  BENCH("lu", memcpy(a, given, n * n * sizeof *a), lu(a, n / SIDE, n));
  double sum = 0;
  for (long i = 0; i < n * n; i++) sum = sum * 0.999 + a[i];
  printf("%.12g\n", sum);
}

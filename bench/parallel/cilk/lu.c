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

/* c -= a · b for n by m blocks, with k of them in each row of a. */
static void update(const double *a, const double *b, double *c, long n, long m, long k, long s) {
  if (n == 1 && m == 1) {
    for (long i = 0; i < k; i++) less(a + i * SIDE, b + i * SIDE * s, c, s);
  } else if (n >= m) {
    TASKS;
    long h = n / 2;
    SPAWN(update(a, b, c, h, m, k, s));
    update(a + h * SIDE * s, b, c + h * SIDE * s, n - h, m, k, s);
    SYNC;
  } else {
    TASKS;
    long h = m / 2;
    SPAWN(update(a, b, c, n, h, k, s));
    update(a, b + h * SIDE, c + h * SIDE, n, m - h, k, s);
    SYNC;
  }
}

/* Solves l · x = b into b: n by n blocks of l, n by m of b. Columns are each other's affair. */
static void lowers(const double *l, double *b, long n, long m, long s) {
  if (m > 1) {
    TASKS;
    long h = m / 2;
    SPAWN(lowers(l, b, n, h, s));
    lowers(l, b + h * SIDE, n, m - h, s);
    SYNC;
  } else {
    for (long i = 0; i < n; i++) {
      for (long k = 0; k < i; k++) less(l + (i * s + k) * SIDE, b + k * SIDE * s, b + i * SIDE * s, s);
      lower(l + i * SIDE * (s + 1), b + i * SIDE * s, s);
    }
  }
}

/* Solves x · u = b into b: n by n blocks of u, m by n of b. So are rows. */
static void uppers(const double *u, double *b, long n, long m, long s) {
  if (m > 1) {
    TASKS;
    long h = m / 2;
    SPAWN(uppers(u, b, n, h, s));
    uppers(u, b + h * SIDE * s, n, m - h, s);
    SYNC;
  } else {
    for (long i = 0; i < n; i++) {
      for (long k = 0; k < i; k++) less(b + k * SIDE, u + (k * s + i) * SIDE, b + i * SIDE, s);
      upper(u + i * SIDE * (s + 1), b + i * SIDE, s);
    }
  }
}

static void lu(double *a, long n, long s) {
  if (n == 1) {
    factor(a, s);
    return;
  }
  TASKS;
  long h = n / 2;
  double *right = a + h * SIDE, *below = a + h * SIDE * s, *rest = a + h * SIDE * (s + 1);
  lu(a, h, s);
  SPAWN(lowers(a, right, h, n - h, s));
  uppers(a, below, h, n - h, s);
  SYNC;
  update(below, right, rest, n - h, n - h, h, s);
  lu(rest, n - h, s);
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

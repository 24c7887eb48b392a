// Strassen's seven products
#include "page.h"

static void plain(long n, const double *a, long sa, const double *b, long sb, double *c) {
  memset(c, 0, n * n * sizeof *c);
  for (long i = 0; i < n; i++)
    for (long k = 0; k < n; k++)
      for (long j = 0; j < n; j++) c[i * n + j] += a[i * sa + k] * b[k * sb + j];
}

static void sum(long n, const double *a, const double *b, long s, double sign, double *c) {
  for (long i = 0; i < n; i++)
    for (long j = 0; j < n; j++) c[i * n + j] = a[i * s + j] + sign * b[i * s + j];
}

static void product(long n, const double *a, long sa, const double *b, long sb, double *c) {
  if (n <= 64) {
    plain(n, a, sa, b, sb, c);
    return;
  }
  TASKS;
  long h = n / 2, q = h * h;
  const double *a12 = a + h, *a21 = a + h * sa, *a22 = a21 + h;
  const double *b12 = b + h, *b21 = b + h * sb, *b22 = b21 + h;
  double *m = (double *)malloc(17 * q * sizeof *m), *s = m + 7 * q;
  sum(h, a, a22, sa, 1, s);
  sum(h, b, b22, sb, 1, s + q);
  sum(h, a21, a22, sa, 1, s + 2 * q);
  sum(h, b12, b22, sb, -1, s + 3 * q);
  sum(h, b21, b, sb, -1, s + 4 * q);
  sum(h, a, a12, sa, 1, s + 5 * q);
  sum(h, a21, a, sa, -1, s + 6 * q);
  sum(h, b, b12, sb, 1, s + 7 * q);
  sum(h, a12, a22, sa, -1, s + 8 * q);
  sum(h, b21, b22, sb, 1, s + 9 * q);
  SPAWN(product(h, s, h, s + q, h, m));
  SPAWN(product(h, s + 2 * q, h, b, sb, m + q));
  SPAWN(product(h, a, sa, s + 3 * q, h, m + 2 * q));
  SPAWN(product(h, a22, sa, s + 4 * q, h, m + 3 * q));
  SPAWN(product(h, s + 5 * q, h, b22, sb, m + 4 * q));
  SPAWN(product(h, s + 6 * q, h, s + 7 * q, h, m + 5 * q));
  product(h, s + 8 * q, h, s + 9 * q, h, m + 6 * q);
  SYNC;
  for (long i = 0; i < h; i++)
    for (long j = 0; j < h; j++) {
      double *p = m + i * h + j;
      c[i * n + j] = p[0] + p[3 * q] - p[4 * q] + p[6 * q];
      c[i * n + j + h] = p[2 * q] + p[4 * q];
      c[(i + h) * n + j] = p[q] + p[3 * q];
      c[(i + h) * n + j + h] = p[0] - p[q] + p[2 * q] + p[5 * q];
    }
  free(m);
}

int main(void) {
  long n = 512;
  double *a = numbers(n * n), *b = numbers(n * n), *c = (double *)malloc(n * n * sizeof *c);
  BENCH("strassen", , product(n, a, n, b, n, c));
  double s = 0;
  for (long i = 0; i < n * n; i++) s = s * 0.999 + c[i];
  printf("%.12g\n", s);
}

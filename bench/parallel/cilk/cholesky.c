// Cholesky's factor by halves
#include "page.h"

/* c -= a · b', the lower triangle only where `half`. */
static void rank(const double *a, const double *b, double *c, long n, long m, long k, long s, int half) {
  if (n <= 32 && m <= 32) {
    for (long i = 0; i < n; i++)
      for (long j = 0; j < (half ? i + 1 : m); j++) {
        double sum = 0;
        for (long l = 0; l < k; l++) sum += a[i * s + l] * b[j * s + l];
        c[i * s + j] -= sum;
      }
    return;
  }
  TASKS;
  long h = n / 2, w = half ? h : m / 2;
  SPAWN(rank(a, b, c, h, w, k, s, half));
  if (!half) SPAWN(rank(a, b + w * s, c + w, h, m - w, k, s, 0));
  SPAWN(rank(a + h * s, b, c + h * s, n - h, w, k, s, 0));
  rank(a + h * s, b + w * s, c + h * s + w, n - h, m - w, k, s, half);
  SYNC;
}

/* b = b · l'⁻¹ for n rows. */
static void solve(const double *l, double *b, long n, long k, long s) {
  if (n > 16) {
    TASKS;
    SPAWN(solve(l, b, n / 2, k, s));
    solve(l, b + n / 2 * s, n - n / 2, k, s);
    SYNC;
    return;
  }
  for (long i = 0; i < n; i++)
    for (long j = 0; j < k; j++) {
      double sum = b[i * s + j];
      for (long m = 0; m < j; m++) sum -= b[i * s + m] * l[j * s + m];
      b[i * s + j] = sum / l[j * s + j];
    }
}

static void cholesky(double *a, long n, long s) {
  if (n <= 16) {
    for (long j = 0; j < n; j++) {
      for (long k = 0; k < j; k++) a[j * s + j] -= a[j * s + k] * a[j * s + k];
      a[j * s + j] = sqrt(a[j * s + j]);
      for (long i = j + 1; i < n; i++) {
        for (long k = 0; k < j; k++) a[i * s + j] -= a[i * s + k] * a[j * s + k];
        a[i * s + j] /= a[j * s + j];
      }
    }
    return;
  }
  long h = n / 2;
  cholesky(a, h, s);
  solve(a, a + h * s, n - h, h, s);
  rank(a + h * s, a + h * s, a + h * s + h, n - h, n - h, h, s, 1);
  cholesky(a + h * s + h, n - h, s);
}

int main(void) {
  long n = 512;
  double *given = numbers(n * n), *a = (double *)malloc(n * n * sizeof *a);
  for (long i = 0; i < n; i++) given[i * n + i] += n;
  BENCH("cholesky", memcpy(a, given, n * n * sizeof *a), cholesky(a, n, n));
  double sum = 0;
  for (long i = 0; i < n; i++) for (long j = 0; j <= i; j++) sum = sum * 0.999 + a[i * n + j];
  printf("%.12g\n", sum);
}

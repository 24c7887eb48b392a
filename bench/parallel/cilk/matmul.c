// a product of matrices by halves of the longest side
#include "page.h"

static void product(const double *a, const double *b, double *c, long m, long n, long k, long s) {
  if (m <= 32 && n <= 32 && k <= 32) {
    for (long i = 0; i < m; i++)
      for (long l = 0; l < k; l++)
        for (long j = 0; j < n; j++) c[i * s + j] += a[i * s + l] * b[l * s + j];
  } else if (m >= n && m >= k) {
    TASKS;
    SPAWN(product(a, b, c, m / 2, n, k, s));
    product(a + m / 2 * s, b, c + m / 2 * s, m - m / 2, n, k, s);
    SYNC;
  } else if (n >= k) {
    TASKS;
    SPAWN(product(a, b, c, m, n / 2, k, s));
    product(a, b + n / 2, c + n / 2, m, n - n / 2, k, s);
    SYNC;
  } else {
    product(a, b, c, m, n, k / 2, s);
    product(a + k / 2, b + k / 2 * s, c, m, n, k - k / 2, s);
  }
}

int main(void) {
  long n = 384;
  double *a = numbers(n * n), *b = numbers(n * n), *c = (double *)calloc(n * n, sizeof *c);
  BENCH("matmul", memset(c, 0, n * n * sizeof *c), product(a, b, c, n, n, n, n));
  double s = 0;
  for (long i = 0; i < n * n; i++) s = s * 0.999 + c[i];
  printf("%.12g\n", s);
}

// heat on a plate: halves of the columns in every step
#include "page.h"

static void step(const double *old, double *now, long lo, long hi, long m) {
  if (hi - lo > 16) {
    TASKS;
    long middle = (lo + hi) / 2;
    SPAWN(step(old, now, lo, middle, m));
    step(old, now, middle, hi, m);
    SYNC;
    return;
  }
  for (long i = lo; i < hi; i++)
    for (long j = 1; j < m - 1; j++) {
      const double *p = old + i * m + j;
      now[i * m + j] = p[0] + 0.1 * (p[1] + p[-1] - 2 * p[0]) + 0.1 * (p[m] + p[-m] - 2 * p[0]);
    }
}

int main(void) {
  long n = 512, m = 256;
  double *a = numbers(n * m), *b = (double *)malloc(n * m * sizeof *b);
  memcpy(b, a, n * m * sizeof *b);
  BENCH("heat", , for (int t = 0; t < 50; t++) {
    step(a, b, 1, n - 1, m);
    step(b, a, 1, n - 1, m);
  });
  double s = 0;
  for (long i = 0; i < n * m; i++) s = s * 0.999 + a[i];
  printf("%.12g\n", s);
}

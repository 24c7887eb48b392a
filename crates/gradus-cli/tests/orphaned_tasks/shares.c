// Functions that share the work of whoever calls them, and begin regions of their own.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#define N 1000
static double a[N], b[N];
static int met[N];
__attribute__((noinline)) void both(double *x, const double *y, int n, double *total) {
#pragma omp for schedule(static, 3)
  for (int i = 0; i < n; i++) {
    x[i] += 2 * y[i];
#pragma omp atomic
    met[i]++;
  }
#pragma omp single
  {
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < n; i++) s += x[i];
    *total += s;
  }
#pragma omp for reduction(+ : total[0]) schedule(dynamic, 7)
  for (int i = 0; i < n; i++) total[0] += y[i];
#pragma omp master
  {
#pragma omp parallel num_threads(3) if (n > 10)
    {
#pragma omp critical
      total[1] += omp_get_num_threads() > 0;
    }
  }
#pragma omp barrier
}
int main(void) {
  double total[2] = {0, 0};
  for (int i = 0; i < N; i++) a[i] = i, b[i] = i % 7;
  both(a, b, N, total);
#pragma omp parallel
  both(a, b, N, total);
  int twice = 1;
  for (int i = 0; i < N; i++) twice &= met[i] == 2;
  printf("%d %g %d\n", twice, total[0], total[1] >= 4);
}

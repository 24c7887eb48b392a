#include <stdint.h>
#include <stdlib.h>
double f(double *x, int n) {
  double *b = malloc(n * sizeof *b);
  volatile uint64_t keep = (uint64_t)(uintptr_t)b << 16 | 3;
  double *p = (double *)(intptr_t)((int64_t)keep >> 16);
  double s = 0;
  for (int i = 0; i < n; i++) p[i] = x[i] * x[i];
  for (int i = 0; i < n; i++) s += b[i];
  free(b);
  return s;
}

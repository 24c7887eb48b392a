#include <stdint.h>
#include <stdlib.h>
double f(double *x, int n) {
  double *b = malloc(n * sizeof *b);
  volatile uint32_t lo = (uint32_t)(uintptr_t)b, hi = (uint32_t)((uintptr_t)b >> 32);
  double *p = (double *)((uintptr_t)lo | (uintptr_t)hi << 32);
  double s = 0;
  for (int i = 0; i < n; i++) p[i] = x[i] * x[i];
  for (int i = 0; i < n; i++) s += b[i];
  free(b);
  return s;
}

#include <stdint.h>
#include <stdlib.h>
double f(double *x, int n) {
  double *b = malloc(n * sizeof *b);
  volatile union { uint32_t h[2]; double *p; } u;
  u.h[0] = (uint32_t)(uintptr_t)b; u.h[1] = (uint32_t)((uintptr_t)b >> 32);
  double *p = u.p;
  double s = 0;
  for (int i = 0; i < n; i++) p[i] = x[i] * x[i];
  for (int i = 0; i < n; i++) s += b[i];
  free(b);
  return s;
}

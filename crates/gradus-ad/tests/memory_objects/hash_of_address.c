#include <stdint.h>
#include <stdlib.h>
static unsigned slot(const void *p) { uintptr_t v = (uintptr_t)p; return (unsigned)(v >> 4 ^ v >> 9) & 7; }
double g(double *x, int n) {
  double *table[8] = {0}, *b = malloc(n * sizeof *b);
  table[slot(b)] = b;
  double *p = table[slot(b)];
  double s = 0;
  for (int i = 0; i < n; i++) p[i] = x[i] * x[i];
  for (int i = 0; i < n; i++) s += b[i];
  free(b);
  return s;
}

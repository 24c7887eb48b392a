#include <stdint.h>
#include <stdlib.h>
double f(double *x, int n) {
  double *b = malloc(n * sizeof *b), *p;
  volatile unsigned char *to = (volatile unsigned char *)&p, *from = (volatile unsigned char *)&b;
  for (unsigned i = 0; i < sizeof p; i++) to[i] = from[i];
  double s = 0;
  for (int i = 0; i < n; i++) p[i] = x[i] * x[i];
  for (int i = 0; i < n; i++) s += b[i];
  free(b);
  return s;
}

/* Bits of an address decide where a vector loop begins. */
#include <stdlib.h>
#include <string.h>
typedef struct { double gain[4]; double *data; long rows; } cache;
__attribute__((noinline)) static long least(long a, long b) { return a < b ? a : b; }
__attribute__((noinline)) static double sum(const double *from, long rows) {
  long start = least((unsigned long)from >> 3 & 1, rows); /* 0 or 1, never an address */
  double total = 0;
  for (long i = 0; i < rows; i++)
    total += from[i] * from[i < start ? i : start];
  return total;
}
__attribute__((noinline)) static double sum_gain(const cache *c) {
  long start = least((unsigned long)c->gain >> 3 & 1, 4);
  double total = 0;
  for (long i = 0; i < 4; i++)
    total += c->gain[i] * c->gain[i < start ? i : start];
  return total;
}
double g(double *x, int n) {
  cache *c = calloc(1, sizeof *c);
  c->rows = n;
  c->data = malloc(n * sizeof(double));
  memcpy(c->data, x, c->rows * sizeof(double)); /* refused here */
  for (int i = 0; i < 4; i++)
    c->gain[i] = x[0] * i;
  double total = sum(c->data, c->rows) + sum_gain(c);
  free(c->data);
  free(c);
  return total;
}

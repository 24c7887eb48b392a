/* Index arrays and values, reached through one parameter at several offsets. */
#include <stdlib.h>
typedef struct { int *at; long count; } permutation;
typedef struct { permutation p, inverse; double *value; long count; int *row; long size; } solver;
__attribute__((noinline)) static void permute(const permutation *p, const double *from, double *to) {
  for (long i = 0; i < p->count; i++)
    to[p->at[i]] = from[i];
}
__attribute__((noinline)) static void build(solver *s, const double *x, int n) {
  s->p.count = s->inverse.count = s->count = s->size = n;
  s->p.at = malloc(n * sizeof(int));
  s->inverse.at = malloc(n * sizeof(int));
  s->value = malloc(n * sizeof(double));
  s->row = malloc(n * sizeof(int));
  for (int i = 0; i < n; i++) {
    s->p.at[i] = s->inverse.at[i] = n - 1 - i; /* refused here, or in the next lines */
    s->row[i] = 0;
    s->row[i]++;
    s->value[i] = x[i] * x[i];
  }
}
double g(double *x, int n) {
  double b[64], c[64];
  solver *s = malloc(sizeof *s);
  build(s, x, n);
  permute(&s->p, x, b);
  for (int i = 0; i < n; i++)
    b[i] /= s->value[i] * s->row[i];
  permute(&s->inverse, b, c);
  free(s->p.at);
  free(s->inverse.at);
  free(s->value);
  free(s->row);
  free(s);
  return c[0] + 2 * c[n - 1];
}

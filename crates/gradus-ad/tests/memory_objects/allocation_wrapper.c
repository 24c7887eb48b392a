/* All blocks come from one allocation function. */
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void *get(size_t n) { return calloc(1, n); }
typedef struct { double *v; int *at; int n; } M;
__attribute__((noinline)) static M *copy(const M *a) {
  M *b = get(sizeof *b); b->n = a->n;
  b->v = get(a->n * sizeof *b->v); b->at = get(a->n * sizeof *b->at);
  memcpy(b->v, a->v, a->n * sizeof *b->v); memcpy(b->at, a->at, a->n * sizeof *b->at);
  return b;
}
double g(double *x, int n) {
  int at[64]; for (int i = 0; i < n; i++) at[i] = n - 1 - i;
  M a = {x, at, n}; M *b = copy(&a);
  double s = 0; for (int i = 0; i < n; i++) s += b->v[b->at[i]] * b->v[i];
  free(b->v); free(b->at); free(b); return s;
}

/* One function receives the addresses of two members of one structure. */
#include <stdlib.h>
#include <string.h>
typedef struct { double *value; int *row; int count; } matrix;
typedef struct { matrix *a, *p; double *b; long n; } data;
__attribute__((noinline)) static int copy(matrix **to, const matrix *from) {
  matrix *m = malloc(sizeof *m);
  m->count = from->count;
  m->value = malloc(m->count * sizeof(double));
  m->row = malloc(m->count * sizeof(int));
  memcpy(m->value, from->value, m->count * sizeof(double));
  memcpy(m->row, from->row, m->count * sizeof(int));
  *to = m;
  return 1;
}
__attribute__((noinline)) static void drop(matrix *m) {
  free(m->value);
  free(m->row);
  free(m);
}
double g(double *x, int n) {
  int row[64];
  for (int i = 0; i < n; i++)
    row[i] = n - 1 - i;
  matrix m = {x, row, n};
  data *d = malloc(sizeof *d);
  copy(&d->a, &m);
  copy(&d->p, &m);
  d->b = malloc(n * sizeof(double));
  memcpy(d->b, x, n * sizeof(double)); /* refused here */
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += d->a->value[i] * d->p->value[d->p->row[i]] * d->b[d->a->row[i]];
  drop(d->a);
  drop(d->p);
  free(d->b);
  free(d);
  return sum;
}

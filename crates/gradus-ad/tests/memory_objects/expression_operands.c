/* One function evaluates operands of several kinds: references to matrices and addresses of numbers. */
#include <stdlib.h>
#include <string.h>
typedef struct { double *data; long rows; double norm; } matrix;
typedef struct { const matrix *of; const double *data; } evaluator;
typedef struct { evaluator a; long size; evaluator b, c; } product;
__attribute__((noinline)) static double entry(const evaluator *e, long i) { return e->data[i] * e->of->norm; }
__attribute__((noinline)) static void assign(matrix *to, const double *x, long rows) {
  to->rows = rows;
  to->data = malloc(rows * sizeof(double));
  memcpy(to->data, x, rows * sizeof(double)); /* refused here */
  to->norm = to->data[0] * to->data[0];
}
__attribute__((noinline)) static double evaluate(const product *p) {
  double sum = 0;
  for (long i = 0; i < p->size; i++)
    sum += entry(&p->a, i) * entry(&p->b, i) * entry(&p->c, i);
  return sum;
}
double g(double *x, int n) {
  matrix *m = malloc(sizeof *m);
  assign(m, x, n);
  product p = {{m, m->data}, n, {m, m->data}, {m, m->data}};
  double sum = evaluate(&p);
  free(m->data);
  free(m);
  return sum;
}

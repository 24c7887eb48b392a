/* One out-parameter points into two kinds of structures, at different offsets. */
#include <math.h>
#include <stdlib.h>
typedef struct { long count; double *step; double value; } state;
typedef struct { const char *name; void (*release)(state *); } kind;
static void release(state *t) { free(t->step); }
static const kind newton = {"newton", release};
const kind *method = &newton; /* a variable, never written, that leads to a constant */
typedef struct { const kind *type; double value; } solver;
__attribute__((noinline)) static void evaluate(const double *x, double *out) { *out = x[0] * sin(x[1]); }
double g(double *x, int n) {
  solver *s = malloc(sizeof *s);
  state *t = malloc(sizeof *t);
  s->type = method;
  t->count = n;
  t->step = malloc(n * sizeof(double));
  evaluate(x, &s->value);
  for (int i = 0; i < n; i++)
    t->step[i] = x[i] * s->value;
  evaluate(t->step, &t->value);
  double sum = t->value + t->count * t->step[0];
  s->type->release(t);
  free(t);
  free(s);
  return sum;
}

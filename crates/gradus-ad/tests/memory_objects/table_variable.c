/* A table of functions behind an externally visible variable. */
#include <stdlib.h>
struct state { double *v; };
struct type { int (*alloc)(void *, int); double (*run)(void *, double *, int); };
static int s_alloc(void *s, int n) { struct state *st = s; st->v = malloc(n * sizeof(double)); return st->v != 0; }
static double s_run(void *s, double *x, int n) {
    struct state *st = s; double r = 0;
    for (int i = 0; i < n; i++) st->v[i] = x[i] * x[i];
    for (int i = 0; i < n; i++) r += st->v[i] * st->v[(i + 1) % n];
    return r;
}
static const struct type t = {s_alloc, s_run};
#ifdef CONST
const struct type *const T = &t;
#else
const struct type *T = &t; /* external, not const: another file might set it */
#endif
double g(double *x, int n) {
    const struct type *type = T;
    struct state *s = malloc(sizeof *s);
    type->alloc(s, n);
    double r = type->run(s, x, n);
    free(s->v); free(s);
    return r;
}

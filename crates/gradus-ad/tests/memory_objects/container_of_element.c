/* The structure that contains an array, from a pointer to an element and the element's index. */
#include <stddef.h>
struct node { int idx; double v; };
struct pool { double *w; struct node nodes[4]; double *u; };
__attribute__((noinline)) static double get(struct node *q) {
  struct pool *p = (struct pool*)((char*)(q - q->idx) - offsetof(struct pool, nodes));
  return p->w[0] * q->v + p->u[0];
}
double g(double *x, int n) {
  double c = 2; double t = x[0]*x[1]; struct pool p; p.w = &t; p.u = &c;
  for (int i = 0; i < 4; i++) { p.nodes[i].idx = i; p.nodes[i].v = x[i%3]*i; }
  double r = 0; for (int i = 0; i < n; i++) r += get(&p.nodes[i]);
  return r;
}

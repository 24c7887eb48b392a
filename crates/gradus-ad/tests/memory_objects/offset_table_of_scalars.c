/* Members by byte offsets from a table; the structure has scalar members only. */
#include <stddef.h>
struct S { double *x, *y, *z; };
static const size_t offs[3] = { offsetof(struct S,x), offsetof(struct S,y), offsetof(struct S,z) };
__attribute__((noinline)) static double get(struct S *s, int i) { return **(double**)((char*)s + offs[i]); }
__attribute__((noinline)) static void set(struct S *s, double *x, double *y, double *z) { s->x = x; s->y = y; s->z = z; }
double g(double *x, int n) {
  double c[2] = {1.5, 2.5}; double t = x[0]*x[1];
  struct S s; set(&s, c, c, &t);
  double r = 0; for (int i = 0; i < 3; i++) r += get(&s, i) * x[i];
  return r;
}

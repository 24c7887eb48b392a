/* Members by byte offsets from a table; the structure begins with an array member. */
#include <stddef.h>
struct S { double *a[3]; double *x, *y, *z; };
static const size_t offs[3] = { offsetof(struct S,x), offsetof(struct S,y), offsetof(struct S,z) };
__attribute__((noinline)) static double get(struct S *s, int i) { return **(double**)((char*)s + offs[i]); }
double g(double *x, int n) {
  double c[2] = {1.5, 2.5}; double t = x[0]*x[1];
  struct S s = {{c,c,c},c,c,c}; s.z = &t;
  double r = 0; for (int i = 0; i < 3; i++) r += get(&s, i) * x[i];
  return r + s.a[n%3][0] + s.y[1];
}

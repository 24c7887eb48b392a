/* Scalar members that are indexed like an array, behind an array member. */
struct S { double *a[3]; double *x, *y, *z; };
__attribute__((noinline)) static double get(struct S *s, int i) { return (&s->x)[i][0]; }
double g(double *x, int n) {
  double c[2] = {1.5, 2.5}; 
  struct S s = {{c,c,c},c,c,c};
  double t[2] = {x[0]*x[1], x[2]};
  s.z = t;
  double r = 0; for (int i = 0; i < 3; i++) r += get(&s, i) * x[i];
  return r + s.a[n%3][0] + s.y[1];
}

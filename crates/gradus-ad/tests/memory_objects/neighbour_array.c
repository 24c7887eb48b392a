/* An index beyond one array member reaches the next array member of the same type. */
struct V { double *re[4]; double *im[4]; };
__attribute__((noinline)) static double sum(struct V *v, int n) { double r = 0; for (int i = 0; i < n; i++) { double **q = &v->re[i]; r += q[0][0] * q[4][0]; } return r; }
double g(double *x, int n) {
  double c = 2, t = x[0]*x[1]; struct V v; for (int i = 0; i < 4; i++) { v.re[i] = &c; v.im[i] = &t; }
  return sum(&v, n) * x[2];
}

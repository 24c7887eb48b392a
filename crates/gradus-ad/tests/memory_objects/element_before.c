/* A forward loop that reads the element before the pointer. */
__attribute__((noinline)) static double sum(double **b, double **e) {
  double s = 0; for (double **p = b + 1; p < e; p++) s += p[-1][0] * p[-1][0];
  return s;
}
double g(double *x, int n) {
  double c[2] = {1.5, 2.5}; 
  double *r[4]; r[0] = x; r[1] = c; r[2] = c+1; r[3]= c;
  return sum(r, r + n);
}

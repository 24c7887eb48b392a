#include "w.c"
#include <math.h>
#include <stdio.h>
extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
static void gradient(int n, const double *x, double *dx) {
  __enzyme_autodiff((void *)grown, n, x, dx);
}
static int is(double a, double b) { return fabs(a - b) <= 1e-12 * fabs(b); }
int main(void) {
  const double x[4] = {1, 2, 3, 4};
  double e[4] = {1, 0, 0, 0};
  int fine = 1;
  /* grown: the sum of x[i]^2 x[n-1-i]^2 */
  for (int n = 2; n <= 4; n++) {
    double dx[4] = {0};
    fine &= is(grown(n, x), grown(n, x));
    gradient(n, x, dx);
    for (int i = 0; i < n; i++)
      fine &= is(dx[i], 4 * x[i] * x[n - 1 - i] * x[n - 1 - i]);
    fine &= is(__enzyme_fwddiff((void *)grown, enzyme_const, n, enzyme_dup, x, e), dx[0]);
  }
  double dx[4] = {0}, h[4] = {0};
  __enzyme_fwddiff((void *)gradient, enzyme_const, 4, enzyme_dup, x, e, enzyme_dup, dx, h);
  fine &= is(dx[0], 64) && is(h[0], 64) && h[1] == 0 && h[2] == 0 && is(h[3], 32);
  /* made_elsewhere: made[0] is a constant, 3 */
  make(4);
  double d[4] = {0};
  __enzyme_autodiff((void *)made_elsewhere, 4, x, d);
  fine &= is(d[0], 3 + 4 + 9 + 16) && is(d[1], 4) && is(d[2], 6) && is(d[3], 8);
  puts(fine ? "right" : "wrong");
}

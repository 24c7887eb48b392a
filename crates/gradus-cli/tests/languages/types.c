/* The gradient of `total` in types.f90, in both modes, against differences. */
#include <gradus.h>
#include <math.h>
#include <stdio.h>

double total(const double *x, int n);

int main(void) {
  enum { N = 5 };
  double x[N] = {0.6, 0.3, 1.1, 0.4, 2.3}, gradient[N] = {0};
  gradus_vjp(total, gradus_dup, x, gradient, gradus_const, N);
  double worst = 0;
  for (int i = 0; i < N; i++) {
    double tangent[N] = {0}, at = x[i], h = 1e-5;
    tangent[i] = 1;
    double forward = gradus_jvp_double(total, gradus_dup, x, tangent, gradus_const, N);
    x[i] = at + h;
    double above = total(x, N);
    x[i] = at - h;
    double below = total(x, N);
    x[i] = at;
    worst = fmax(worst, fabs(gradient[i] - forward) * 1e4);
    worst = fmax(worst, fabs(gradient[i] - (above - below) / (2 * h)));
  }
  puts(worst < 1e-7 ? "right" : "wrong");
  return 0;
}

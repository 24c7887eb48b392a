/* Gradients of Fortran's functions that FUNCTIONS names, in both modes, against differences. */
#include <math.h>
#include <stdio.h>
#define DECLARE(f) double f(double *, int);
FUNCTIONS(DECLARE)
void __enzyme_autodiff(void *, ...);
double __enzyme_fwddiff(void *, ...);
int enzyme_const;
enum { N = 7 };
static int bad;
static void check(const char *name, double (*f)(double *, int), double *x, const double *reverse, double forward, const double *along) {
  double along_reverse = 0;
  for (int i = 0; i < N; i++) {
    double step = 1e-6, old = x[i];
    along_reverse += reverse[i] * along[i];
    x[i] = old + step;
    double above = f(x, N);
    x[i] = old - step;
    double below = f(x, N);
    x[i] = old;
    double difference = (above - below) / (2 * step);
    if (!(fabs(difference - reverse[i]) < 1e-6 * fmax(1, fabs(difference)))) { printf("%s, %d: %g and %g\n", name, i, reverse[i], difference); bad = 1; }
  }
  if (!(fabs(forward - along_reverse) < 1e-12 * fmax(1, fabs(forward)))) { printf("%s: %.15g and %.15g\n", name, forward, along_reverse); bad = 1; }
}
#define CHECK(f) do { \
    double x[N] = {0.3, 0.9, 1.1, 0.2, 0.7, 0.4, 0.6}, along[N] = {1, -0.5, 0.25, 2, -1, 0.125, 0.75}, reverse[N] = {0}, tangent[N]; \
    for (int i = 0; i < N; i++) tangent[i] = along[i]; \
    __enzyme_autodiff((void *)f, x, reverse, enzyme_const, N); \
    double forward = __enzyme_fwddiff((void *)f, x, tangent, enzyme_const, N); \
    check(#f, f, x, reverse, forward, along); \
  } while (0)
int main(void) {
#define CHECKED(f) CHECK(f);
  FUNCTIONS(CHECKED)
  if (!bad) puts("right");
  return bad;
}

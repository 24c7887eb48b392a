#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
double ddot_(const int *, const double *, const int *, const double *, const int *);
void dtrsm_(const char *, const char *, const char *, const char *, const int *, const int *, const double *,
            const double *, const int *, double *, const int *);
#ifdef __cplusplus
}
template <class... T> void __enzyme_autodiff(void *, T...);
template <class... T> double __enzyme_autodiff_d(void *, T...);
template <class... T> double __enzyme_fwddiff(void *, T...);
extern int enzyme_const, enzyme_dup, enzyme_width, enzyme_out, enzyme_dupnoneed;
#else
void __enzyme_autodiff(void *, ...);
double __enzyme_autodiff_d(void *, ...);
double __enzyme_fwddiff(void *, ...);
extern int enzyme_const, enzyme_dup, enzyme_width, enzyme_out, enzyme_dupnoneed;
#endif
static int check(const char *w, double a, double b, double tol) {
    int ok = fabs(a - b) <= tol * (1 + fabs(b));
    printf("%s %s %.12g %.12g\n", ok ? "ok " : "BAD", w, a, b);
    return !ok;
}

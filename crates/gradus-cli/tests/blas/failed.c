#include "declarations.h"
void dpotrf_(const char *, const int *, double *, const int *, int *);
static double f(const double *a, int retry) {
    double A[4];
    int n = 2, info;
    memcpy(A, a, 32);
    dpotrf_("L", &n, A, &n, &info);
    if (info && retry) {
        memcpy(A, a, 32);
        A[0] += 10;
        A[3] += 10;
        dpotrf_("L", &n, A, &n, &info);
    }
    return log(A[0]) + A[3] * A[1];
}
int main() {
    double a[4] = {1, 2, 2, 1}, d[4] = {0};
    __enzyme_autodiff((void *)f, enzyme_dup, a, d, enzyme_const, 1);
    int bad = 0;
    for (int i = 0; i < 4; i++) {
        double t = a[i];
        a[i] = t + 1e-6;
        double p = f(a, 1);
        a[i] = t - 1e-6;
        double m = f(a, 1);
        a[i] = t;
        bad += check("retry", d[i], (p - m) / 2e-6, 1e-7);
    }
    double e[4] = {0};
    __enzyme_autodiff((void *)f, enzyme_dup, a, e, enzyme_const, 0);
    printf("failed: %g %g %g\n", e[0], e[1], e[3]);
    for (int i = 0; i < 4; i++)
        bad += i != 2 && !isnan(e[i]);
    return bad;
}

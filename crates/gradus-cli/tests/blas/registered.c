#include "declarations.h"
static double aug(int n, const double *x, double *dx, int ix, const double *y, double *dy, int iy) {
    return cblas_ddot(n, x, ix, y, iy);
}
static void rev(int n, const double *x, double *dx, int ix, const double *y, double *dy, int iy, double r) {
    for (int i = 0; i < n; i++) {
        dx[i] += 100 * r;
    }
}
void *__enzyme_register_gradient_x[3] = {(void *)cblas_ddot, (void *)aug, (void *)rev};
void *__enzyme_inactivefn[1] = {(void *)cblas_dnrm2};
static double f(const double *x, int n) {
    return cblas_ddot(n, x, 1, x, 1) + cblas_dasum(n, x, 1) * cblas_dnrm2(n, x, 1);
}
int main() {
    double x[2] = {3, 4}, d[2] = {0};
    __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 2);
    return check("registered", d[0], 105, 1e-12);
}

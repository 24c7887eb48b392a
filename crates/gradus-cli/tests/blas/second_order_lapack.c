#include "declarations.h"
void dpotrf_(const char *, const int *, double *, const int *, int *);
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
static double f(const double *a, const double *b) {
    double A[16], x[4], y[4] = {1, 2, 3, 4};
    int n = 4, one = 1, info, p[4];
    for (int i = 0; i < 16; i++)
        A[i] = a[i] + (i % 5 == 0) * 6;
    for (int i = 0; i < 4; i++)
        x[i] = b[i] * b[i];
    double s = 0;
    dpotrf_("U", &n, A, &n, &info);
    if (info)
        return 0;
    for (int i = 0; i < 4; i++)
        s += log(A[i * 5]);
    dgesv_(&n, &one, A, &n, p, x, &n, &info);
    cblas_dgemv(CblasRowMajor, CblasTrans, 4, 4, s, A, 4, x, 1, s, y, 1);
    cblas_dger(CblasColMajor, 4, 4, y[0], y, 1, x, 1, A, 4);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasUnit, 4, A, 4, y, 1);
    return s + cblas_dnrm2(4, y, 1) + cblas_dasum(16, A, 1);
}
static void grad(const double *a, double *da, const double *b, double *db) {
    __enzyme_autodiff((void *)f, enzyme_dup, a, da, enzyme_dup, b, db);
}
int main() {
    int bad = 0;
    double a[16], b[4], v[16], w[4];
    for (int i = 0; i < 16; i++) {
        a[i] = sin(i + 1);
        v[i] = cos(i);
    }
    for (int i = 0; i < 4; i++) {
        b[i] = 1 + 0.3 * i;
        w[i] = 0.5 - i;
    }
    double z[16] = {0}, z2[4] = {0}, ha[16] = {0}, hb[4] = {0};
    __enzyme_fwddiff((void *)grad, enzyme_dup, a, v, enzyme_dup, z, ha, enzyme_dup, b, w, enzyme_dup, z2, hb);
    double e = 1e-6, g[2][20] = {{0}};
    for (int s = 0; s < 2; s++) {
        double a1[16], b1[4];
        for (int i = 0; i < 16; i++)
            a1[i] = a[i] + (s ? e : -e) * v[i];
        for (int i = 0; i < 4; i++)
            b1[i] = b[i] + (s ? e : -e) * w[i];
        grad(a1, g[s], b1, g[s] + 16);
    }
    for (int i = 0; i < 16; i++)
        bad += check("hvp", ha[i], (g[1][i] - g[0][i]) / 2 / e, 1e-6);
    for (int i = 0; i < 4; i++)
        bad += check("hvp b", hb[i], (g[1][16 + i] - g[0][16 + i]) / 2 / e, 1e-6);
    return bad;
}

#include "declarations.h"
// shared A in a parallel loop: adjoint of A is accumulated by all iterations
static double f(const double *A, const double *X, double *Y, int n, int m, double al) {
#pragma omp parallel for
    for (int i = 0; i < m; i++) {
        double be = 0.5;
        dgemm_("N", "N", &n, &n, &n, &al, A, &n, X + i * n * n, &n, &be, Y + i * n * n, &n);
        cblas_dgemv(CblasColMajor, CblasTrans, n, n, al, A, n, X + i * n * n, 1, 1.0, Y + i * n * n, 1);
        cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, n, n, 1.0, A, n,
                    Y + i * n * n, n);
        cblas_dsyrk(CblasColMajor, CblasUpper, CblasTrans, n, n, 0.1, A, n, 1.0, Y + i * n * n, n);
        cblas_daxpy(n, 0.3, A, 1, Y + i * n * n, 1);
    }
    double s = 0;
    for (int i = 0; i < m * n * n; i++)
        s += Y[i] * Y[i];
    return s;
}
static double g(const double *A, const double *X, int n, int m) {
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < m; i++) {
        s += cblas_ddot(n, A, 1, X + i * n, 1) * cblas_dnrm2(n, A, 1);
    }
    return s;
}
int main() {
    int n = 4, m = 64, bad = 0;
    double *A = malloc(8 * 16), *X = malloc(8 * 16 * m), *Y = malloc(8 * 16 * m), *Y0 = malloc(8 * 16 * m);
    for (int i = 0; i < 16; i++)
        A[i] = sin(i + 1) * 0.3 + (i % 5 == 0) * 2;
    for (int i = 0; i < 16 * m; i++) {
        X[i] = cos(i);
        Y0[i] = sin(2 * i);
    }
    double dA[16] = {0}, *dX = calloc(16 * m, 8), *dY = calloc(16 * m, 8);
    memcpy(Y, Y0, 8 * 16 * m);
    double dal = __enzyme_autodiff_d((void *)f, enzyme_dup, A, dA, enzyme_dup, X, dX, enzyme_dup, Y, dY,
                                     enzyme_const, n, enzyme_const, m, enzyme_out, 0.7);
    double e = 1e-6;
    for (int i = 0; i < 16; i++) {
        double t = A[i], v[2];
        for (int s = 0; s < 2; s++) {
            A[i] = t + (s ? e : -e);
            memcpy(Y, Y0, 8 * 16 * m);
            v[s] = f(A, X, Y, n, m, 0.7);
        }
        A[i] = t;
        bad += check("A", dA[i], (v[1] - v[0]) / 2 / e, 1e-6);
    }
    for (int i = 0; i < 16 * m; i += 101) {
        double t = X[i], v[2];
        for (int s = 0; s < 2; s++) {
            X[i] = t + (s ? e : -e);
            memcpy(Y, Y0, 8 * 16 * m);
            v[s] = f(A, X, Y, n, m, 0.7);
        }
        X[i] = t;
        bad += check("X", dX[i], (v[1] - v[0]) / 2 / e, 1e-6);
    }
    {
        double v[2];
        for (int s = 0; s < 2; s++) {
            memcpy(Y, Y0, 8 * 16 * m);
            v[s] = f(A, X, Y, n, m, 0.7 + (s ? e : -e));
        }
        bad += check("al", dal, (v[1] - v[0]) / 2 / e, 1e-6);
    }
    double gA[16] = {0};
    memset(dX, 0, 8 * 16 * m);
    __enzyme_autodiff((void *)g, enzyme_dup, A, gA, enzyme_dup, X, dX, enzyme_const, n, enzyme_const, m);
    for (int i = 0; i < n; i++) {
        double t = A[i], v[2];
        for (int s = 0; s < 2; s++) {
            A[i] = t + (s ? e : -e);
            v[s] = g(A, X, n, m);
        }
        A[i] = t;
        bad += check("gA", gA[i], (v[1] - v[0]) / 2 / e, 1e-6);
    }
    return bad;
}

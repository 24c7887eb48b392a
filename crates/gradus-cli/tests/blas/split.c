#include "declarations.h"
void *__enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
extern int enzyme_tape;
static void f(const double *A, double *X, int n) {
    int info;
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, n, n, 1.0, A, n, X, n);
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, A, n, A, n, 0.5, X, n);
}
int main() {
    int n = 3, bad = 0;
    double A[9], X[9], dA[9] = {0}, dX[9], e[9] = {0}, dY[9];
    for (int i = 0; i < 9; i++) {
        A[i] = sin(i + 1) + (i % 4 == 0) * 2;
        X[i] = cos(i);
        dX[i] = dY[i] = i + 1;
    }
    double X0[9];
    memcpy(X0, X, 72);
    void *t = __enzyme_augmentfwd((void *)f, enzyme_dup, A, dA, enzyme_dup, X, dX, enzyme_const, n);
    double A0[9];
    memcpy(A0, A, 72);
    for (int i = 0; i < 9; i++) {
        A[i] = 99;
        X[i] = 77;
    }
    __enzyme_reverse((void *)f, enzyme_dup, A, dA, enzyme_dup, X, dX, enzyme_const, n, enzyme_tape, t);
    memcpy(A, A0, 72);
    memcpy(X, X0, 72);
    __enzyme_autodiff((void *)f, enzyme_dup, A, e, enzyme_dup, X, dY, enzyme_const, n);
    for (int i = 0; i < 9; i++) {
        bad += check("split A", dA[i], e[i], 1e-13);
        bad += check("split X", dX[i], dY[i], 1e-13);
    }
    return bad;
}

#include "declarations.h"
// beta=0 with NaN in C; n=0; inactive operand; aliasing A==B; active alpha zero
static double f(double *A, double *C, double be, int n) {
    double al = 2;
    dgemm_("T", "N", &n, &n, &n, &al, A, &n, A, &n, &be, C, &n);
    double s = 0;
    for (int i = 0; i < n * n; i++)
        s += C[i] * (i + 1);
    return s;
}
static double fc(const double *A, const double *B, double *C, double be, int n) {
    double al = 2;
    dgemm_("T", "N", &n, &n, &n, &al, A, &n, B, &n, &be, C, &n);
    double s = 0;
    for (int i = 0; i < n * n; i++)
        s += C[i] * C[i] * (i + 1);
    return s;
}
static double loop(const double *A, const double *B, double *C, double be, int n) {
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            double t = 0;
            for (int l = 0; l < n; l++)
                t += A[l + i * n] * B[l + j * n];
            C[i + j * n] = be == 0 ? 2 * t : 2 * t + be * C[i + j * n];
        }
    double s = 0;
    for (int i = 0; i < n * n; i++)
        s += C[i] * C[i] * (i + 1);
    return s;
}
int main() {
    int bad = 0, n = 3;
    double A[9], B[9], C[9], dA[9] = {0}, dC[9];
    for (int i = 0; i < 9; i++) {
        A[i] = sin(i + 1);
        B[i] = cos(i);
        C[i] = NAN;
        dC[i] = 0;
    }
    __enzyme_autodiff((void *)f, enzyme_dup, A, dA, enzyme_dup, C, dC, enzyme_const, 0.0, enzyme_const, n);
    for (int i = 0; i < 9; i++) {
        double e = 1e-6, t = A[i];
        for (int k = 0; k < 9; k++)
            C[k] = NAN;
        A[i] = t + e;
        double p = f(A, C, 0, n);
        for (int k = 0; k < 9; k++)
            C[k] = NAN;
        A[i] = t - e;
        double m = f(A, C, 0, n);
        A[i] = t;
        bad += check("A==B nan C", dA[i], (p - m) / 2 / e, 1e-7);
        bad += check("dC", dC[i], 0, 0);
    }
    for (int w = 0; w < 3; w++) {
        double a[9] = {0}, b[9] = {0}, c[9] = {0}, a2[9] = {0}, b2[9] = {0}, c2[9] = {0};
        for (int k = 0; k < 9; k++)
            C[k] = k;
        if (w == 0) {
            __enzyme_autodiff((void *)fc, enzyme_dup, A, a, enzyme_const, B, enzyme_dup, C, c, enzyme_const,
                              0.5, enzyme_const, n);
            for (int k = 0; k < 9; k++)
                C[k] = k;
            __enzyme_autodiff((void *)loop, enzyme_dup, A, a2, enzyme_const, B, enzyme_dup, C, c2,
                              enzyme_const, 0.5, enzyme_const, n);
        }
        if (w == 1) {
            __enzyme_autodiff((void *)fc, enzyme_const, A, enzyme_dup, B, b, enzyme_dup, C, c, enzyme_const,
                              0.5, enzyme_const, n);
            for (int k = 0; k < 9; k++)
                C[k] = k;
            __enzyme_autodiff((void *)loop, enzyme_const, A, enzyme_dup, B, b2, enzyme_dup, C, c2,
                              enzyme_const, 0.5, enzyme_const, n);
        }
        if (w == 2) {
            __enzyme_autodiff((void *)fc, enzyme_const, A, enzyme_const, B, enzyme_dup, C, c, enzyme_const,
                              0.5, enzyme_const, n);
            for (int k = 0; k < 9; k++)
                C[k] = k;
            __enzyme_autodiff((void *)loop, enzyme_const, A, enzyme_const, B, enzyme_dup, C, c2, enzyme_const,
                              0.5, enzyme_const, n);
        }
        for (int i = 0; i < 9; i++)
            bad += check("const", a[i] + b[i] * 3 + c[i] * 7, a2[i] + b2[i] * 3 + c2[i] * 7, 1e-12);
    }
    double d0[1] = {7}, x[1] = {1};
    __enzyme_autodiff((void *)f, enzyme_dup, x, d0, enzyme_dup, x, d0, enzyme_const, 0.0, enzyme_const, 0);
    bad += check("n=0", d0[0], 7, 0);
    return bad;
}

#include "declarations.h"
// width 3, second order
static double f(const double *A, const double *B, double *C, double al, int n) {
    double be = 0.25;
    dgemm_("N", "T", &n, &n, &n, &al, A, &n, B, &n, &be, C, &n);
    cblas_dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, n, n, al, A, n, C, n);
    int one = 1, nn = n * n;
    return ddot_(&nn, C, &one, C, &one) + cblas_dnrm2(n, C, 1);
}
typedef struct {
    double d[3];
} V3;
V3 __enzyme_fwddiff_v(void *, ...);
V3 __enzyme_autodiff_v(void *, ...);
static void grad(const double *A, double *dA, const double *B, double *dB, double *C, double *dC, double al,
                 int n) {
    __enzyme_autodiff((void *)f, enzyme_dup, A, dA, enzyme_dup, B, dB, enzyme_dup, C, dC, enzyme_const, al,
                      enzyme_const, n);
}
static double gradal(const double *A, const double *B, double *C, double al, int n) {
    double dA[9] = {0}, dB[9] = {0}, dC[9] = {0};
    return __enzyme_autodiff_d((void *)f, enzyme_dup, A, dA, enzyme_dup, B, dB, enzyme_dup, C, dC, enzyme_out,
                               al, enzyme_const, n);
}
int main() {
    int n = 3, bad = 0;
    double A[9], B[9], C[9], C0[9], a = 0.7;
    for (int i = 0; i < 9; i++) {
        A[i] = sin(i + 1) + (i % 4 == 0) * 2;
        B[i] = cos(2 * i);
        C0[i] = sin(3 * i);
    }
    double dA[9] = {0}, dB[9] = {0}, dC[9] = {0};
    memcpy(C, C0, 72);
    grad(A, dA, B, dB, C, dC, a, n);
    double v[3][9], w[3][9], u[3][9];
    double exp[3] = {0};
    for (int l = 0; l < 3; l++)
        for (int i = 0; i < 9; i++) {
            v[l][i] = sin(l * 9 + i);
            w[l][i] = cos(l + i * 2);
            u[l][i] = i - l;
            exp[l] += v[l][i] * dA[i] + w[l][i] * dB[i] + u[l][i] * dC[i];
        }
    memcpy(C, C0, 72);
    double da = gradal(A, B, C, a, n);
    double sa[3] = {1, 2, -1};
    for (int l = 0; l < 3; l++)
        exp[l] += sa[l] * da;
    double uu[3][9];
    memcpy(uu, u, sizeof u);
    memcpy(C, C0, 72);
    V3 r = __enzyme_fwddiff_v((void *)f, enzyme_width, 3, enzyme_dup, A, v[0], v[1], v[2], enzyme_dup, B,
                              w[0], w[1], w[2], enzyme_dup, C, u[0], u[1], u[2], enzyme_dup, a, sa[0], sa[1],
                              sa[2], enzyme_const, n);
    for (int l = 0; l < 3; l++)
        bad += check("fwd width", r.d[l], exp[l], 1e-11);
    // reverse with width 2
    double dA2[2][9] = {{0}}, dB2[2][9] = {{0}}, dC2[2][9] = {{0}};
    memcpy(C, C0, 72);
    typedef struct {
        double d[2];
    } V2;
    // hvp: forward over reverse
    double hA[9] = {0}, hB[9] = {0}, hC[9] = {0};
    double z[9] = {0}, z2[9] = {0}, z3[9] = {0};
    memcpy(C, C0, 72);
    memcpy(uu[0], u[0], 72);
    __enzyme_fwddiff((void *)grad, enzyme_dup, A, v[0], enzyme_dup, z, hA, enzyme_dup, B, w[0], enzyme_dup,
                     z2, hB, enzyme_dup, C, uu[0], enzyme_dup, z3, hC, enzyme_dup, a, 1.0, enzyme_const, n);
    double e = 1e-6;
    for (int i = 0; i < 9; i += 2) {
        double g[2];
        for (int s = 0; s < 2; s++) {
            double h = s ? e : -e;
            double A1[9], B1[9], C1[9], x[9] = {0}, y[9] = {0}, q[9] = {0};
            for (int k = 0; k < 9; k++) {
                A1[k] = A[k] + h * v[0][k];
                B1[k] = B[k] + h * w[0][k];
                C1[k] = C0[k] + h * u[0][k];
            }
            grad(A1, x, B1, y, C1, q, a + h, n);
            g[s] = x[i] + 10 * y[i] + 100 * q[i];
        }
        bad += check("hvp", hA[i] + 10 * hB[i] + 100 * hC[i], (g[1] - g[0]) / 2 / e, 1e-6);
    }
    // second derivative in alpha, reverse over reverse
    double rA[9] = {0}, rB[9] = {0}, rC[9] = {0};
    memcpy(C, C0, 72);
    double d2 = __enzyme_autodiff_d((void *)gradal, enzyme_dup, A, rA, enzyme_dup, B, rB, enzyme_dup, C, rC,
                                    enzyme_out, a, enzyme_const, n);
    double g[2];
    for (int s = 0; s < 2; s++) {
        memcpy(C, C0, 72);
        g[s] = gradal(A, B, C, a + (s ? e : -e), n);
    }
    bad += check("d2alpha", d2, (g[1] - g[0]) / 2 / e, 1e-6);
    for (int i = 0; i < 9; i += 3) {
        for (int s = 0; s < 2; s++) {
            double A1[9];
            memcpy(A1, A, 72);
            A1[i] += s ? e : -e;
            memcpy(C, C0, 72);
            g[s] = gradal(A1, B, C, a, n);
        }
        bad += check("rev-rev A", rA[i], (g[1] - g[0]) / 2 / e, 1e-6);
        for (int s = 0; s < 2; s++) {
            double A1[9];
            memcpy(A1, B, 72);
            A1[i] += s ? e : -e;
            memcpy(C, C0, 72);
            g[s] = gradal(A, A1, C, a, n);
        }
        bad += check("rev-rev B", rB[i], (g[1] - g[0]) / 2 / e, 1e-6);
        for (int s = 0; s < 2; s++) {
            double A1[9];
            memcpy(A1, C0, 72);
            A1[i] += s ? e : -e;
            g[s] = gradal(A, B, A1, a, n);
        }
        bad += check("rev-rev C", rC[i], (g[1] - g[0]) / 2 / e, 1e-6);
    }
    return bad;
}

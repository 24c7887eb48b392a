#include "declarations.h"
typedef double (*dotfn)(const int *, const double *, const int *, const double *, const int *);
static double ptr(dotfn fn, const double *x, int n) {
    int one = 1;
    double s = fn(&n, x, &one, x, &one);
    return s * s;
}
static double other(const int *n, const double *x, const int *a, const double *y, const int *b) {
    double s = 0;
    for (int i = 0; i < *n; i++)
        s += x[i] * y[i] * y[i];
    return s;
}
static double f(const double *x, int n, int which) { return ptr(which ? other : ddot_, x, n); }
static double GA[9], GB[9], GC[9];
static double glob(const double *x) {
    for (int i = 0; i < 9; i++) {
        GA[i] = x[i];
        GB[i] = x[i] * x[i];
    }
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, 3, 3, 3, 1.0, GA, 3, GB, 3, 0.0, GC, 3);
    for (int i = 0; i < 9; i++) {
        GA[i] = 0;
        GB[i] = GC[i] * 2;
    }
    return cblas_dnrm2(9, GB, 1);
}
static double recur(double *x, int n) {
    if (n == 0)
        return cblas_dasum(3, x, 1);
    cblas_dscal(3, x[0], x, 1);
    cblas_daxpy(3, x[1], x, 1, x + 3, 1);
    cblas_dcopy(3, x + 3, 1, x, 1);
    return recur(x, n - 1) + x[2];
}
struct S {
    int n;
    double *a;
    double *b;
};
static double st(struct S *s) {
    double *c = calloc(s->n * s->n, 8);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, s->n, s->n, s->n, 1.0, s->a, s->n, s->b, s->n, 1.0,
                c, s->n);
    double r = 0;
    for (int i = 0; i < s->n * s->n; i++)
        r += c[i] * c[i] * i;
    free(c);
    return r;
}
static double iter(double *A, double *x, int n, int it) {
    double y[8];
    for (int k = 0; k < it; k++) {
        cblas_dgemv(CblasColMajor, CblasNoTrans, n, n, 1.0, A, n, x, 1, 0.0, y, 1);
        double nr = cblas_dnrm2(n, y, 1);
        cblas_dscal(n, 1 / nr, y, 1);
        cblas_dcopy(n, y, 1, x, 1);
        cblas_dger(CblasColMajor, n, n, 0.1, x, 1, y, 1, A, n);
    }
    size_t i = cblas_idamax(n, x, 1);
    return x[i] * cblas_ddot(n, x, 1, A, 1);
}
#define FD(expr, var, name, got)                                                                             \
    {                                                                                                        \
        double t = var;                                                                                      \
        var = t + 1e-6;                                                                                      \
        double a = expr;                                                                                     \
        var = t - 1e-6;                                                                                      \
        double b = expr;                                                                                     \
        var = t;                                                                                             \
        bad += check(name, got, (a - b) / 2e-6, 1e-6);                                                       \
    }
static double recur_(const double *x0) {
    double x[6];
    memcpy(x, x0, 48);
    return recur(x, 3);
}
static double iter_(const double *p) {
    double A[16], x[4];
    memcpy(A, p, 128);
    memcpy(x, p + 16, 32);
    return iter(A, x, 4, 6);
}
int main() {
    int bad = 0;
    double x[20], d[20];
    for (int i = 0; i < 20; i++)
        x[i] = sin(i + 1) + 0.5;
    for (int w = 0; w < 2; w++) {
        memset(d, 0, sizeof d);
        __enzyme_autodiff((void *)f, enzyme_dup, x, d, enzyme_const, 5, enzyme_const, w);
        for (int i = 0; i < 5; i++)
            FD(f(x, 5, w), x[i], "pointer", d[i])
    }
    memset(d, 0, sizeof d);
    __enzyme_autodiff((void *)glob, enzyme_dup, x, d);
    for (int i = 0; i < 9; i++)
        FD(glob(x), x[i], "globals", d[i])
    memset(d, 0, sizeof d);
    __enzyme_autodiff((void *)recur_, enzyme_dup, x, d);
    for (int i = 0; i < 6; i++)
        FD(recur_(x), x[i], "recursion", d[i])
    memset(d, 0, sizeof d);
    __enzyme_autodiff((void *)iter_, enzyme_dup, x, d);
    for (int i = 0; i < 20; i++)
        FD(iter_(x), x[i], "iteration", d[i])
    double da[9] = {0}, db[9] = {0};
    struct S s = {3, x, x + 9}, ds = {3, da, db};
    __enzyme_autodiff((void *)st, enzyme_dup, &s, &ds);
    for (int i = 0; i < 9; i++) {
        FD(st(&s), x[i], "struct a", da[i]) FD(st(&s), x[i + 9], "struct b", db[i])
    }
    memset(d, 0, sizeof d);
    double d2[20] = {0};
    int n = 4, one = 1;
    __enzyme_autodiff((void *)ddot_, enzyme_const, &n, enzyme_dup, x, d, enzyme_const, &one, enzyme_dup,
                      x + 5, d2, enzyme_const, &one);
    for (int i = 0; i < 4; i++) {
        bad += check("root", d[i], x[5 + i], 1e-14);
        bad += check("root", d2[i], x[i], 1e-14);
    }
    double *C = calloc(9, 8), *dC = calloc(9, 8), dA[9] = {0}, dB[9] = {0};
    for (int i = 0; i < 9; i++)
        dC[i] = i;
    double dal = 0, dbe = 0;
    int m = 3;
    double al = 1.5, be = 0.5;
    __enzyme_autodiff((void *)dgemm_, enzyme_const, "N", enzyme_const, "N", enzyme_const, &m, enzyme_const,
                      &m, enzyme_const, &m, enzyme_dup, &al, &dal, enzyme_dup, x, dA, enzyme_const, &m,
                      enzyme_dup, x + 9, dB, enzyme_const, &m, enzyme_dup, &be, &dbe, enzyme_dup, C, dC,
                      enzyme_const, &m);
    double e = 0;
    for (int i = 0; i < 3; i++)
        for (int l = 0; l < 3; l++) {
            double g = 0;
            for (int j = 0; j < 3; j++)
                g += 1.5 * (i + 3 * j) * x[9 + l + 3 * j];
            e += fabs(g - dA[i + 3 * l]);
        }
    bad += check("root gemm", e, 0, 1e-12);
    printf("%g %g %g\n", dal, dbe, dC[4]);
    return bad;
}

#include "declarations.h"
#include <vector>
template <class T> struct Mat {
    std::vector<T> v;
    int n;
    Mat(int n) : v(n * n), n(n) {}
    T &operator()(int i, int j) { return v[i + j * n]; }
};
template <class T> Mat<T> operator*(const Mat<T> &a, const Mat<T> &b) {
    Mat<T> c(a.n);
    if constexpr (sizeof(T) == 8)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, a.n, a.n, a.n, 1.0, a.v.data(), a.n,
                    b.v.data(), b.n, 0.0, c.v.data(), c.n);
    else
        cblas_sgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, a.n, a.n, a.n, 1.0f, a.v.data(), a.n,
                    b.v.data(), b.n, 0.0f, c.v.data(), c.n);
    return c;
}
template <class T> T chain(const T *p, int n) {
    Mat<T> a(n);
    for (int i = 0; i < n * n; i++)
        a.v[i] = p[i];
    Mat<T> b = a * a;
    Mat<T> c = b * a * b;
    c = c * c;
    T s = 0;
    for (auto x : c.v)
        s += x * x;
    struct H {
        static T nrm(const std::vector<T> &v) {
            if constexpr (sizeof(T) == 8)
                return cblas_dnrm2(v.size(), v.data(), 1);
            else
                return cblas_snrm2(v.size(), v.data(), 1);
        }
    };
    return s + H::nrm(b.v);
}
double fd_(const double *p, int n) { return chain<double>(p, n); }
float ff_(const float *p, int n) { return chain<float>(p, n); }
int main() {
    int n = 3, bad = 0;
    double p[9], d[9] = {0};
    float q[9], dq[9] = {0};
    for (int i = 0; i < 9; i++) {
        p[i] = sin(i + 1) * 0.6;
        q[i] = p[i];
    }
    __enzyme_autodiff((void *)fd_, enzyme_dup, p, d, enzyme_const, n);
    __enzyme_autodiff((void *)ff_, enzyme_dup, q, dq, enzyme_const, n);
    double e = 1e-6;
    for (int i = 0; i < 9; i++) {
        double t = p[i];
        p[i] = t + e;
        double a = fd_(p, n);
        p[i] = t - e;
        double b = fd_(p, n);
        p[i] = t;
        bad += check("cpp", d[i], (a - b) / 2 / e, 1e-6);
        bad += check("cpp float", dq[i], d[i], 1e-3);
    }
    return bad;
}

// The library's functions of numbers, real and complex.
#include "check.h"
#include <complex>

static double real(double y, double z)
{
    int exponent, quotient, sign;
    double whole, s, c, sum = 0;
    sum += std::lgamma(y) + std::tgamma(y) + std::erf(y) * std::erfc(y) + std::cbrt(y);
    sum += std::hypot(y, 2.0) + j0(y) + j1(y) + jn(2, y) + y0(y) + y1(y) + yn(2, y);
    double fraction = std::frexp(y * 3, &exponent), part = std::modf(y * 3, &whole);
    sum += fraction * exponent + part * whole;
    sum += std::ldexp(y, 3) + std::scalbn(y, 2) + std::logb(y) + std::remainder(y, 0.31);
    double rest = remquo(y, 0.37, &quotient), gamma = lgamma_r(y + 1, &sign);
    sum += rest * quotient + gamma * sign;
    sum += std::fmod(y, 0.31) + std::fmin(y, 1) + std::fmax(y, 1.2) + fdim(y, 1) + std::expm1(y);
    sum += std::log1p(y) + std::log2(y) + std::exp2(y) + std::log10(y) + std::asinh(y);
    sum += std::acosh(y + 1) + std::atanh(y / 3) + std::nearbyint(y) * y + std::trunc(y * 2) * y;
    sum += std::ilogb(y) * y + std::copysign(y, -1) + std::fma(y, z, y) + std::pow(y, z);
    sincos(y * z, &s, &c);
    return sum + s * c;
}

static double value(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += real(x[i], x[(i + 1) % n]);
    std::complex<double> z(x[0], x[1]), w(x[2], x[3]);
    auto u = std::exp(z) * w / (z + 1.0) + std::sqrt(w) + std::log(w) + std::pow(z, w);
    u += std::sin(z) * std::tanh(w) + std::cos(z) * std::sinh(w) + std::cosh(z) * std::tan(w);
    u += std::asin(z * 0.3) + std::acos(w * 0.2) + std::atan(z * 0.3) + std::asinh(w);
    u += std::acosh(w + 2.0) + std::atanh(z * 0.2);
    return sum + std::abs(u) + std::arg(u) + std::norm(w) * x[4];
}

JUDGE(value)

// Dual numbers in place of double: another way to a tangent, slow and independent, by which the judge
// itself is judged. Taken in before a C source that is then compiled as C++.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>

typedef double real;

struct dual {
    real v, t; // value, tangent
    dual() = default;
    constexpr dual(real value) : v(value), t(0) {}
    constexpr dual(real value, real tangent) : v(value), t(tangent) {}
    explicit operator int() const { return static_cast<int>(v); }
    explicit operator long() const { return static_cast<long>(v); }
};

inline dual operator+(dual a) { return a; }
inline dual operator-(dual a) { return {-a.v, -a.t}; }
inline dual operator+(dual a, dual b) { return {a.v + b.v, a.t + b.t}; }
inline dual operator-(dual a, dual b) { return {a.v - b.v, a.t - b.t}; }
inline dual operator*(dual a, dual b) { return {a.v * b.v, a.t * b.v + a.v * b.t}; }
inline dual operator/(dual a, dual b) { return {a.v / b.v, (a.t - a.v / b.v * b.t) / b.v}; }
inline dual &operator+=(dual &a, dual b) { return a = a + b; }
inline dual &operator-=(dual &a, dual b) { return a = a - b; }
inline dual &operator*=(dual &a, dual b) { return a = a * b; }
inline dual &operator/=(dual &a, dual b) { return a = a / b; }
inline bool operator<(dual a, dual b) { return a.v < b.v; }
inline bool operator>(dual a, dual b) { return a.v > b.v; }
inline bool operator<=(dual a, dual b) { return a.v <= b.v; }
inline bool operator>=(dual a, dual b) { return a.v >= b.v; }
inline bool operator==(dual a, dual b) { return a.v == b.v; }
inline bool operator!=(dual a, dual b) { return a.v != b.v; }

// f'(a) a.t, where a tangent of zero stays zero whatever f' is
inline dual chain(real value, real slope, dual a) { return {value, a.t == 0 ? 0 : slope * a.t}; }
inline dual sin(dual a) { return chain(std::sin(a.v), std::cos(a.v), a); }
inline dual cos(dual a) { return chain(std::cos(a.v), -std::sin(a.v), a); }
inline dual tan(dual a) { return chain(std::tan(a.v), 1 + std::tan(a.v) * std::tan(a.v), a); }
inline dual asin(dual a) { return chain(std::asin(a.v), 1 / std::sqrt(1 - a.v * a.v), a); }
inline dual acos(dual a) { return chain(std::acos(a.v), -1 / std::sqrt(1 - a.v * a.v), a); }
inline dual atan(dual a) { return chain(std::atan(a.v), 1 / (1 + a.v * a.v), a); }
inline dual exp(dual a) { return chain(std::exp(a.v), std::exp(a.v), a); }
inline dual log(dual a) { return chain(std::log(a.v), 1 / a.v, a); }
inline dual log10(dual a) { return chain(std::log10(a.v), 1 / (a.v * std::log(10.0)), a); }
inline dual sqrt(dual a) { return chain(std::sqrt(a.v), 0.5 / std::sqrt(a.v), a); }
inline dual fabs(dual a) { return chain(std::fabs(a.v), a.v < 0 ? -1 : 1, a); }
inline dual floor(dual a) { return {std::floor(a.v), 0}; }
inline dual ceil(dual a) { return {std::ceil(a.v), 0}; }
inline dual fmod(dual a, dual b) { return {std::fmod(a.v, b.v), a.t - std::trunc(a.v / b.v) * b.t}; }
inline dual pow(dual a, dual b)
{
    const real p = std::pow(a.v, b.v);
    const real by_base = a.t == 0 ? 0 : b.v * std::pow(a.v, b.v - 1) * a.t;
    return {p, by_base + (b.t == 0 ? 0 : p * std::log(a.v) * b.t)};
}
inline dual atan2(dual y, dual x)
{
    const real square = x.v * x.v + y.v * y.v;
    const real turned = x.v * y.t - y.v * x.t;
    return {std::atan2(y.v, x.v), turned == 0 ? 0 : turned / square};
}

#define double dual

#include <cmath>
#include <functional>
#include <stdexcept>
#include <variant>
#include <vector>
/* Callables of different sizes in one container: numbers and addresses share the buffer of std::function. */
extern "C" double stages(const double *x, int n)
{
    std::vector<std::function<double(double)>> all;
    for (int i = 0; i < n; i++) {
        double a = x[i], b = 0.1 * i;
        if (i % 3 == 0)
            all.push_back([a, b](double u) { return a * u + b; });
        else if (i % 3 == 1)
            all.push_back([a](double u) { return std::sin(a * u); });
        else
            all.push_back([a, b, c = a * a, i](double u) { return u + a * b + c * i; });
    }
    std::function<double(double)> both = [f = all[0], g = all[1]](double u) { return f(g(u)); };
    double u = both(x[0]);
    for (const auto &stage : all)
        u = stage(u);
    return u * u;
}
extern "C" double variants(const double *x, int n)
{
    std::vector<std::variant<double, std::vector<double>>> all;
    for (int i = 0; i < n; i++) {
        if (i % 2)
            all.emplace_back(x[i] * x[0]);
        else
            all.emplace_back(std::vector<double>{x[i], x[(i + 1) % n]});
    }
    double s = 0;
    for (const auto &v : all) {
        if (auto *one = std::get_if<double>(&v))
            s += *one * *one;
        else
            for (double e : std::get<std::vector<double>>(v))
                s += e * s + e;
    }
    return s;
}
/* Casts across a virtual base. */
struct Base { double k; explicit Base(double v) : k(v) {} virtual ~Base() {} };
struct Left : virtual Base { double l; explicit Left(double v) : Base(v), l(2 * v) {} };
struct Right : virtual Base { double r; explicit Right(double v) : Base(v), r(v * v) {} };
struct Both : Left, Right { double b; explicit Both(double v) : Base(v), Left(v), Right(v), b(3) {} };
extern "C" double casts(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        Both both(x[i]);
        Base *base = &both;
        Left *left = &both;
        if (auto *right = dynamic_cast<Right *>(left))
            s += right->r * x[0];
        if (auto *derived = dynamic_cast<Both *>(base))
            s += derived->b * derived->l;
        if (auto *other = dynamic_cast<Left *>(static_cast<Base *>(static_cast<Right *>(&both))))
            s += other->k;
    }
    return s;
}
/* Calls in a `try` of which the values after the call are equal on both paths. */
static double root(double a)
{
    if (!(a > 0))
        throw std::invalid_argument("a must be positive");
    return a * std::sqrt(a);
}
extern "C" double guarded(const double *x, int n)
{
    std::vector<double> r;
    try {
        for (int i = 0; i < n; i++)
            r.push_back(root(x[i] * x[i]));
    } catch (const std::exception &) {
        return -1;
    }
    double s = 0;
    for (double v : r)
        s += v * x[0];
    return s;
}
extern "C" double unrolled(const double *x, int n)
{
    std::vector<double> r;
    try {
        for (int i = 0; i < 3; i++)
            r.push_back(root(x[0] * x[0] + i));
    } catch (const std::exception &) {
        return n;
    }
    return r[0] * r[1] + r[2];
}
/* Pointers to member functions, virtual and others, in one table. */
struct Spring {
    double mass, pos;
    double kinetic() const { return 0.5 * mass * mass; }
    double elastic() const { return 0.5 * pos * pos; }
    virtual double field() const { return std::cos(pos) * mass; }
    virtual ~Spring() {}
};
struct Charged : Spring {
    double charge;
    double field() const override { return charge * pos * mass; }
};
extern "C" double members(const double *x, int n)
{
    Charged s;
    static double Spring::*const fields[] = {&Spring::mass, &Spring::pos};
    double (Spring::*const terms[])() const = {&Spring::kinetic, &Spring::elastic, &Spring::field};
    for (int i = 0; i < 2; i++)
        s.*fields[i] = x[i];
    s.charge = x[2];
    Spring *p = &s;
    double sum = 0;
    for (int k = 0; k < n; k++) {
        sum += (p->*terms[k % 3])() * x[k];
        p->*fields[k % 2] += 0.1 * sum;
    }
    return sum;
}
/* Variants of integers and numbers, by value. */
using Number = std::variant<double, long>;
static Number counted_or(double x, int i)
{
    if (i % 3)
        return Number(x * x);
    return Number(long(i));
}
extern "C" double integer_variants(const double *x, int n)
{
    std::vector<Number> a;
    for (int i = 0; i < n; i++)
        a.push_back(counted_or(x[i], i));
    double s = 0;
    for (int i = 0; i < n; i++)
        s += (a[i].index() == 0 ? std::get<0>(a[i]) : double(std::get<1>(a[i]))) * x[i];
    return s;
}

// An exception that leaves the derivative: destructors run, and the next call is as any other.
#include "check.h"
#include <memory>
#include <stdexcept>
#include <vector>

static int alive;

struct Guard {
    Guard() { alive++; }
    ~Guard() { alive--; }
};

__attribute__((noinline)) static double part(const std::vector<double> &v, int i)
{
    Guard guard;
    if (v.at(i) < 0)
        throw std::domain_error("negative");
    return std::log(v[i]) * v[(i + 1) % v.size()];
}

static double value(const double *x, int n)
{
    Guard guard;
    auto copy = std::make_unique<std::vector<double>>(x, x + n);
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += part(*copy, i);
    return sum;
}

static int thrown()
{
    double x[COUNT] = {1, 2, 3, -1, 2, 3}, adjoints[COUNT] = {0};
    try {
        __enzyme_autodiff<void>((void *)value, enzyme_dup, x, adjoints, enzyme_const, (int)COUNT);
    } catch (const std::domain_error &) {
        return alive == 0;
    }
    return 0;
}

static double guarded(const double *x, int n)
{
    return thrown() ? value(x, n) : 0;
}

int main()
{
    if (!thrown())
        return 2;
    double x[COUNT] = {0.7, 1.3, 0.4, 2.1, 0.9, 1.7}, tangents[COUNT], adjoints[COUNT] = {0};
    __enzyme_autodiff<void>((void *)value, enzyme_dup, x, adjoints, enzyme_const, (int)COUNT);
    for (int i = 0; i < COUNT; i++) {
        double along[COUNT] = {0};
        along[i] = 1;
        tangents[i] = __enzyme_fwddiff<double>((void *)value, enzyme_dup, x, along, enzyme_const,
                                               (int)COUNT);
    }
    return judged(guarded, tangents, adjoints, x);
}

// Exceptions caught inside the function that is differentiated.
#include "check.h"
#include <stdexcept>

__attribute__((noinline)) static double root(double x)
{
    if (x < 1)
        throw std::domain_error("too small");
    return std::sqrt(x - 1) * x;
}

static double value(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            sum += root(x[i]) * x[i];
        } catch (const std::domain_error &) {
            sum += x[i] * x[i] * x[i];
        }
    }
    try {
        sum *= root(x[0] * x[2]);
    } catch (...) {
        sum *= x[5];
    }
    return sum;
}

JUDGE(value)

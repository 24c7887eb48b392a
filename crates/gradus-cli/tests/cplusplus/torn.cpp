// Refused: the exception comes after a write that carries derivatives, and is caught.
#include "check.h"
#include <stdexcept>

__attribute__((noinline)) static void fill(double *to, const double *x, int n)
{
    for (int i = 0; i < n; i++) {
        if (x[i] > 2)
            throw std::domain_error("too large");
        to[i] = x[i] * x[i];
    }
}

static double value(const double *x, int n)
{
    double part[COUNT] = {0}, sum = 0;
    try {
        fill(part, x, n);
    } catch (const std::domain_error &) {
    }
    for (int i = 0; i < n; i++)
        sum += part[i] * x[i];
    return sum;
}

JUDGE(value)

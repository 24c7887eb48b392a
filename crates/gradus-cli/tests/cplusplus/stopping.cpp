// Functions that never come back are handed active memory: one that is not seen into, and one that throws
// where nothing catches. What they would do is nothing to the derivative.
#include "check.h"
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

[[noreturn, gnu::noinline]] static void stop(const double *x, int at)
{
    asm volatile("" : : "r"(x) : "memory");
    std::printf("%d: %g\n", at, x[at]);
    std::abort();
}

[[noreturn, gnu::noinline]] static void complain(double *x, int at)
{
    x[at] = x[0] * x[1];
    throw std::domain_error("too small");
}

[[gnu::noinline]] static void clear(double *part, int n)
{
    for (int i = 0; i < n; i++)
        part[i] = 0;
    if (n > COUNT)
        throw n;
}

[[gnu::noinline]] static void fill(double *part, const double *x, int n)
{
    if (n > COUNT)
        throw n;
    for (int i = 0; i < n; i++)
        part[i] = x[i] * x[0];
}

// A handler that writes, catches, and then ends the program.
static double filled(const double *x, int n)
{
    double part[COUNT], sum = 0;
    try {
        fill(part, x, n);
    } catch (...) {
        try {
            clear(part, n);
        } catch (int) {
            std::puts("not cleared");
        }
        std::abort();
    }
    for (int i = 0; i < n; i++)
        sum += part[i] * part[i];
    return sum;
}

static double value(const double *x, int n)
{
    double part[COUNT], sum = 0;
    for (int i = 0; i < n; i++) {
        if (x[i] > 1e6)
            stop(x, i);
        part[i] = x[i] * x[i];
        if (part[i] < 0)
            complain(part, i);
        sum += part[i] * x[(i + 1) % n];
    }
    return sum + filled(x, n);
}

JUDGE(value)

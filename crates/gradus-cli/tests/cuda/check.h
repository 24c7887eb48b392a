/* What the programs of this folder share: they return the number of things that are wrong, and say which. */
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static int wrong = 0;

static inline void expect(bool holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        wrong++;
    }
}
static inline void near(double found, double expected, const char *what)
{
    if (!(std::fabs(found - expected) <= 1e-6 * (1 + std::fabs(expected)))) {
        printf("wrong: %s: %.9g instead of %.9g\n", what, found, expected);
        wrong++;
    }
}
#define OK(call) expect((call) == cudaSuccess, #call)

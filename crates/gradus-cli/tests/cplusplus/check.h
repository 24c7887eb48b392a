// A function of six numbers, differentiated both ways and judged by differences.
#pragma once
#include <cmath>
#include <cstdio>
extern "C" {
extern int enzyme_dup, enzyme_const;
}
template <class R, class... A> R __enzyme_autodiff(void *, A...);
template <class R, class... A> R __enzyme_fwddiff(void *, A...);

enum { COUNT = 6 };

template <class F> int judged(F value, const double *tangents, const double *adjoints, double *x)
{
    int bad = 0;
    for (int i = 0; i < COUNT; i++) {
        double h = 1e-5, at = x[i];
        x[i] = at + h;
        double above = value(x, COUNT);
        x[i] = at - h;
        double below = value(x, COUNT);
        x[i] = at;
        double difference = (above - below) / (2 * h);
        if (!(fabs(difference - tangents[i]) <= 1e-6 * (1 + fabs(difference)))
            || !(fabs(adjoints[i] - tangents[i]) <= 1e-11 * (1 + fabs(tangents[i])))) {
            printf("x%d: difference %.12g, forward %.12g, reverse %.12g\n", i, difference,
                   tangents[i], adjoints[i]);
            bad = 1;
        }
    }
    return bad;
}

#define JUDGE(FUNCTION)                                                                          \
    int main()                                                                                   \
    {                                                                                            \
        double x[COUNT] = {0.7, 1.3, 0.4, 2.1, 0.9, 1.7}, tangents[COUNT], adjoints[COUNT] = {0}; \
        __enzyme_autodiff<void>((void *)FUNCTION, enzyme_dup, x, adjoints, enzyme_const,         \
                                (int)COUNT);                                                     \
        for (int i = 0; i < COUNT; i++) {                                                        \
            double along[COUNT] = {0};                                                           \
            along[i] = 1;                                                                        \
            tangents[i] = __enzyme_fwddiff<double>((void *)FUNCTION, enzyme_dup, x, along,       \
                                                   enzyme_const, (int)COUNT);                    \
        }                                                                                        \
        return judged(FUNCTION, tangents, adjoints, x);                                          \
    }

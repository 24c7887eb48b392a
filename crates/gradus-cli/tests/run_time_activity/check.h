/* What the programs share: numbers, a comparison, and the end. */
#include <gradus.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 6 };
static int bad;
#define NEAR(a, b)                                                                       \
    do {                                                                                 \
        const double a_ = (a), b_ = (b);                                                 \
        if (!(fabs(a_ - b_) <= 1e-12 * (1 + fabs(b_)))) {                                \
            printf("%s:%d: %g is not %g\n", __FILE__, __LINE__, a_, b_);                 \
            bad = 1;                                                                     \
        }                                                                                \
    } while (0)

static void fill(double *x, double first)
{
    for (int i = 0; i < N; i++)
        x[i] = first + 0.3 * i;
}

/* What is inactive must be as it was. */
static void unchanged(const double *x, double first)
{
    for (int i = 0; i < N; i++)
        NEAR(x[i], first + 0.3 * i);
}

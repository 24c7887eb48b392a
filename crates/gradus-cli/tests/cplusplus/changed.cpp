// Refused: a handler puts a number that carries a derivative into what it caught, and throws that again.
#include "check.h"

struct Failed {
    int step;
    double by;
};

static double search(double from, int step)
{
    if (from > 1)
        throw Failed{step, 0};
    return from;
}

static double carried(const double *x, int i)
{
    try {
        return search(x[i], i);
    } catch (Failed &what) {
        what.by = x[i] * x[i];
        throw;
    }
}

static double value(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            sum += carried(x, i);
        } catch (const Failed &what) {
            sum += what.by * what.step;
        }
    }
    return sum;
}

JUDGE(value)

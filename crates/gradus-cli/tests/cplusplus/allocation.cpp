// Every form of operator new and delete: sized, aligned, that gives null, of arrays, in place.
#include "check.h"
#include <memory>
#include <new>

struct alignas(64) Wide {
    double v[8];
};

static double value(const double *x, int n)
{
    double sum = 0;
    double *sized = static_cast<double *>(::operator new(n * sizeof(double)));
    for (int i = 0; i < n; i++)
        sized[i] = x[i] * x[i];
    for (int i = 0; i < n; i++)
        sum += sized[i] * x[0];
    ::operator delete(sized, n * sizeof(double));

    double *silent = new (std::nothrow) double[n];
    for (int i = 0; i < n; i++)
        silent[i] = x[i] * 3;
    sum += silent[n - 1] * silent[0];
    delete[] silent;

    void *raw = ::operator new(sizeof(Wide), std::align_val_t(64));
    double *placed = new (raw) double(x[1]);
    sum += *placed * *placed;
    ::operator delete(raw, sizeof(Wide), std::align_val_t(64));

    auto wide = std::make_unique<Wide[]>(n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 8; k++)
            wide[i].v[k] = x[i] * k;
    for (int i = 0; i < n; i++)
        sum += wide[i].v[3] * wide[n - 1 - i].v[5];

    Wide *one = new Wide{{x[0], x[1]}};
    sum += one->v[0] * one->v[1];
    delete one;
    return sum;
}

JUDGE(value)

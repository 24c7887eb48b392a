// Static state: shared, of each thread, with pointers into it.
#include "check.h"

static double shared[8];
static thread_local double own[8];
static thread_local double *cursor = nullptr;
static double *const view = shared + 1;
static int calls;

__attribute__((noinline)) static void put(int i, double x)
{
    own[i] = x * shared[i];
    cursor = &own[i];
    calls++;
}

static double value(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        shared[i] = x[i] * x[i];
        put(i, x[i]);
        sum += *cursor * x[(i + 1) % n];
    }
    for (int i = 0; i + 1 < n; i++)
        sum += view[i] * own[n - 1 - i];
    return sum;
}

JUDGE(value)

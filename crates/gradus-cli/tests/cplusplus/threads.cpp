// A thread of the library's: what is refused is named where the program comes to it, not in the library alone.
#include "check.h"
#include <thread>

static double value(const double *x, int n)
{
    double sum = 0;
    std::thread other([&] { sum = x[0] * x[n - 1]; });
    other.join();
    return sum;
}

JUDGE(value)

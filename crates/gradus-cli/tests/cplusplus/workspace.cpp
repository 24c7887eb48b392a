// A vector that stays from one call to the next, and is ended by the end of the program.
#include "check.h"
#include <vector>

static double value(const double *x, int n)
{
    static std::vector<double> squares;
    squares.resize(n);
    for (int i = 0; i < n; i++)
        squares[i] = x[i] * x[i];
    double sum = 0;
    for (double square : squares)
        sum += square * square;
    return sum;
}

JUDGE(value)

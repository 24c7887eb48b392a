/* Blocks of a length that the loop around them doubles: where a block begins is a sum that the reverse pass
 * takes apart again, in place of a frame for every block. */
#include "page.h"

double f(int n, const double *restrict x)
{
    double sum = 0;
    for (int length = 1; length <= n; length *= 2)
        for (int first = 0; first + length <= n; first += length)
            sum += x[first] * x[first + length - 1];
    return sum;
}
GRADIENT
PAGE(100000)

/* A loop of unknown length pushes a frame for each iteration: from the stack of segments that is a few
 * instructions, from the allocator many. */
#include "page.h"

double f(int n, const double *restrict x)
{
    double r = 1;
    for (int i = 0; i < n; i++) {
        double t = x[i];
        for (unsigned k = (37u * i) % 8191; k; k = k & 1 ? k - 1 : k / 2) t = t * t * 0.1 + 0.3;
        r += t;
    }
    return r;
}
GRADIENT
PAGE(4000)

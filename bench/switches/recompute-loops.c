/* Every sample goes through an array that the next one overwrites: what it held can be kept for all samples
 * at once, or be computed again for one at a time. */
#include "page.h"

double f(int n, const double *restrict x)
{
    double *t = malloc(64 * sizeof *t), total = 0;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < 64; j++) t[j] = sin(x[i] * j);
        double sum = 0;
        for (int j = 0; j < 64; j++) sum += t[j] * t[63 - j] * t[j];
        total += sum * sum;
    }
    free(t);
    return total;
}
GRADIENT
PAGE(4000)

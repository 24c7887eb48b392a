/* A branch on numbers that are overwritten and of no other use: the condition is one byte, what it was
 * computed from three numbers. */
#include "page.h"

double f(int n, const double *restrict x)
{
    double *t = malloc(3 * n * sizeof *t), sum = 0;
    for (int i = 0; i < 3 * n; i++) t[i] = (37 * i) % 11;
    for (int sweep = 0; sweep < 20; sweep++)
        for (int i = 0; i < n; i++) {
            if (t[i] * t[n + i] > 3 * t[2 * n + i]) sum += x[i] * x[i];
            t[i] = 0.25 + 0.75 * t[i];
            t[n + i] = t[n + i] * 0.5 + 0.125;
            t[2 * n + i] = 0.5 * t[2 * n + i];
        }
    free(t);
    return sum;
}
GRADIENT
PAGE(5000)

/* Steps that work in a block of their own, of which the reverse pass reads nothing, as all is linear in it: it is
 * freed where the step ends, instead of waiting for the reverse pass. */
#include "page.h"

double f(int n, const double *restrict x)
{
    double *u = malloc(n * sizeof *u), sum = 0;
    memcpy(u, x, n * sizeof *u);
    for (int s = 0; s < 50; s++) {
        double *t = malloc(n * sizeof *t);
        for (int i = 1; i + 1 < n; i++) t[i] = 0.25 * u[i - 1] + 0.5 * u[i] + 0.25 * u[i + 1];
        for (int i = 1; i + 1 < n; i++) u[i] = t[i];
        free(t);
    }
    for (int i = 0; i < n; i++) sum += u[i] * u[i];
    free(u);
    return sum;
}
GRADIENT
PAGE(100000)

/* A block made and freed in every iteration. n = 4. */
#include <stdlib.h>
double heap_in_a_loop(int n, double *x, double s) {
    double r = 0;
    for (int i = 0; i < n; i++) {
        double *t = malloc((i + 1) * sizeof *t);
        for (int k = 0; k <= i; k++) t[k] = x[k] * s + r;
        for (int k = 1; k <= i; k++) t[k] *= t[k - 1];
        r = 0.5 * t[i];
        free(t);
    }
    return r;
}

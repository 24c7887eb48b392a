/* Two blocks of the heap that change places. n = 6. */
#include <stdlib.h>
double heap(int n, double *x, double s) {
    double *u = malloc(n * sizeof *u), *v = malloc(n * sizeof *v);
    for (int i = 0; i < n; i++) {
        u[i] = x[i];
        v[i] = 0;
    }
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < n; i++) v[i] = u[i] + 0.1 * s * u[i] * (i ? u[i - 1] : 0);
        double *t = u;
        u = v;
        v = t;
    }
    double r = 0;
    for (int i = 0; i < n; i++) r += u[i] * u[i];
    free(u);
    free(v);
    return r;
}

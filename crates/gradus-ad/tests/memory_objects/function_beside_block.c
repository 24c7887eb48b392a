/* A cell may hold a function or a block of numbers. */
#include <stdlib.h>
typedef double (*act)(double);
static double sq(double v) { return v * v; }
static double cube(double v) { return v * v * v; }
double g(double *x, int n) {
    void *slot[4]; /* two functions and two blocks in one array with a variable index */
    for (int k = 0; k < 4; k++) slot[k] = k < 2 ? (void *)(k ? sq : cube) : malloc(n * sizeof(double));
    double *a = slot[2 + n % 2], *b = slot[3 - n % 2], r = 0; act g = slot[n % 2];
    for (int i = 0; i < n; i++) { a[i] = x[i] * x[i]; b[i] = x[i]; }
    for (int i = 0; i < n; i++) r += g(a[i]) * b[n - 1 - i];
    free(a); free(b);
    return r;
}

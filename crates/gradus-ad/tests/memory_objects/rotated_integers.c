/* Results of integer functions are stored beside pointers. */
#include <stdint.h>
#include <stdlib.h>
union word { uint64_t n; double *p; };
double g(double *x, int n) {
    union word slot[4];
    for (int k = 0; k < 4; k++)
        if (k < 2)
#ifdef PLAIN
            slot[k].n = (uint64_t)n + k;
#else
            slot[k].n = ((uint64_t)n << 7) | ((uint64_t)n >> 57); /* llvm.fshl.i64: a new external object */
#endif
        else slot[k].p = malloc(n * sizeof(double));
    double *a = slot[2 + n % 2].p, *b = slot[3 - n % 2].p, r = slot[n % 2].n * x[0];
    for (int i = 0; i < n; i++) { a[i] = x[i] * x[i]; b[i] = x[i]; }
    for (int i = 0; i < n; i++) r += a[i] * b[n - 1 - i];
    free(a); free(b);
    return r;
}

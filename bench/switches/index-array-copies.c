/* Elements of a mesh read their corners through a list, eight times each node, and the nodes move: a copy of the
 * nodes for each sweep is an eighth of what the elements read. What the sweep writes lies elsewhere, which is asked
 * while it runs. */
#include "page.h"

__attribute__((noinline)) static void sweep(long n, const int *list, const double *t, double *out)
{
    for (long i = 0; i < n; i++) {
        const int *c = list + 8 * i;
        double a = t[c[0]] * t[c[1]] - t[c[2]] * t[c[3]], b = t[c[4]] * t[c[5]] - t[c[6]] * t[c[7]];
        out[i] = a * b + t[c[0]] * t[c[7]];
    }
}

double f(int n, const double *restrict x)
{
    double *t = malloc(n * sizeof *t), *out = malloc(n * sizeof *out), total = 0;
    int *list = malloc(8 * n * sizeof *list);
    for (int i = 0; i < n; i++) t[i] = x[i];
    for (int i = 0; i < 8 * n; i++) list[i] = (int)((i / 8 + i % 8 * 5) % n);
    for (int s = 0; s < 10; s++) {
        sweep(n, list, t, out);
        for (int i = 0; i < n; i++) t[i] = 0.9 * t[i] + 0.1 * out[i];
    }
    for (int i = 0; i < n; i++) total += t[i] * t[i];
    free(list);
    free(out);
    free(t);
    return total;
}
GRADIENT
PAGE(100000)

/* Without `restrict` y may overwrite what is read of x: only a test at run time can tell that it does
 * not, and that nothing has to be kept. */
#include "page.h"

static void smooth(int n, const double *x, double *y)
{
    for (int k = 0; k < 20; k++)
        for (int i = 1; i < n; i++) y[i] += x[i] * x[i] * x[i - 1];
}
double f(int n, const double *restrict x)
{
    double *y = calloc(n, sizeof *y), sum = 0;
    smooth(n, x, y);
    for (int i = 0; i < n; i++) sum += y[i] * cos(i);
    free(y);
    return sum;
}
__attribute__((noinline)) static void gradient(int n, const double *x, double *x_adj)
{
    double *y = calloc(n, sizeof *y), *y_adj = calloc(n, sizeof *y);
    for (int i = 0; i < n; i++) y_adj[i] = cos(i);
    __enzyme_autodiff((void *)smooth, enzyme_const, n, enzyme_dup, x, x_adj, enzyme_dup, y, y_adj);
    free(y);
    free(y_adj);
}
PAGE(20000)

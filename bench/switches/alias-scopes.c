/* Each number is scaled by an entry of a table that an index chooses. The reverse pass reads such entries
 * between its writes to the adjoints of x; that no adjoint lies in the table is what axiom S1 says, and where
 * the entries lie cannot be tested before the loop. */
#include "page.h"

enum { KINDS = 64, DEGREE = 12 };

static double curve(int n, const double *x, const double *scale, const int *kind)
{
    double total = 0;
    for (int i = 0; i < n; i++) {
        const double t = scale[kind[i]] * x[i];
        double sum = 1;
        for (int k = DEGREE; k > 0; k--) sum = 1 + sum * t / k;
        total += sum * sum;
    }
    return total;
}

static double *scale;
static int *kind;

static void choose(int n)
{
    if (scale) return;
    scale = malloc(KINDS * sizeof *scale), kind = malloc(n * sizeof *kind);
    for (int i = 0; i < KINDS; i++) scale[i] = 0.5 + 0.4 * cos(1.3 * i);
    for (int i = 0; i < n; i++) kind[i] = (int)((unsigned)i * 2654435761u >> 8) % KINDS;
}

double f(int n, const double *restrict x)
{
    choose(n);
    return curve(n, x, scale, kind);
}

__attribute__((noinline)) static void gradient(int n, const double *x, double *x_adj)
{
    choose(n);
    __enzyme_autodiff((void *)curve, enzyme_const, n, enzyme_dup, x, x_adj, enzyme_const, scale,
                      enzyme_const, kind);
}
PAGE(4000)

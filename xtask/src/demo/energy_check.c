/* Checks the README's example: the gradient that energy.o brings, against the formula and differences. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "energy.h"

double energy(const double *x, int n);

enum { N = 100 };

int main(void)
{
    double x[N], x_adj[N] = {0}, worst_formula = 0, worst_differences = 0;
    for (int i = 0; i < N; i++)
        x[i] = sin(1.7 * i) + 0.01 * i;
    energy_vjp(x, x_adj, N, 1.0);
    for (int i = 0; i < N; i++) {
        double formula = 0;
        if (i > 0)
            formula += (x[i] - x[i - 1]) / sqrt(1 + (x[i] - x[i - 1]) * (x[i] - x[i - 1]));
        if (i + 1 < N)
            formula -= (x[i + 1] - x[i]) / sqrt(1 + (x[i + 1] - x[i]) * (x[i + 1] - x[i]));
        const double kept = x[i], h = 1e-5;
        x[i] = kept + h;
        const double after = energy(x, N);
        x[i] = kept - h;
        const double before = energy(x, N);
        x[i] = kept;
        worst_formula = fmax(worst_formula, fabs(x_adj[i] - formula));
        worst_differences = fmax(worst_differences, fabs(x_adj[i] - (after - before) / (2 * h)));
    }
    const int right = worst_formula < 1e-14 && worst_differences < 1e-8;
    printf("  energy %.6f; gradient within %.1e of the formula, %.1e of differences: %s\n", energy(x, N),
           worst_formula, worst_differences, right ? "right" : "WRONG");
    return right ? 0 : 1;
}

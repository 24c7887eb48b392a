/* The gradient of w·x where A x = b: z in b and -z xᵀ in A, where Aᵀ z = w; of the lower triangle. */
#include "solve.h"
#include <math.h>
#include <stdio.h>

double solve_(int32_t *n, double *a, double *b, double *w);

enum { MOST = 40 };

int main(void)
{
    for (int32_t n = 1; n <= MOST; n++) {
        static double a[MOST * MOST], a_adj[MOST * MOST], b[MOST], b_adj[MOST], w[MOST], unit[MOST];
        double x[MOST], z[MOST];
        for (int i = 0; i < n; i++) {
            b[i] = sin(3 * i + 1);
            w[i] = cos(2 * i);
            b_adj[i] = 0;
            for (int j = 0; j < n; j++) {
                a[i + n * j] = i == j ? n + 1 : sin((i + 1) * (j + 1));
                a_adj[i + n * j] = 0;
            }
        }
        for (int i = 0; i < n; i++) {
            unit[i] = 1;
            x[i] = solve_(&n, a, b, unit);
            z[i] = solve_(&n, a, w, unit);
            unit[i] = 0;
        }
        solve_vjp(&n, a, a_adj, b, b_adj, w, 1);
        for (int i = 0; i < n; i++) {
            if (!(fabs(b_adj[i] - z[i]) <= 1e-11))
                return printf("n = %d: of b(%d) %.17g, not %.17g\n", n, i, b_adj[i], z[i]), 1;
            for (int j = 0; j < n; j++) {
                double both = -z[i] * x[j] - z[j] * x[i];
                double want = i < j ? 0 : i == j ? both / 2 : both;
                if (!(fabs(a_adj[i + n * j] - want) <= 1e-11))
                    return printf("n = %d: of a(%d, %d) %.17g, not %.17g\n", n, i, j, a_adj[i + n * j], want), 1;
            }
        }
    }
    puts("right");
}

/* Memory that is written in place through a pointer whose shadow may be itself: what assumes that shadows
 * are other memory (reordering, vectors, stores that are dropped) must not hold there. */
#include "check.h"

__attribute__((noinline)) static void scale(double *p, double s, int n)
{
    for (int i = 0; i < n; i++)
        p[i] = p[i] * s + 1;
}

static double placed(double *a, double *scratch, double s, int in_a, int n)
{
    double *p = in_a ? a : scratch, r = 0;
    scale(p, s, n);
    for (int i = 0; i < n; i++)
        r += p[i] * p[i] + a[i];
    for (int i = 0; i < n; i++)
        p[i] = 0.5;
    return r;
}

int main(void)
{
    for (int in_a = 0; in_a < 2; in_a++) {
        double a[N], scratch[N], a_adj[N] = {0};
        fill(a, 1);
        fill(scratch, 2);
        gradus_vjp(placed, gradus_dup, a, a_adj, gradus_const, scratch, gradus_const, 3.0, gradus_const, in_a, gradus_const, N);
        for (int i = 0; i < N; i++) {
            const double x = 1 + 0.3 * i;
            NEAR(a_adj[i], in_a ? (2 * (3 * x + 1) + 1) * 3 : 1);
            NEAR(a[i], in_a ? 0.5 : x);
            NEAR(scratch[i], in_a ? 2 + 0.3 * i : 0.5);
        }
    }
    return bad;
}

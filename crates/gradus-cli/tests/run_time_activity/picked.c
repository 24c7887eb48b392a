/* A pointer that leads to active memory or to inactive memory, which only the run tells. */
#include "check.h"

static double picked(const double *a, const double *b, int first, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        const double *p = (i + first) % 2 ? a : b;
        s += p[i] * p[i] * a[0];
    }
    return s;
}

int main(void)
{
    for (int first = 0; first < 2; first++) {
        double a[N], b[N], a_adj[N] = {0}, sum = 0;
        fill(a, 1);
        fill(b, 2);
        gradus_vjp(picked, gradus_dup, a, a_adj, gradus_const, b, gradus_const, first, gradus_const, N);
        for (int i = 0; i < N; i++)
            sum += (i + first) % 2 ? a[i] * a[i] : b[i] * b[i];
        for (int i = 0; i < N; i++)
            NEAR(a_adj[i], ((i + first) % 2 ? 2 * a[i] * a[0] : 0) + (i == 0 ? sum : 0));
        unchanged(a, 1);
        unchanged(b, 2);
        double way[N] = {1, 1, 1, 1, 1, 1}, tangent = 0;
        for (int i = 0; i < N; i++)
            tangent += a_adj[i];
        NEAR(gradus_jvp_double(picked, gradus_dup, a, way, gradus_const, b, gradus_const, first, gradus_const, N), tangent);
    }
    return bad;
}

/* Copies between active and inactive memory, and from memory that is one or the other. */
#include "check.h"

static double copied(const double *a, const double *b, double *out, int from_a, int n)
{
    double t[N], u[N], s = 0;
    memcpy(t, from_a ? a : b, n * sizeof *t);
    memcpy(u, b, n * sizeof *u);
    for (int i = 0; i < n; i++)
        s += t[i] * t[i] * a[i] * u[i];
    memcpy(out, t, n * sizeof *out);
    memmove(u + 1, u, (n - 1) * sizeof *u);
    return s * u[n - 1];
}

int main(void)
{
    for (int from_a = 0; from_a < 2; from_a++) {
        double a[N], b[N], out[N] = {0}, a_adj[N] = {0};
        fill(a, 1);
        fill(b, 2);
        gradus_vjp(copied, gradus_dup, a, a_adj, gradus_const, b, gradus_const, out, gradus_const, from_a, gradus_const, N);
        for (int i = 0; i < N; i++) {
            const double t = from_a ? a[i] : b[i];
            NEAR(a_adj[i], (t * t + (from_a ? 2 * t * a[i] : 0)) * b[i] * b[N - 2]);
            NEAR(out[i], t);
        }
        unchanged(a, 1);
        unchanged(b, 2);
    }
    return bad;
}

/* Compares the parallel gradient with respect to the conductivity with central differences. */
#include <gradus.h>
#include <math.h>
#include <stdio.h>

enum { N = 20000, STEPS = 20 };

double heat(const double *restrict a, double *restrict u, double *restrict next, int n, int steps);

static double a[N], a_adj[N], u[N], u_adj[N], next[N], next_adj[N];

static void start(void)
{
    for (int i = 0; i < N; i++) {
        u[i] = sin(0.01 * i);
        next[i] = 0;
    }
}
static double value(void)
{
    start();
    return heat(a, u, next, N, STEPS);
}

int main(void)
{
    double error = 0;
    for (int i = 0; i < N; i++)
        a[i] = 1 + 0.5 * cos(0.02 * i);
    start();
    gradus_vjp(heat, gradus_dup, a, a_adj, gradus_dup, u, u_adj, gradus_dup, next, next_adj, gradus_const, N,
               gradus_const, STEPS);
    for (int i = 100; i < N; i += N / 5) {
        double kept = a[i], h = 1e-4;
        a[i] = kept + h;
        double above = value();
        a[i] = kept - h;
        double below = value();
        a[i] = kept;
        error = fmax(error, fabs((above - below) / (2 * h) - a_adj[i]));
    }
    printf("largest difference: %s\n", error < 1e-7 ? "below 1e-7" : "too large");
    return error < 1e-7 ? 0 : 1;
}

/* Third derivatives in two orders of modes: against each other, and against differences. */
#include <gradus.h>
#include <math.h>
enum { N = 4 };
static double f(const double *x, int n)
{
    double s = 0, p = 1;
    for (int i = 0; i < n; i++) {
        p *= x[i];
        if (x[i] > 0.5)
            s += sin(x[i]) * x[(i + 1) % n];
        else
            s += exp(x[i]) * p;
    }
    return s * p;
}
static void first(const double *x, double *x_adj, int n) { gradus_vjp(f, gradus_dup, x, x_adj, gradus_const, n); }
/* adds the gradient into g and the Hessian times v into h */
static void second(const double *x, const double *v, double *g, double *h, int n)
{ gradus_jvp(first, gradus_dup, x, v, gradus_dup, g, h, gradus_const, n); }
/* the third derivative along v and w, forward over forward over reverse */
static void third(const double *x, const double *v, const double *w, double *t, int n)
{
    double g[N] = {0}, h[N] = {0}, g_tan[N] = {0};
    gradus_jvp(second, gradus_dup, x, w, gradus_const, v, gradus_dup, g, g_tan, gradus_dup, h, t, gradus_const, n);
}
/* vᵀ H(x) v, and its gradient: reverse over forward over reverse */
static double along(const double *x, const double *v, int n)
{
    double g[N] = {0}, h[N] = {0}, s = 0;
    second(x, v, g, h, n);
    for (int i = 0; i < n; i++) s += h[i] * v[i];
    return s;
}
int main(void)
{
    double x[N] = {0.3, 0.7, 1.1, 0.4}, v[N] = {1, -0.5, 0.25, 2}, t[N] = {0}, r[N] = {0}, worst = 0, size = 0;
    third(x, v, v, t, N);
    gradus_vjp(along, gradus_dup, x, r, gradus_const, v, gradus_const, N);
    for (int i = 0; i < N; i++) {
        const double h = 1e-5, at = x[i];
        x[i] = at + h; double up = along(x, v, N);
        x[i] = at - h; double down = along(x, v, N);
        x[i] = at;
        worst = fmax(worst, fabs((up - down) / (2 * h) - r[i]) * 1e-5);
        worst = fmax(worst, fabs(t[i] - r[i]) * 1e-3);
        size += fabs(r[i]);
    }
    return !(worst < 1e-13 * (1 + size) * 10 && size > 1);
}

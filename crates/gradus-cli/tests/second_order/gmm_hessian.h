/* The course's Gaussian mixture: Hessian-vector products against differences of the gradient, and
 * symmetric. `bench/` is on the include path. */
#include "gmm.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
void __enzyme_fwddiff(void *, ...);

void gmm_gradient(const gmm_ctx *ctx, const double *x, double *x_adj)
{
    __enzyme_autodiff((void *)gmm_objective, enzyme_const, ctx, enzyme_dup, x, x_adj);
}
static void hessian_times(const gmm_ctx *ctx, const double *x, const double *v, double *x_adj, double *hv)
{
    __enzyme_fwddiff((void *)gmm_gradient, enzyme_const, ctx, enzyme_dup, x, v, enzyme_dup, x_adj, hv);
}

enum { D = 4, K = 3, N = 20, INPUTS = K + D * K + K * (D * (D + 1) / 2) };

int main(void)
{
    static double data[N * D], x[INPUTS], u[INPUTS], v[INPUTS], g[4][INPUTS], scratch[INPUTS], hu[INPUTS], hv[INPUTS];
    gmm_ctx ctx = {.n = N, .d = D, .K = K, .m = 2, .gamma = 1.3, .data = data};
    for (int i = 0; i < N * D; i++) data[i] = sin(1.7 * i);
    for (int i = 0; i < INPUTS; i++) x[i] = 0.5 * cos(0.9 * i), u[i] = sin(0.4 * i), v[i] = cos(2.3 * i);
    hessian_times(&ctx, x, u, scratch, hu);
    hessian_times(&ctx, x, v, scratch, hv);
    const double h = 1e-3, steps[4] = {-2, -1, 1, 2}, factors[4] = {1, -8, 8, -1};
    for (int k = 0; k < 4; k++) {
        double at[INPUTS];
        for (int i = 0; i < INPUTS; i++) at[i] = x[i] + steps[k] * h * v[i];
        gmm_gradient(&ctx, at, g[k]);
    }
    double worst = 0, most = 0, left = 0, right = 0;
    for (int i = 0; i < INPUTS; i++) {
        double d = 0;
        for (int k = 0; k < 4; k++) d += factors[k] * g[k][i] / (12 * h);
        worst = fmax(worst, fabs(d - hv[i])), most = fmax(most, fabs(d));
        left += u[i] * hv[i], right += v[i] * hu[i];
    }
    printf("H v against differences: %.1e of %.1e; <u, H v> - <v, H u> = %.1e of %.1e\n", worst, most, left - right, fabs(left));
    return !(worst < 1e-8 * most && fabs(left - right) < 1e-12 * fabs(left));
}

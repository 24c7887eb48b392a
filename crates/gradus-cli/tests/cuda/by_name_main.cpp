/* Calls the gradient that `gradus grad` made, beside one by hand. */
#include <cmath>
#include <cstdio>
#define B 64
extern "C" {
double energy(const double *x, int n);
double energy_vjp(const double *x, double *x_adj, int n, double seed);
}

int main()
{
    const int n = 1000;
    static double x[n], gradient[n];
    for (int i = 0; i < n; i++) x[i] = sin(i + 0.5);
    energy_vjp(x, gradient, n, 1.0);
    for (int b = 0; b * B < n; b++) {
        double part = 0;
        for (int i = b * B; i < n && i < (b + 1) * B; i++) part += x[i] * x[i] * x[i];
        for (int i = b * B; i < n && i < (b + 1) * B; i++) {
            double hand = part / sqrt(1 + part * part) * 3 * x[i] * x[i];
            if (fabs(gradient[i] - hand) > 1e-12) {
                printf("%d: %.17g, not %.17g\n", i, gradient[i], hand);
                return 1;
            }
        }
    }
    return energy(x, n) > 0 ? 0 : 1;
}

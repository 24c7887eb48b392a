/* Compares the gradient of the energy with central differences. */
#include "springs.h"
#include "springs_gradient.h"
#include <math.h>
#include <stdio.h>

enum { N = 50 };

int main(void)
{
    double x[N], gradient[N] = {0}, error = 0;
    for (int i = 0; i < N; i++)
        x[i] = 1.3 * i + 0.2 * sin(i);
    springs_vjp(x, gradient, N, 1.0);
    for (int i = 0; i < N; i++) {
        double kept = x[i], h = 1e-6;
        x[i] = kept + h;
        double above = springs(x, N);
        x[i] = kept - h;
        double below = springs(x, N);
        x[i] = kept;
        error = fmax(error, fabs((above - below) / (2 * h) - gradient[i]));
    }
    printf("largest difference: %s\n", error < 1e-7 ? "below 1e-7" : "too large");
    return error < 1e-7 ? 0 : 1;
}

/* Calls an energy and its derivative, made from another language, and compares with differences. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

#ifdef PLANE /* of a square of numbers, some steps on */
enum { SIDE = 12, COUNT = SIDE * SIDE };
double energy(const double *x, int n, int steps);
void energy_vjp(const double *x, double *x_adj, int n, int steps, double seed);
#define ENERGY(x) energy(x, SIDE, 5)
#define GRADIENT(x, adjoint) energy_vjp(x, adjoint, SIDE, 5, 1.0)
#else /* of a chain of springs */
enum { COUNT = 12 };
double energy(const double *x, size_t n);
void energy_vjp(const double *x, double *x_adj, size_t n, double seed);
#define ENERGY(x) energy(x, COUNT)
#define GRADIENT(x, adjoint) energy_vjp(x, adjoint, COUNT, 1.0)
#endif

int main(void)
{
    double x[COUNT], adjoint[COUNT] = {0}, worst = 0, norm = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = 0.3 + 0.5 * sin(i);
    GRADIENT(x, adjoint);
    for (int i = 0; i < COUNT; i++) {
        const double h = 1e-5, at = x[i];
        x[i] = at + h;
        double up = ENERGY(x);
        x[i] = at - h;
        double down = ENERGY(x);
        x[i] = at;
        worst = fmax(worst, fabs(adjoint[i] - (up - down) / (2 * h)));
        norm += adjoint[i] * adjoint[i];
    }
    printf("%.15g\n", norm);
    if (!(worst < 1e-7))
        fprintf(stderr, "differences say otherwise, by %g\n", worst);
    return !(worst < 1e-7);
}

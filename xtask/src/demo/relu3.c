/* The gradient of x > 0 ? pow(x, 3) : 0, beside the formula that a person would write. */
#include <math.h>

double __enzyme_autodiff(void *function, ...);

static double relu3(double x)
{
    return x > 0 ? pow(x, 3) : 0;
}

double by_gradus(double x);
double by_gradus(double x)
{
    return __enzyme_autodiff((void *)relu3, x);
}

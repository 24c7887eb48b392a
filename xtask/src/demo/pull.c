/* The Earth's distance from the Sun by time, differentiated twice, in all four orders of the modes. */
#include "erfa_demo.h"

extern int enzyme_out;
double __enzyme_fwddiff_double(void *, ...);
double __enzyme_autodiff_double(void *, ...);

static double from_sun(double day)
{
    double sun[2][3], barycentre[2][3];
    eraEpv00(2451545.0, day, sun, barycentre);
    return length(sun[0]);
}
static double forward(double day) { return __enzyme_fwddiff_double((void *)from_sun, enzyme_dup, day, 1.0); }
static double reverse(double day) { return __enzyme_autodiff_double((void *)from_sun, enzyme_out, day); }

int main(void)
{
    double worst = 0, steps = 0;
    for (double day = -3000; day < 9000; day += 400) {
        const double h = 0.05;
        double found[4] = {
            __enzyme_fwddiff_double((void *)reverse, enzyme_dup, day, 1.0),
            __enzyme_autodiff_double((void *)forward, enzyme_out, day),
            __enzyme_fwddiff_double((void *)forward, enzyme_dup, day, 1.0),
            __enzyme_autodiff_double((void *)reverse, enzyme_out, day),
        };
        double difference = (reverse(day - 2 * h) - 8 * reverse(day - h) + 8 * reverse(day + h) - reverse(day + 2 * h)) / (12 * h);
        for (int i = 1; i < 4; i++) worst = fmax(worst, fabs(found[i] - found[0]));
        steps = fmax(steps, fabs(found[0] - difference));
    }
    printf("    the four orders apart:      %.1e au/day^2\n", worst);
    printf("    apart from differences:     %.1e au/day^2\n", steps);
    printf("    the largest is about 5e-6, at the nearest and the farthest point of the orbit\n");
    return !(worst < 1e-16 && steps < 1e-12);
}

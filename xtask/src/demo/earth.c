/* Earth's position, differentiated by time: it must be the velocity that the same function returns.
 * eraEpv00 sums some 4,000 periodic terms for the position and, beside them, their derivatives, which the
 * authors worked out by hand; the derivative here is of the positions alone. */
#include "erfa_demo.h"

int main(void)
{
    double worst = 0;
    puts("  year   speed of Earth (km/s)   d(position)/dt against the velocity returned");
    for (int year = 1900; year <= 2100; year += 25) {
        double sun[2][3], sun_tan[2][3] = {{0}}, centre[2][3], centre_tan[2][3] = {{0}};
        __enzyme_fwddiff((void *)eraEpv00, enzyme_const, ERFA_DJ00, enzyme_dup, days(year), 1.0,
                         enzyme_dup, sun, sun_tan, enzyme_dup, centre, centre_tan);
        const double from_sun = distance(sun_tan[0], sun[1]) / length(sun[1]);
        const double from_centre = distance(centre_tan[0], centre[1]) / length(centre[1]);
        printf("  %d   %21.6f   heliocentric %.1e   barycentric %.1e\n", year,
               length(sun[1]) * ERFA_DAU / 1e3 / ERFA_DAYSEC, from_sun, from_centre);
        worst = fmax(worst, fmax(from_sun, from_centre));
    }
    printf("  largest relative difference %.1e: %s\n", worst, worst < 1e-12 ? "the same" : "NOT THE SAME");
    return worst < 1e-12 ? 0 : 1;
}

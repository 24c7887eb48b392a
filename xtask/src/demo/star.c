/* Where a star is seen: eraAtco13 takes a catalogue position through proper motion, parallax, light
 * deflection, aberration, precession, nutation, Earth rotation and refraction. How far from the zenith it is
 * seen depends on eighteen numbers; one reverse pass gives the derivative by all of them. */
#include "erfa_demo.h"

enum { INPUTS = 18, LEVELS = 8 };

static const struct {
    const char *name, *unit;
    double value, step; /* step: the largest of the differences */
} inputs[INPUTS] = {
    {"right ascension", "rad", 2.71, 1e-3},
    {"declination", "rad", 0.174, 1e-3},
    {"proper motion in RA", "rad/year", 1e-5, 1e-5},
    {"proper motion in Dec", "rad/year", 5e-6, 1e-5},
    {"parallax", "arcsec", 0.1, 0.05},
    {"radial velocity", "km/s", 55.0, 100},
    {"UTC, day", "day", 2456384.5, 1e-3},
    {"UTC, fraction", "day", 0.969254051, 1e-3},
    {"UT1 - UTC", "s", 0.1550675, 1},
    {"longitude", "rad", -0.527800806, 1e-3},
    {"latitude", "rad", -1.2345856, 1e-3},
    {"height", "m", 2738.0, 100},
    {"polar motion x", "rad", 2.47230737e-7, 1e-3},
    {"polar motion y", "rad", 1.82640464e-6, 1e-3},
    {"pressure", "hPa", 731.0, 10},
    {"temperature", "deg C", 12.8, 1},
    {"humidity", "unit", 0.59, 0.1},
    {"wavelength", "um", 0.55, 0.05},
};

/* the observed zenith distance */
static double zenith_distance(const double *x)
{
    double azimuth, zenith, hour, declination, ascension, origins;
    eraAtco13(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11], x[12], x[13],
              x[14], x[15], x[16], x[17], &azimuth, &zenith, &hour, &declination, &ascension, &origins);
    return zenith;
}

/* central differences with halved steps and Richardson's table; the entry that agrees best */
static double differences(double *x, int i, double *error)
{
    double table[LEVELS][LEVELS], best = NAN, h = inputs[i].step;
    *error = INFINITY;
    for (int a = 0; a < LEVELS; a++, h /= 2) {
        const double kept = x[i], high = kept + h, low = kept - h;
        x[i] = high;
        const double after = zenith_distance(x);
        x[i] = low;
        table[a][0] = (after - zenith_distance(x)) / (high - low);
        x[i] = kept;
        double factor = 1;
        for (int b = 1; b <= a; b++) {
            factor *= 4;
            table[a][b] = table[a][b - 1] + (table[a][b - 1] - table[a - 1][b - 1]) / (factor - 1);
            const double rounding = 4.4e-16 / (high - low);
            const double e = fmax(rounding, fmax(fabs(table[a][b] - table[a][b - 1]),
                                                 fabs(table[a][b] - table[a - 1][b - 1])));
            if (e < *error) {
                *error = e;
                best = table[a][b];
            }
        }
    }
    return best;
}

int main(void)
{
    double x[INPUTS], x_adj[INPUTS] = {0};
    int right = 1;
    for (int i = 0; i < INPUTS; i++)
        x[i] = inputs[i].value;
    __enzyme_autodiff((void *)zenith_distance, enzyme_dup, x, x_adj);
    printf("  zenith distance %.9f degrees; by\n", zenith_distance(x) * ERFA_DR2D);
    for (int i = 0; i < INPUTS; i++) {
        double error;
        const double d = differences(x, i, &error);
        const int agrees = fabs(x_adj[i] - d) <= 1e-6 * fmax(fabs(d), fabs(x_adj[i])) + 20 * error;
        right &= agrees;
        printf("  %-20s %16.8e arcsec per %-8s  differences %16.8e%s\n", inputs[i].name,
               x_adj[i] * ERFA_DR2AS, inputs[i].unit, d * ERFA_DR2AS, agrees ? "" : "  NOT EQUAL");
    }
    puts(right ? "  all eighteen equal to differences" : "  NOT ALL EQUAL");
    return right ? 0 : 1;
}

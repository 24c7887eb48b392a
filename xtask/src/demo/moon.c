/* The Moon's position, differentiated by time: equal to differences, and about 3e-6 away from the velocity
 * that eraMoon98 returns. The function's own comment says why (its note 7): the position is computed in the
 * ecliptic of the date and then rotated; that the ecliptic itself turns, 1.4 degrees in a century, is left
 * out of the velocity. The derivative of the code has it: with that turning added, by differences of the
 * rotation, the velocity returned is the derivative to 2e-8; what is left are smaller omissions. */
#include "erfa_demo.h"

enum { LEVELS = 6 };

/* central differences with halved steps and Richardson's table */
static void differences(double date, double velocity[3])
{
    double table[LEVELS][LEVELS][3], h = 0.2;
    for (int a = 0; a < LEVELS; a++, h /= 2) {
        double after[2][3], before[2][3], factor = 1;
        eraMoon98(ERFA_DJ00, date + h, after);
        eraMoon98(ERFA_DJ00, date - h, before);
        for (int i = 0; i < 3; i++)
            table[a][0][i] = (after[0][i] - before[0][i]) / ((date + h) - (date - h));
        for (int b = 1; b <= a; b++) {
            factor *= 4;
            for (int i = 0; i < 3; i++)
                table[a][b][i] =
                    table[a][b - 1][i] + (table[a][b - 1][i] - table[a - 1][b - 1][i]) / (factor - 1);
        }
    }
    memcpy(velocity, table[LEVELS - 1][LEVELS - 1], 3 * sizeof *velocity);
}

/* the rotation at the end of eraMoon98: from the ecliptic of the date */
static void rotation(double date, double r[3][3])
{
    double gamma, phi, psi, epsilon;
    eraPfw06(ERFA_DJ00, date, &gamma, &phi, &psi, &epsilon);
    eraIr(r);
    eraRz(psi, r);
    eraRx(-phi, r);
    eraRz(-gamma, r);
}

/* what the rotation's own change does to a position: (dR/dt) R' p */
static void turning(double date, double position[3], double velocity[3])
{
    const double h = 100;
    double now[3][3], after[3][3], before[3][3], ecliptic[3], ahead[3], behind[3];
    rotation(date, now);
    rotation(date + h, after);
    rotation(date - h, before);
    eraTrxp(now, position, ecliptic);
    eraRxp(after, ecliptic, ahead);
    eraRxp(before, ecliptic, behind);
    for (int i = 0; i < 3; i++)
        velocity[i] = (ahead[i] - behind[i]) / (2 * h);
}

int main(void)
{
    const double to_mm_s = 1e3 * ERFA_DAU / ERFA_DAYSEC;
    double worst = 0, unexplained = 0, least = INFINITY, most = 0;
    puts("                        the derivative, against");
    puts("  year   speed (m/s)    differences    the velocity returned    that and the ecliptic's turning");
    for (int year = 1900; year <= 2100; year += 25) {
        double moon[2][3], moon_tan[2][3] = {{0}}, by_differences[3], turned[3];
        __enzyme_fwddiff((void *)eraMoon98, enzyme_const, ERFA_DJ00, enzyme_dup, days(year), 1.0,
                         enzyme_dup, moon, moon_tan);
        differences(days(year), by_differences);
        turning(days(year), moon[0], turned);
        eraPpp(moon[1], turned, turned);
        const double speed = length(moon[1]);
        const double equal = distance(moon_tan[0], by_differences) / speed;
        const double apart = distance(moon_tan[0], moon[1]) / speed;
        const double rest = distance(moon_tan[0], turned) / speed;
        printf("  %d   %11.3f   %12.1e    %.1e = %.2f mm/s    %.1e\n", year, speed * to_mm_s / 1e3, equal,
               apart, apart * speed * to_mm_s, rest);
        worst = fmax(worst, equal);
        unexplained = fmax(unexplained, rest);
        least = fmin(least, apart);
        most = fmax(most, apart);
    }
    const int right = worst < 1e-9 && unexplained < 4e-8 && least > 1e-6 && most < 5e-6;
    printf("  equal to differences within %.1e; %.1e to %.1e from the velocity returned, which leaves the\n"
           "  turning of the ecliptic out (its note 7): with that, within %.1e: %s\n",
           worst, least, most, unexplained, right ? "as it should be" : "NOT AS IT SHOULD BE");
    return right ? 0 : 1;
}

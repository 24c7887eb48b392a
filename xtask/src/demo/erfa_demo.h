/* What the astronomical programs of the demo share: ERFA's sources, taken in as they are, and the calls
 * that ask for a derivative. erfa_sources.h is written by the demo: the sources that a program needs. */
#ifndef ERFA_DEMO_H
#define ERFA_DEMO_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "erfa.h"
#include "erfam.h"
#include "erfaextra.h"
#include "erfa_sources.h"

extern int enzyme_const, enzyme_dup;
void __enzyme_fwddiff(void *function, ...);
void __enzyme_autodiff(void *function, ...);

static inline double length(const double v[3])
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

static inline double distance(const double a[3], const double b[3])
{
    const double d[3] = {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
    return length(d);
}

/* Days since J2000.0 at noon of a year's first day, near enough. */
static inline double days(int year)
{
    return (year - 2000) * ERFA_DJY;
}

#endif

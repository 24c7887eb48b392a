#ifndef SPRINGS_H
#define SPRINGS_H
/* Energy of a chain of n points that springs of length REST connect. */
double springs(const double *x, int n);
#endif

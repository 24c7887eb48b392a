/* Math functions that give several numbers, some behind pointers. n = 3. */
void sincos(double, double *, double *);
double several_results(int n, double *x, double s) {
    double a, b, whole;
    int e;
    sincos(x[0] * s, &a, &b);
    double c = modf(x[1] * 3.3, &whole), m = frexp(x[2], &e);
    return a * b * whole + c * c * s + m * m * ldexp(s, e);
}

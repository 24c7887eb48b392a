/* Calls that are not inlined, one of which writes through its arguments. n = 4. */
__attribute__((noinline)) static double calls_sum(const double *x, int n, double s) {
    double r = 0;
    for (int i = 0; i < n; i++) r += x[i] * x[i] * s;
    return r;
}
__attribute__((noinline)) static void calls_scale(double *y, const double *x, int n, double *s) {
    for (int i = 0; i < n; i++) y[i] = x[i] * *s;
    *s *= 2;
}
double calls(int n, double *x, double s) {
    double y[4], t = s;
    calls_scale(y, x, n, &t);
    double a = calls_sum(y, n, t);
    calls_scale(y, y, n, &a);
    return calls_sum(y, n, s) * a;
}

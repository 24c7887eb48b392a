/* A carried product: every factor is in every second derivative. n = 5. */
double product(int n, double *x, double s) {
    double r = s;
    for (int i = 0; i < n; i++) r *= x[i];
    return r;
}

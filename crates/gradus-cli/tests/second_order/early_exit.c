/* A counted loop that data may end. n = 6. */
double early_exit(int n, double *x, double s) {
    double r = s;
    int i;
    for (i = 0; i < n; i++) {
        r *= 1 + 0.3 * x[i];
        if (r > 2.5) break;
        r += x[i];
    }
    return r * r + i;
}

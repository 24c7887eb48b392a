/* A local array overwritten in sweeps: its old values are kept. n = 6. */
double overwritten(int n, double *x, double s) {
    double t[8];
    for (int i = 0; i < n; i++) t[i] = x[i] * s;
    for (int k = 0; k < 3; k++)
        for (int i = 1; i < n; i++) t[i] = t[i] * t[i - 1] + 0.5 * t[i];
    double r = 0;
    for (int i = 0; i < n; i++) r += t[i];
    return r;
}

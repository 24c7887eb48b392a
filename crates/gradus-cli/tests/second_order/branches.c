/* Branches on data and on indices. n = 5. */
double branches(int n, double *x, double s) {
    double r = s;
    for (int i = 0; i < n; i++) {
        if (x[i] > 0.9) r = r * x[i] + 1;
        else if (i & 1) r += x[i] * s * s;
        else r -= r * r * 0.1;
    }
    return r;
}

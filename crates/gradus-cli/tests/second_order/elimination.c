/* Gaussian elimination with a choice of pivots, then a solution. n = 4. */
double elimination(int n, double *x, double s) {
    double m[4][4], y[4];
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) m[i][j] = (i == j ? 2 + s : 0.3) * x[(i + j) % n] + 0.1 * i * j;
        y[i] = x[i] * x[i];
    }
    for (int k = 0; k < n; k++) {
        int pivot = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(m[i][k]) > fabs(m[pivot][k])) pivot = i;
        for (int j = 0; j < n; j++) {
            double t = m[k][j];
            m[k][j] = m[pivot][j];
            m[pivot][j] = t;
        }
        double t = y[k];
        y[k] = y[pivot];
        y[pivot] = t;
        for (int i = k + 1; i < n; i++) {
            double f = m[i][k] / m[k][k];
            for (int j = k; j < n; j++) m[i][j] -= f * m[k][j];
            y[i] -= f * y[k];
        }
    }
    double r = 0;
    for (int k = n - 1; k >= 0; k--) {
        for (int j = k + 1; j < n; j++) y[k] -= m[k][j] * y[j];
        y[k] /= m[k][k];
        r += y[k] * y[k];
    }
    return r;
}

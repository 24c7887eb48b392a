/* Sweeps that read a whole array before they overwrite it: copies as a whole pay. n = 6. */
double snapshot(int n, double *x, double s) {
    double t[8], r = 0;
    for (int i = 0; i < n; i++) t[i] = x[i];
    for (int k = 0; k < 4; k++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) sum += t[i] * t[j] * t[j] * (0.01 + 0.001 * (i + j));
        for (int i = 0; i < n; i++) t[i] = sin(t[i] + s * sum);
        r += sum;
    }
    return r;
}

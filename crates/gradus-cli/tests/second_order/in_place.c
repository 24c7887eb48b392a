/* The argument itself is overwritten, and in the end zero. n = 5. */
double in_place(int n, double *x, double s) {
    double r = 0;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < n; i++) {
            r += x[i] * s;
            x[i] = x[i] * x[i] * 0.5;
        }
    x[0] = 0;
    return r;
}

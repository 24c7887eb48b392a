/* A nest left by goto and by return. n = 5. */
double two_ways_out(int n, double *x, double s) {
    double r = 1;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            if (x[j] * r > 4) goto done;
            r += x[i] * s;
            if (r < 0.1) return r * s;
        }
        r *= 0.9;
    }
done:
    return r * r;
}

/* A loop of unknown length inside a counted one: frames and arrays on one stack. n = 4. */
double while_in_for(int n, double *x, double s) {
    double r = 0;
    for (int i = 0; i < n; i++) {
        double t = x[i];
        while (t > 0.3) {
            for (int k = 0; k < 2; k++) t *= 0.8 - 0.1 * s * t;
            r += t * t;
        }
        r *= 1 + 0.1 * t;
    }
    return r;
}

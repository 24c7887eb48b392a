/* Newton iterations: the derivative goes through every step. n = 2. */
double newton(int n, double *x, double s) {
    double y = 1;
    for (int k = 0; k < 50; k++) {
        double f = y * y * y - x[0] * y - s, d = 3 * y * y - x[0], step = f / d;
        y -= step;
        if (fabs(step) < 1e-9) break;
    }
    return y * x[1];
}

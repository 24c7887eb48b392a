/* A nonlinear wave in time steps on an array of variable length. n = 5. */
double time_steps(int n, double *x, double s) {
    double u[n], v[n];
    for (int i = 0; i < n; i++) {
        u[i] = x[i];
        v[i] = 0;
    }
    for (int t = 0; t < 6; t++) {
        for (int i = 0; i < n; i++) {
            double left = u[(i + n - 1) % n], right = u[(i + 1) % n];
            v[i] += 0.1 * (left - 2 * u[i] + right) - 0.05 * s * u[i] * u[i] * u[i];
        }
        for (int i = 0; i < n; i++) u[i] += 0.3 * v[i];
    }
    double r = 0;
    for (int i = 0; i < n; i++) r += u[i] * u[i] + v[i] * v[i];
    return r;
}

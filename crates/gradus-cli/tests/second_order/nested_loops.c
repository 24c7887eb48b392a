/* A nest whose body reads by both indices. n = 4. */
double nested_loops(int n, double *x, double s) {
    double r = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double d = x[i] - s * x[j];
            r += d * d * d;
        }
    return r;
}

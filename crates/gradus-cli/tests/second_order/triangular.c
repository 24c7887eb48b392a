/* A nest whose inner trip count is the outer index; the inner result is carried. n = 5. */
double triangular(int n, double *x, double s) {
    double r = 0;
    for (int i = 0; i < n; i++) {
        double p = s;
        for (int j = 0; j < i; j++) p = p * x[j] + x[i];
        r += p * p;
    }
    return r;
}

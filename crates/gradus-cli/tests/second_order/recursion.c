/* A function that calls itself twice: each call has a tape. n = 4. */
__attribute__((noinline)) static double recursion_step(const double *x, int n, double s) {
    if (n == 0) return s;
    double a = recursion_step(x + 1, n - 1, s * x[0]);
    return a * x[0] + recursion_step(x + 1, n - 1, a);
}
double recursion(int n, double *x, double s) { return recursion_step(x, n, s); }

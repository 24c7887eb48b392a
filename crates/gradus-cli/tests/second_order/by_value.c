/* A large structure passed by value, in a loop. n = 4. */
struct bundle { double a; double v[2]; int k; double b; };
__attribute__((noinline)) static double by_value_step(struct bundle q, double s) {
    q.a = 0.5 * q.a * s;
    return 0.3 * q.a + 0.2 * q.v[q.k & 1] * q.b * q.b + 0.1 * s;
}
double by_value(int n, double *x, double s) {
    double r = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++) {
            struct bundle q = {x[i], {s, 0.5}, k, s};
            q.b = 0.5 * r + 0.5 * q.a;
            r = 0.5 * r + 0.4 * by_value_step(q, x[i]);
        }
    return r;
}

/* Quotients, roots and logarithms behind conditions that the compiler turns into selects. n = 4. */
double guarded(int n, double *x, double s) {
    double z = x[1] - x[1], a = z != 0 ? x[0] / z : s, y = (n & 1) * (1.0 + s * s), q = 0.5 * log(y) + 0.1 / y;
    return a * x[2] * x[2] + (z > 0 ? sqrt(z) : x[0] * x[0]) + (y > 0 ? q : 0) * x[1] + (x[2] > 0.1 ? pow(x[2], 2.5) : s);
}

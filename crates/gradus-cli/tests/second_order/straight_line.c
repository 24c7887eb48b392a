/* Straight-line code with most of the math functions. n = 3. */
double straight_line(int n, double *x, double s) {
    double a = x[0] * x[1] + sin(s), b = exp(a) / (1 + x[2] * x[2]);
    return sqrt(b) * log(1 + a * a) - s / x[1] + pow(x[0], 3) * tanh(x[2]) + atan2(x[1], s) + cbrt(x[2]) * hypot(x[0], s);
}

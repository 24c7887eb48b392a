/* A damped oscillator x'' = -k x - c x', by the classical Runge-Kutta method; p holds k, c, x(0) and x'(0). Writes the
 * differences of x and the data at n times that lie `steps` steps of length h apart. */
static void slope(const double p[4], const double s[2], double d[2])
{
    d[0] = s[1];
    d[1] = -p[0] * s[0] - p[1] * s[1];
}

static void advance(const double p[4], double s[2], double h)
{
    double k1[2], k2[2], k3[2], k4[2], t[2];
    slope(p, s, k1);
    for (int i = 0; i < 2; i++) t[i] = s[i] + h / 2 * k1[i];
    slope(p, t, k2);
    for (int i = 0; i < 2; i++) t[i] = s[i] + h / 2 * k2[i];
    slope(p, t, k3);
    for (int i = 0; i < 2; i++) t[i] = s[i] + h * k3[i];
    slope(p, t, k4);
    for (int i = 0; i < 2; i++) s[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
}

void residual(const double *p, const double *data, double *r, int n, int steps, double h)
{
    double s[2] = {p[2], p[3]};
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < steps; k++) advance(p, s, h);
        r[i] = s[0] - data[i];
    }
}

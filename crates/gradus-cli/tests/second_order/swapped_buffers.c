/* Two arrays on the stack that change places, and a write that data decides. n = 5. */
double swapped_buffers(int n, double *x, double s) {
    double a[5], b[5], *p = a, *q = b;
    for (int i = 0; i < n; i++) {
        a[i] = x[i];
        b[i] = s;
    }
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < n; i++) q[i] = p[i] * p[(i + 1) % n] + s * q[i];
        double *t = p;
        p = q;
        q = t;
        if (p[0] > 1.0) p[1] *= 0.5;
    }
    double r = 0;
    for (int i = 0; i < n; i++) r += p[i] * q[i];
    return r;
}

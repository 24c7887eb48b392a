/* memcpy, memmove and memset between arrays. n = 4. */
double copies(int n, double *x, double s) {
    double t[4], u[4];
    memcpy(t, x, sizeof t);
    memset(u, 0, sizeof u);
    for (int i = 0; i < n; i++) t[i] *= s;
    memmove(u + 1, t, 2 * sizeof *t);
    memcpy(&u[0], &t[3], 8);
    double r = 1;
    for (int i = 0; i < n; i++) r += u[i] * t[i] * t[0];
    return r;
}

/* A switch with a case that falls through. n = 6. */
double switches(int n, double *x, double s) {
    double r = 1;
    for (int i = 0; i < n; i++) switch (i % 4) {
        case 0: r *= x[i]; break;
        case 1: r += s;
        case 2: r -= x[i] * r; break;
        default: r = r * r;
    }
    return r;
}

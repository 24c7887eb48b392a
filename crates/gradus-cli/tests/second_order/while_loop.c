/* A loop of unknown length: each iteration has a frame on the tape. n = 4. */
double while_loop(int n, double *x, double s) {
    double r = s + x[0];
    int k = 0;
    while (r < 20) {
        r = r * 1.3 + x[k % n] * sqrt(r);
        k++;
    }
    return r;
}

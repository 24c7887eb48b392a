/* A global that is state, and one that is a table. n = 3. */
static double globals_table[3] = {1, 2, 3};
static double globals_state;
double globals(int n, double *x, double s) {
    globals_state = s;
    double r = 0;
    for (int i = 0; i < n; i++) {
        globals_state = globals_state * x[i] + globals_table[i];
        r += globals_state * globals_state;
    }
    return r;
}

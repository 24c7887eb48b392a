/* Functions chosen from a constant table. n = 4. */
static double table_square(double x) { return x * x; }
static double table_wave(double x) { return sin(2 * x); }
static double (*const function_table_of[2])(double) = {table_square, table_wave};
double function_table(int n, double *x, double s) {
    double r = s;
    for (int i = 0; i < n; i++) r += function_table_of[i & 1](x[i] * r);
    return r;
}

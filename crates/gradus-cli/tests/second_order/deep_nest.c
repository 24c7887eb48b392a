/* Four loops inside each other, with a number carried through all. n = 3. */
double deep_nest(int n, double *x, double s) {
    double r = s;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < i + 1; k++)
                for (int l = 0; l < 2; l++) r = sin(r * x[i]) + 0.3 * x[(j + k + l) % n] * r;
    return r;
}

/* Heat in a rod with conductivity a: the square of the final temperatures after explicit steps. */
double heat(const double *restrict a, double *restrict u, double *restrict next, int n, int steps)
{
    for (int k = 0; k < steps; k++) {
#pragma omp parallel for
        for (int i = 1; i < n - 1; i++)
            next[i] = u[i] + 0.2 * (a[i] * (u[i + 1] - u[i]) - a[i - 1] * (u[i] - u[i - 1]));
#pragma omp parallel for
        for (int i = 1; i < n - 1; i++)
            u[i] = next[i];
    }
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += u[i] * u[i];
    return sum;
}

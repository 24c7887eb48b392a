/* Energy of n atoms with Lennard-Jones forces; x holds 3 n coordinates. */
double energy(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            double square = 0;
            for (int k = 0; k < 3; k++) {
                double d = x[3 * i + k] - x[3 * j + k];
                square += d * d;
            }
            double inverse = 1 / (square * square * square);
            sum += 4 * (inverse * inverse - inverse);
        }
    return sum;
}

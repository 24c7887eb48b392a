/* All pairs read an array that every sweep overwrites: a copy of it as a whole is n numbers a sweep, what
 * the pairs read is n * n. */
#include "page.h"

double f(int n, const double *restrict x)
{
    double *t = malloc(n * sizeof *t), total = 0;
    for (int i = 0; i < n; i++) t[i] = x[i];
    for (int sweep = 0; sweep < 10; sweep++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++) sum += sin(t[i] * t[(3 * i + j) % n]);
        for (int i = 0; i < n; i++) t[i] = 0.5 * t[i] + 0.1 * sum / n / n;
        total += sum;
    }
    free(t);
    return total;
}
GRADIENT
PAGE(400)

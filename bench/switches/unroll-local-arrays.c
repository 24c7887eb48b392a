/* What an element works out in small arrays of its own: where the loops over these are written out, it is values,
 * which are computed again; else each element is kept, as the next one overwrites it. */
#include "page.h"

double f(int n, const double *restrict x)
{
    const double *w = x;
    double m[4][8], sum = 0;
    for (int e = 1; 8 * e + 8 <= n; e++) {
        for (int i = 0; i < 4; i++) {
            double a = x[8 * e] * w[i] + x[8 * e + 1] * w[i + 1] + x[8 * e + 2] * w[i + 2] + x[8 * e + 3] * w[i + 3];
            double b = x[8 * e + 4] * w[i] + x[8 * e + 5] * w[i + 1] + x[8 * e + 6] * w[i + 2] + x[8 * e + 7] * w[i + 3];
            for (int j = 0; j < 8; j++) m[i][j] = w[j] - a * x[8 * e + j] - b * w[j + 1] * x[8 * e + 7 - j];
        }
        for (int j = 0; j < 8; j++) sum += m[0][j] * m[1][j] * m[2][j] * m[3][j];
    }
    return sum;
}
GRADIENT
PAGE(100000)

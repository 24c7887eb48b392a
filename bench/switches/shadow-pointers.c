/* Rows found through a table that is turned in every sweep: a row's shadow is kept once, the addresses
 * in it are computed from it. */
#include "page.h"

enum { ROWS = 8 };
double f(int n, const double *restrict x)
{
    double *rows[ROWS], sum = 0;
    const int m = n / ROWS;
    for (int r = 0; r < ROWS; r++) {
        rows[r] = malloc(m * sizeof(double));
        for (int i = 0; i < m; i++) rows[r][i] = x[r * m + i];
    }
    for (int sweep = 0; sweep < 16; sweep++) {
        double *first = rows[0];
        for (int r = 0; r + 1 < ROWS; r++) rows[r] = rows[r + 1];
        rows[ROWS - 1] = first;
        for (int i = 0; i < m; i++) sum += first[i] * (1 + sweep);
    }
    for (int r = 0; r < ROWS; r++) free(rows[r]);
    return sum;
}
GRADIENT
PAGE(8000)

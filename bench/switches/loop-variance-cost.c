/* Every row is paired with every number of x, and all rows change in every sweep. What is read of a row
 * varies in the sweeps and the rows, not in the numbers that it is paired with: kept by variance it
 * takes a number per row and sweep, kept where it is read n times that. */
#include "page.h"

enum { ROWS = 50 };
double f(int n, const double *restrict x)
{
    double *rows[ROWS], total = 0;
    for (int r = 0; r < ROWS; r++) {
        rows[r] = malloc(sizeof(double));
        rows[r][0] = x[r % n];
    }
    for (int sweep = 0; sweep < 10; sweep++) {
        double sum = 0;
        for (int i = 0; i < n; i++)
            for (int r = 0; r < ROWS; r++) sum += sin(rows[r][0] * x[i]);
        for (int r = 0; r < ROWS; r++) rows[r][0] = 0.5 * rows[r][0] + 0.1 * sum / n / ROWS;
        total += sum;
    }
    for (int r = 0; r < ROWS; r++) free(rows[r]);
    return total;
}
GRADIENT
PAGE(1000)

/* Rows found through a table of pointers. n = 4. */
#include <stdlib.h>
double table_of_rows(int n, double *x, double s) {
    double **rows = malloc(n * sizeof *rows);
    for (int i = 0; i < n; i++) {
        rows[i] = malloc(2 * sizeof(double));
        rows[i][0] = x[i];
        rows[i][1] = s * i;
    }
    double r = 0;
    for (int i = 0; i < n; i++) {
        rows[i][0] *= rows[(i + 1) % n][1];
        r += rows[i][0] * rows[i][0];
    }
    for (int i = 0; i < n; i++) free(rows[i]);
    free(rows);
    return r;
}

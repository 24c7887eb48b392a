/* Pointers loaded from memory with a shadow and from inactive memory, which lead to the same rows. */
#include "check.h"

struct table {
    int rows;
    const double *row[3];
};

static double rows(const struct table *t, const struct table *fixed, const double *x, int n)
{
    double s = 0;
    for (int r = 0; r < t->rows; r++)
        for (int i = 0; i < n; i++)
            s += t->row[r][i] * t->row[r][i] * (r + 1) + fixed->row[r][i] * x[i];
    return s;
}

int main(void)
{
    double a[N], b[N], c[N], x[N], a_adj[N] = {0}, b_adj[N] = {0}, c_adj[N] = {0}, x_adj[N] = {0};
    fill(a, 1);
    fill(b, 2);
    fill(c, 3);
    fill(x, 4);
    struct table t = {3, {a, b, c}}, t_adj = {3, {a_adj, b_adj, c_adj}};
    gradus_vjp(rows, gradus_dup, &t, &t_adj, gradus_const, &t, gradus_dup, x, x_adj, gradus_const, N);
    for (int i = 0; i < N; i++) {
        NEAR(a_adj[i], 2 * a[i]);
        NEAR(b_adj[i], 4 * b[i]);
        NEAR(c_adj[i], 6 * c[i]);
        NEAR(x_adj[i], a[i] + b[i] + c[i]);
    }
    unchanged(a, 1);
    unchanged(b, 2);
    unchanged(c, 3);
    return bad;
}

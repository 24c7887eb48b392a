/* Tables whose shadows have no memory for some entries: there stands the entry itself. */
#include "check.h"

struct table {
    double *in[3], *out;
};

static double rows(const double *const *row, int n)
{
    double s = 0;
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < n; i++)
            s += row[r][i] * row[r][i] * (r + 1);
    return s;
}

/* What is computed lies in inactive memory on the way. */
static double through(struct table *t, int n)
{
    double s = 0;
    for (int r = 0; r < 3; r++) {
        memcpy(t->out, t->in[r], n * sizeof *t->out);
        for (int i = 0; i < n; i++)
            s += t->out[i] * (r + 1) + t->in[r][i] * t->in[r][i];
    }
    memset(t->out, 0, n * sizeof *t->out);
    for (int i = 0; i < n; i++)
        t->out[i] = 1 + 0.3 * i;
    return s;
}

struct node {
    double value;
    struct node *next;
};

static double chain(const struct node *list)
{
    double product = 1;
    for (; list; list = list->next)
        product *= list->value;
    return product;
}

static double *row_of(double *const *row, int r) { return row[r]; }

__attribute__((noinline)) static void scale(double *x, double by, int n)
{
    for (int i = 0; i < n; i++)
        x[i] *= by;
}

/* Inactive rows are written, too. */
static double scaled(double *const *row, double by, int n)
{
    double s = 0;
    for (int r = 0; r < 2; r++) {
        scale(row_of(row, r), by, n);
        for (int i = 0; i < n; i++)
            s += row_of(row, r)[i];
    }
    return s;
}

static void tables(double *a, double *b, double *c, double *b_adj)
{
    double *row[] = {a, b, c}, *row_adj[] = {a, b_adj, c};
    gradus_vjp(rows, gradus_dup, (const double *const *)row, (const double *const *)row_adj, gradus_const, N);
    for (int i = 0; i < N; i++)
        NEAR(b_adj[i], 4 * b[i]);
    double ways = 0, way[N], *row_tan[] = {a, way, c};
    for (int i = 0; i < N; i++) {
        way[i] = 1 - 0.1 * i;
        ways += 4 * b[i] * way[i];
    }
    NEAR(gradus_jvp_double(rows, gradus_dup, (const double *const *)row, (const double *const *)row_tan, gradus_const, N), ways);
    memset(b_adj, 0, N * sizeof *b_adj);
    double out[N], out_adj[N] = {0};
    fill(out, 1);
    struct table t = {{a, b, c}, out}, t_adj = {{a, b_adj, c}, out_adj};
    gradus_vjp(through, gradus_dup, &t, &t_adj, gradus_const, N);
    for (int i = 0; i < N; i++) {
        NEAR(b_adj[i], 2 + 2 * b[i]);
        NEAR(out_adj[i], 0);
    }
    t_adj.out = out;
    memset(b_adj, 0, N * sizeof *b_adj);
    gradus_vjp(through, gradus_dup, &t, &t_adj, gradus_const, N);
    for (int i = 0; i < N; i++)
        NEAR(b_adj[i], 2 * b[i]);
    unchanged(out, 1);
    unchanged(a, 1);
    unchanged(b, 2);
    unchanged(c, 3);
}

int main(void)
{
    double a[N], b[N], c[N], b_adj[N] = {0};
    fill(a, 1);
    fill(b, 2);
    fill(c, 3);
    tables(a, b, c, b_adj);
    struct node last = {5, 0}, second = {3, &last}, first = {2, &second};
    struct node second_adj = {0, &last}, first_adj = {0, &second_adj};
    gradus_vjp(chain, gradus_dup, &first, &first_adj);
    NEAR(first_adj.value, 15);
    NEAR(second_adj.value, 10);
    NEAR(last.value, 5);
    double *row[] = {a, b}, *row_adj[] = {a, b_adj}, by = 0, both = 0;
    for (int i = 0; i < N; i++) {
        b_adj[i] = 0;
        both += b[i];
    }
    by = gradus_vjp_double(scaled, gradus_dup, row, row_adj, gradus_out, 2.0, gradus_const, N);
    NEAR(by, both);
    for (int i = 0; i < N; i++) {
        NEAR(b_adj[i], 2);
        NEAR(a[i], 2 * (1 + 0.3 * i));
    }
    return bad;
}

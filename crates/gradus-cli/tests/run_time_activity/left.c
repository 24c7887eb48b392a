/* Blocks that are made inside and left in memory of the caller: their shadows are left, too. */
#include "check.h"

struct box {
    double *p;
    struct box *next;
};

static double kept(struct box *b, const double *x, int n)
{
    b->p = malloc(n * sizeof *b->p);
    double *scratch = malloc(n * sizeof *scratch), s = 0;
    for (int i = 0; i < n; i++) {
        scratch[i] = x[i] * x[i];
        b->p[i] = scratch[i] * x[i];
    }
    for (int i = 0; i < n; i++)
        s += b->p[i];
    free(scratch);
    return s;
}

static double chained(struct box *b, const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < 2; i++) {
        b->next = calloc(1, sizeof *b->next);
        b = b->next;
        s += kept(b, x, n) * (i + 1);
    }
    return s;
}

int main(void)
{
    double x[N], x_adj[N] = {0};
    fill(x, 1);
    struct box b = {0}, b_adj = {0};
    gradus_vjp(kept, gradus_dup, &b, &b_adj, gradus_dup, x, x_adj, gradus_const, N);
    for (int i = 0; i < N; i++) {
        NEAR(x_adj[i], 3 * x[i] * x[i]);
        NEAR(b.p[i], x[i] * x[i] * x[i]);
        NEAR(b_adj.p[i], 0);
        x_adj[i] = 0;
    }
    free(b.p);
    free(b_adj.p);
    gradus_vjp(chained, gradus_dup, &b, &b_adj, gradus_dup, x, x_adj, gradus_const, N);
    for (int i = 0; i < N; i++) {
        NEAR(x_adj[i], 9 * x[i] * x[i]);
        NEAR(b_adj.next->p[i] + b_adj.next->next->p[i], 0);
    }
    struct box *both[] = {b.next, b_adj.next};
    for (int k = 0; k < 2; k++) {
        free(both[k]->next->p);
        free(both[k]->next);
        free(both[k]->p);
        free(both[k]);
    }
    return bad;
}

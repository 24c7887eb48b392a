/* Pointers that are null, and then their shadows are. */
#include "check.h"

struct part {
    const double *x, *weight;
    const struct part *next;
};

static double parts(const struct part *p, const double *more, int n)
{
    double s = 0;
    for (; p; p = p->next)
        for (int i = 0; i < n; i++)
            s += p->x[i] * p->x[i] * (p->weight ? p->weight[i] : 2);
    return more ? s * more[0] : s;
}

int main(void)
{
    double a[N], b[N], w[N], a_adj[N] = {0}, b_adj[N] = {0}, w_adj[N] = {0};
    fill(a, 1);
    fill(b, 2);
    fill(w, 3);
    struct part last = {b, w, NULL}, last_adj = {b_adj, w_adj, NULL};
    struct part first = {a, NULL, &last}, first_adj = {a_adj, NULL, &last_adj};
    gradus_vjp(parts, gradus_dup, &first, &first_adj, gradus_dup, NULL, NULL, gradus_const, N);
    for (int i = 0; i < N; i++) {
        NEAR(a_adj[i], 4 * a[i]);
        NEAR(b_adj[i], 2 * b[i] * w[i]);
        NEAR(w_adj[i], b[i] * b[i]);
    }
    return bad;
}

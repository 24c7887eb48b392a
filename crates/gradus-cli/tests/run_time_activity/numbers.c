/* Addresses that are kept as integers: in a structure, in a table, picked in a loop. */
#include "check.h"
#include <stdint.h>

struct box {
    uint64_t bits;
};

__attribute__((noinline)) static double squares(const struct box *box, int n)
{
    const double *x = (const double *)box->bits;
    double s = 0;
    for (int i = 0; i < n; i++)
        s += x[i] * x[i];
    return s;
}

static double boxed(const double *a, int n)
{
    struct box box = {(uint64_t)a};
    return squares(&box, n);
}

/* The checker's own calls would be handed the table's address. */
__attribute__((no_sanitize("undefined")))
static double tabled(const double *a, const double *b, int first, int n)
{
    uintptr_t table[2] = {(uintptr_t)a, (uintptr_t)b};
    double s = 0;
    for (int i = 0; i < n; i++) {
        struct box box = {table[(i + first) % 2]};
        s += squares(&box, n) * (i + 1);
    }
    return s;
}

static double carried(const double *a, const double *b, int n)
{
    uintptr_t now = (uintptr_t)a, other = (uintptr_t)b;
    double s = 0;
    for (int i = 0; i < n; i++) {
        const double *x = (const double *)now;
        s += x[i] * x[i] * x[0];
        uintptr_t next = x[i] > 1.5 ? other : now;
        other = next == now ? other : now;
        now = next;
    }
    return s;
}

int main(void)
{
    double a[N], b[N];
    fill(a, 1);
    fill(b, 2);
    double a_adj[N] = {0}, b_adj[N] = {0};
    gradus_vjp(boxed, gradus_dup, a, a_adj, gradus_const, N);
    for (int i = 0; i < N; i++)
        NEAR(a_adj[i], 2 * a[i]);

    double a_tabled[N] = {0}, b_tabled[N] = {0};
    gradus_vjp(tabled, gradus_dup, a, a_tabled, gradus_dup, b, b_tabled, gradus_const, 0, gradus_const, N);
    for (int i = 0; i < N; i++) {
        NEAR(a_tabled[i], 2 * a[i] * (1 + 3 + 5));
        NEAR(b_tabled[i], 2 * b[i] * (2 + 4 + 6));
    }

    gradus_vjp(carried, gradus_dup, a, memset(a_adj, 0, sizeof a_adj), gradus_dup, b, b_adj, gradus_const, N);
    double from_a[N] = {0}, from_b[N] = {0};
    for (int i = 0, in_b = 0; i < N; i++) {
        const double *x = in_b ? b : a;
        double *own = in_b ? from_b : from_a;
        own[i] += 2 * x[i] * x[0];
        own[0] += x[i] * x[i];
        in_b = x[i] > 1.5 ? !in_b : in_b;
    }
    for (int i = 0; i < N; i++) {
        NEAR(a_adj[i], from_a[i]);
        NEAR(b_adj[i], from_b[i]);
    }

    unchanged(a, 1);
    unchanged(b, 2);
    double way[N] = {1, 1, 1, 1, 1, 1}, tangent = 0;
    for (int i = 0; i < N; i++)
        tangent += a_tabled[i];
    NEAR(gradus_jvp_double(tabled, gradus_dup, a, way, gradus_const, b, gradus_const, 0, gradus_const, N), tangent);
    return bad;
}

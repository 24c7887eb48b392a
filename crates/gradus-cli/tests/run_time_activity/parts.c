/* Functions that return addresses side by side: some of active memory, some of a table, some of what only the
 * run tells; and structures of such addresses that are filled at once. */
#include "check.h"

static double numbers[N], others[N];
static const double table[N] = {1, 2, 3, 4, 5, 6};
struct places {
    const double *fixed;
    double *a, *b;
};
struct scaled {
    double by;
    double *a;
};

__attribute__((noinline)) static struct places found(int k, const double *x)
{
    struct places p = {k > 2 ? table : x, numbers, others};
    if (k > 100)
        p.a = 0;
    return p;
}

__attribute__((noinline)) static struct scaled scaled(int k, double by)
{
    struct scaled p = {by * by, numbers};
    if (k > 100)
        p.a = 0;
    return p;
}

__attribute__((noinline)) static void swap(struct places *p)
{
    double *a = p->a;
    p->a = p->b;
    p->b = a;
}

static double parts(const double *x, int n)
{
    for (int i = 0; i < n; i++) {
        found(0, x).a[i] = x[i] * x[i];
        others[i] = 3;
    }
    struct places q = {table, numbers, others};
    double s = 0;
    for (int i = 0; i < n; i++) {
        struct places p = found(i, x);
        struct scaled v = scaled(i, 2.0);
        swap(&q);
        s += p.a[i] * p.fixed[i] + v.a[i] * v.by + q.a[i] * q.fixed[i];
    }
    return s;
}

int main(void)
{
    double x[N], adj[N] = {0}, tangent = 0, way[N] = {1, 1, 1, 1, 1, 1};
    fill(x, 1);
    gradus_vjp(parts, gradus_dup, x, adj, gradus_const, N);
    for (int i = 0; i < N; i++) {
        const double of_found = i > 2 ? 2 * x[i] * table[i] : 3 * x[i] * x[i];
        const double of_swapped = i % 2 ? 2 * x[i] * table[i] : 0;
        NEAR(adj[i], of_found + 2 * x[i] * 4 + of_swapped);
        tangent += adj[i];
    }
    NEAR(gradus_jvp_double(parts, gradus_dup, x, way, gradus_const, N), tangent);
    unchanged(x, 1);
    return bad;
}

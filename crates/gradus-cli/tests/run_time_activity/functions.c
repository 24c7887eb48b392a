/* Pointers to functions: they are their own shadows, in memory too. */
#include "check.h"

struct step {
    double (*apply)(double);
    double scale;
    const struct step *next;
};

static double square(double x) { return x * x; }
static double half(double x) { return 0.5 * x; }

static double chain(const struct step *s, double x)
{
    for (; s; s = s->next)
        x = s->apply(x) * s->scale;
    return x;
}

int main(void)
{
    /* ((x² a)² b) / 2 c */
    const double x = 1.5, a = 2, b = 3, c = 5;
    struct step third = {half, c, NULL}, second = {square, b, &third}, first = {square, a, &second};
    struct step third_adj = {half, 0, NULL}, second_adj = {square, 0, &third_adj},
                first_adj = {square, 0, &second_adj};
    const double value = x * x * x * x * a * a * b * 0.5 * c;
    NEAR(chain(&first, x), value);
    const double x_adj = gradus_vjp_double(chain, gradus_dup, &first, &first_adj, gradus_out, x);
    NEAR(x_adj, 4 * value / x);
    NEAR(first_adj.scale, 2 * value / a);
    NEAR(second_adj.scale, value / b);
    NEAR(third_adj.scale, value / c);
    return bad;
}

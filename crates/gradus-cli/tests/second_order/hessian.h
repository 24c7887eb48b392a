/* Second derivatives of `double NAME(int n, double *x, double s)`, made in three ways, and held to
 * each other and to differences of the gradient. SECOND and ROW make them by calls; FOUND and FOUND_ROW
 * take those that `gradus grad` made of its own output, of which there is only the first way.
 *
 *   forward over reverse   the tangent of the gradient: H v
 *   reverse over forward   the gradient of <g, v>: H v, and beside it g as the gradient by v
 *   reverse over reverse   the gradient of <g, u>: H u
 *
 * H is of x and s together; what NAME leaves in x counts with weights that every run starts from. */
#include <math.h>
#include <stdio.h>
#include <string.h>

extern int enzyme_const, enzyme_dup, enzyme_out;
struct two { double s, v; };
double __enzyme_autodiff(void *, ...);
struct two __enzyme_autodiff_two(void *, ...);
double __enzyme_fwddiff(void *, ...);

enum { MOST = 8 };
/* The inputs: x, then s. */
typedef double vector[MOST + 1];

struct page {
    const char *name;
    int n;
    double (*gradient)(int n, double *x, double *x_adj, double s);
    double (*forward_over_reverse)(int n, double *x, double *x_tan, double *x_adj, double *x_adj_tan, double s, double s_tan);
    struct two (*reverse_over_forward)(int n, double *x, double *x_adj, double *v, double *v_adj, double s, double s_tan);
    double (*reverse_over_reverse)(int n, double *x, double *x_adj, double *u, double *u_adj, double s);
};

#define SECOND(name) \
    static double name##_gradient(int n, double *x, double *x_adj, double s) { \
        return __enzyme_autodiff((void *)name, enzyme_const, n, enzyme_dup, x, x_adj, enzyme_out, s); } \
    static double name##_hvp(int n, double *x, double *x_tan, double *x_adj, double *x_adj_tan, double s, double s_tan) { \
        return __enzyme_fwddiff((void *)name##_gradient, enzyme_const, n, enzyme_dup, x, x_tan, \
                                enzyme_dup, x_adj, x_adj_tan, enzyme_dup, s, s_tan); } \
    static double name##_slope(int n, double *x, double *v, double s, double s_tan) { \
        return __enzyme_fwddiff((void *)name, enzyme_const, n, enzyme_dup, x, v, enzyme_dup, s, s_tan); } \
    static struct two name##_slope_gradient(int n, double *x, double *x_adj, double *v, double *v_adj, double s, double s_tan) { \
        return __enzyme_autodiff_two((void *)name##_slope, enzyme_const, n, enzyme_dup, x, x_adj, \
                                     enzyme_dup, v, v_adj, enzyme_out, s, enzyme_out, s_tan); } \
    static double name##_twice(int n, double *x, double *x_adj, double *u, double *u_adj, double s) { \
        return __enzyme_autodiff((void *)name##_gradient, enzyme_const, n, enzyme_dup, x, x_adj, \
                                 enzyme_dup, u, u_adj, enzyme_out, s); }
#define ROW(name, n) {#name, n, name##_gradient, name##_hvp, name##_slope_gradient, name##_twice}

#define FOUND(name) \
    double name##_vjp(int n, void *x, void *x_adj, double s, double seed); \
    double name##_vjp_jvp(int n, void *x, void *x_tan, void *x_adj, void *x_adj_tan, double s, double s_tan, double seed); \
    static double name##_gradient(int n, double *x, double *x_adj, double s) { return name##_vjp(n, x, x_adj, s, 1); } \
    static double name##_hvp(int n, double *x, double *x_tan, double *x_adj, double *x_adj_tan, double s, double s_tan) { \
        return name##_vjp_jvp(n, x, x_tan, x_adj, x_adj_tan, s, s_tan, 1); }
#define FOUND_ROW(name, n) {#name, n, name##_gradient, name##_hvp, 0, 0}

static void copy(vector to, const vector from) { memcpy(to, from, sizeof(vector)); }
static void clear(vector to) { memset(to, 0, sizeof(vector)); }

/* The gradient at x by x and s; x counts afterwards with the weights w. */
static void gradient(const struct page *p, const vector x, const vector w, vector g) {
    vector at;
    copy(at, x);
    copy(g, w);
    g[p->n] = p->gradient(p->n, at, g, x[p->n]);
}
static void hvp(const struct page *p, const vector x, const vector w, const vector v, vector hv) {
    vector at, along, adj;
    copy(at, x), copy(along, v), copy(adj, w), clear(hv);
    hv[p->n] = p->forward_over_reverse(p->n, at, along, adj, hv, x[p->n], v[p->n]);
}
static void slope(const struct page *p, const vector x, const vector w, const vector v, vector hv, vector g) {
    vector at, along;
    copy(at, x), copy(along, v), clear(hv), copy(g, w);
    struct two last = p->reverse_over_forward(p->n, at, hv, along, g, x[p->n], v[p->n]);
    hv[p->n] = last.s, g[p->n] = last.v;
}
/* H u for u = (v, 1): the seed of what is returned is 1. */
static void twice(const struct page *p, const vector x, const vector w, const vector v, vector hu) {
    vector at, adj, seed;
    copy(at, x), copy(adj, w), copy(seed, v), clear(hu);
    hu[p->n] = p->reverse_over_reverse(p->n, at, hu, adj, seed, x[p->n]);
}

static double size(const struct page *p, const vector a) {
    double most = 1;
    for (int i = 0; i <= p->n; i++) most = fmax(most, fabs(a[i]));
    return most;
}
static int apart(const struct page *p, const char *what, const vector a, const vector b, double limit) {
    double scale = size(p, b);
    for (int i = 0; i <= p->n; i++)
        if (!(fabs(a[i] - b[i]) <= limit * scale)) {
            printf("%s, %s: input %d gives %.15g, not %.15g\n", p->name, what, i, a[i], b[i]);
            return 1;
        }
    return 0;
}

/* H v by differences of the gradient, of fourth order. */
static void differences(const struct page *p, const vector x, const vector w, const vector v, vector hv) {
    const double h = 2e-4, steps[4] = {-2, -1, 1, 2}, factors[4] = {1, -8, 8, -1};
    clear(hv);
    for (int k = 0; k < 4; k++) {
        vector at, g;
        for (int i = 0; i <= p->n; i++) at[i] = x[i] + steps[k] * h * v[i];
        gradient(p, at, w, g);
        for (int i = 0; i <= p->n; i++) hv[i] += factors[k] * g[i] / (12 * h);
    }
}

static int check(const struct page *p) {
    vector x, w, u, v, g, g2, hu, hv, found;
    clear(x), clear(w), clear(u), clear(v);
    for (int i = 0; i <= p->n; i++) {
        x[i] = i < p->n ? 0.4 + 0.37 * ((i * 7 + 3) % 5) : 0.8;
        u[i] = 1 - 0.3 * i;
        v[i] = 0.5 + 0.25 * ((i * 3) % 4);
        w[i] = 0.1 * (i % 3);
    }
    w[p->n] = 0, u[p->n] = 1;
    int wrong = 0;
    gradient(p, x, w, g);
    hvp(p, x, w, v, hv);
    hvp(p, x, w, u, hu);
    differences(p, x, w, v, found);
    wrong |= apart(p, "forward over reverse against differences", hv, found, 1e-6);
    if (p->reverse_over_forward) {
        slope(p, x, w, v, found, g2);
        wrong |= apart(p, "reverse over forward", found, hv, 1e-11);
        wrong |= apart(p, "the gradient beside it", g2, g, 1e-11);
    }
    if (p->reverse_over_reverse) {
        twice(p, x, w, u, found);
        wrong |= apart(p, "reverse over reverse", found, hu, 1e-11);
    }
    double left = 0, right = 0, terms = 0;
    for (int i = 0; i <= p->n; i++)
        left += u[i] * hv[i], right += v[i] * hu[i], terms += fabs(u[i] * hv[i]) + fabs(v[i] * hu[i]);
    if (!(fabs(left - right) <= 1e-12 * terms + 1e-14)) {
        printf("%s: <u, H v> = %.15g, <v, H u> = %.15g\n", p->name, left, right);
        wrong = 1;
    }
    if (terms == 0) {
        printf("%s: no second derivative at all\n", p->name);
        wrong = 1;
    }
    return wrong;
}

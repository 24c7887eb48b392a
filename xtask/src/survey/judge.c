/* Judges a derivative by central differences: every entry of the Jacobian, at every test point.
 *
 * Differences: from each of many first steps a table of halved steps with Richardson's extrapolation
 * (Ridders 1982) gives a value and an estimate of its error; two neighbouring tables give one value, whose
 * error is at least their distance. The steps grow from the smallest: a larger one sharpens the value as
 * long as it stays within the error known so far, and is not believed beyond it. (Most of these functions
 * have periods: over steps that are long beside one, differences agree with each other and are wrong.)
 *
 * An entry is wrong where it is further from the differences than 1e-6 of its size and 50 times the
 * error together. It is unsure where the error alone is more than a thousandth of the larger of the two,
 * and more than 1e-9 of the results' size over the argument's; and where the two differ by less than the
 * last bits of y could show.
 *
 * Where a derivative departs from these, the differences of each side are taken too: at a kink either
 * side's derivative is right, and what lies between them; at the edge of the function's domain the one
 * inside. An entry is isolated where the derivative is finite, and right a little to each side of the
 * point: there the code branches on equality (`if (x == 0) return 0;`), and what it does at the point has
 * the derivative that it has.
 *
 * An entry is flat where the derivative is not finite, but right a little to each side, and the computed
 * function does not change by a single bit about the point, over steps at which its slope would change a
 * hundred thousand last bits (`sqrt(1 - sin(x) * sin(x))` at pi / 2, where the difference rounds to zero):
 * rounding left no function there that has this slope, and the chain rule goes through a root of zero. */
#include "judge.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEVELS = 7 };

typedef struct {
    double value, error;
} estimate;

typedef struct {
    long entries, wrong, unsure, isolated, flat;
    double worst; /* relative distance beyond the estimate, of the worst entry */
    int row, column;
    double derivative, difference;
} verdict;

static void *checked(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p)
        abort();
    return p;
}

/* y at x with entry i replaced; false where the function does not go on as at the point */
static bool at(const judge_point *p, double *x, int i, double xi, int status, double *y)
{
    const double kept = x[i];
    int now = 0;
    x[i] = xi;
    judge_primal(x, y, p->fixed, p->text, &now);
    x[i] = kept;
    if (now != status)
        return false;
    for (int j = 0; j < judge_ny; j++)
        if (!isfinite(y[j]))
            return false;
    return true;
}

/* How much of every result is rounding: the last bit of its own size, or half that of the largest result
 * (a small entry of a matrix is made of numbers of the matrix's size). */
static void rounding(const double *y, double *noise)
{
    double largest = 0;
    for (int j = 0; j < judge_ny; j++)
        largest = fmax(largest, fabs(y[j]));
    for (int j = 0; j < judge_ny; j++)
        noise[j] = 2.3e-16 * fmax(fabs(y[j]), 0.5 * largest);
}

/* One table for entry i from step h: what it says of every result. `side` is 0 for central differences,
 * 1 or -1 for those of one side alone. */
static void ridders(const judge_point *p, double *x, int i, double h, int side, int status,
                    const double *noise, double *work, estimate *found)
{
    const int ny = judge_ny;
    double *up = work, *down = work + ny, *table = work + 2 * ny; /* [level][order][ny] */
    for (int j = 0; j < ny; j++)
        found[j] = (estimate){NAN, INFINITY};
    for (int a = 0; a < LEVELS; a++, h /= 2) {
        const double high = side < 0 ? x[i] : x[i] + h, low = side > 0 ? x[i] : x[i] - h;
        if (!(high > low) || !at(p, x, i, high, status, up) || !at(p, x, i, low, status, down))
            return;
        for (int j = 0; j < ny; j++) {
            double *row = &table[(size_t)(a * LEVELS) * (size_t)ny + (size_t)j];
            const double *before = row - (size_t)LEVELS * (size_t)ny;
            row[0] = (up[j] - down[j]) / (high - low);
            const double least = 2 * noise[j] / (high - low);
            double factor = 1;
            for (int b = 1; b <= a; b++) {
                factor *= side ? 2 : 4;
                double *entry = &row[(size_t)b * (size_t)ny];
                const double previous = row[(size_t)(b - 1) * (size_t)ny];
                const double diagonal = before[(size_t)(b - 1) * (size_t)ny];
                *entry = previous + (previous - diagonal) / (factor - 1);
                const double error = fmax(fmax(fabs(*entry - previous), fabs(*entry - diagonal)), least);
                if (error < found[j].error)
                    found[j] = (estimate){*entry, error};
            }
        }
    }
}

/* What two neighbouring tables say together. */
static estimate both(estimate a, estimate b)
{
    if (!isfinite(a.error) || !isfinite(b.error))
        return (estimate){NAN, INFINITY};
    const double error = fmax(fabs(a.value - b.value), fmax(a.error, b.error));
    return (estimate){a.error < b.error ? a.value : b.value, error};
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* First steps for an entry of this size, growing: for its own scale and for a scale of one. */
static int first_steps(double size, double *steps)
{
    int n = 0;
    for (double h = 0.3 * size; h > 1e-9 * size; h /= 10)
        steps[n++] = h;
    for (double h = 0.3; h > 1e-6; h /= 10)
        steps[n++] = h;
    qsort(steps, (size_t)n, sizeof *steps, by_value);
    return n;
}

/* differences[i * ny + j] = dy[j] / dx[i] */
static void jacobian(const judge_point *p, int side, const double *noise, int status,
                     estimate *differences)
{
    const size_t ny = (size_t)judge_ny;
    double *x = checked((size_t)p->nx, sizeof *x);
    double *work = checked((2 + LEVELS * LEVELS) * ny, sizeof *work);
    estimate *found = checked(ny, sizeof *found), *last = checked(ny, sizeof *last);
    bool *closed = checked(ny, sizeof *closed);
    memcpy(x, p->x, (size_t)p->nx * sizeof *x);
    for (int i = 0; i < p->nx; i++) {
        estimate *best = &differences[(size_t)i * ny];
        double steps[32];
        const int n = first_steps(fabs(x[i]), steps);
        memset(closed, 0, ny * sizeof *closed);
        for (size_t j = 0; j < ny; j++)
            best[j] = last[j] = (estimate){NAN, INFINITY};
        for (int k = 0; k < n; k++) {
            ridders(p, x, i, steps[k], side, status, noise, work, found);
            for (size_t j = 0; j < ny; j++) {
                const estimate now = both(last[j], found[j]);
                last[j] = found[j];
                if (closed[j] || !isfinite(now.error))
                    continue;
                if (isfinite(best[j].error) && fabs(now.value - best[j].value) > 4 * best[j].error)
                    closed[j] = true;
                else if (now.error < best[j].error)
                    best[j] = now;
            }
        }
    }
    free(x);
    free(work);
    free(found);
    free(last);
    free(closed);
}

/* What differences say at a point: of both sides together, and of each where that is asked. */
typedef struct {
    const judge_point *p;
    int status;
    const double *y, *noise;
    estimate *of[3]; /* central, left, right; the latter two NULL until they are needed */
} evidence;

static estimate *jacobian_of(evidence *e, int which)
{
    if (!e->of[which]) {
        e->of[which] = checked((size_t)e->p->nx * (size_t)judge_ny, sizeof(estimate));
        jacobian(e->p, which == 0 ? 0 : which == 1 ? -1 : 1, e->noise, e->status, e->of[which]);
    }
    return e->of[which];
}

/* Whether a value could be the derivative where the two sides differ, or one of them is all there is. */
static bool of_a_side(evidence *e, size_t entry, double derivative)
{
    double low = INFINITY, high = -INFINITY, slack = 0;
    for (int which = 1; which <= 2; which++) {
        const estimate d = jacobian_of(e, which)[entry];
        if (!isfinite(d.value) || d.error > 1e-3 * fabs(d.value) + 1e-9)
            continue;
        low = fmin(low, d.value);
        high = fmax(high, d.value);
        slack = fmax(slack, 1e-6 * fabs(d.value) + 50 * d.error);
    }
    const bool silent = low > high;
    if (silent || !isfinite(derivative))
        return silent && !isfinite(jacobian_of(e, 0)[entry].value);
    return low - slack <= derivative && derivative <= high + slack;
}

/* The derivative of result j by argument i at x, by tangents or by adjoints. */
static double derivative_at(const judge_point *p, const double *x, int i, int j, bool forward)
{
    const size_t nx = (size_t)p->nx, ny = (size_t)judge_ny;
    double *x_der = checked(nx, sizeof *x_der), *y = checked(ny, sizeof *y), *y_der = checked(ny, sizeof *y_der);
    if (forward) {
        x_der[i] = 1;
        judge_tangent(x, x_der, y, y_der, p->fixed, p->text);
    } else {
        y_der[j] = 1;
        judge_adjoint(x, x_der, y, y_der, p->fixed, p->text);
    }
    const double found = forward ? y_der[j] : x_der[i];
    free(x_der);
    free(y);
    free(y_der);
    return found;
}

/* Whether the derivative is right a little to each side; the lesser of the slopes there. */
static bool is_right_beside(const evidence *e, int i, int j, bool forward, double *slope)
{
    const size_t nx = (size_t)e->p->nx, ny = (size_t)judge_ny;
    double *x = checked(nx, sizeof *x);
    bool right = true;
    *slope = INFINITY;
    for (int side = -1; side <= 1 && right; side += 2) {
        memcpy(x, e->p->x, nx * sizeof *x);
        x[i] += side * 1e-5 * fmax(fabs(x[i]), 1);
        judge_point beside = *e->p;
        beside.x = x;
        estimate *d = checked(nx * ny, sizeof *d);
        jacobian(&beside, 0, e->noise, e->status, d);
        const estimate there = d[(size_t)i * ny + (size_t)j];
        const double derivative = derivative_at(&beside, x, i, j, forward);
        const double size = fmax(fabs(derivative), fabs(there.value));
        right = isfinite(there.value) && fabs(derivative - there.value) <= 1e-6 * size + 50 * there.error;
        *slope = fmin(*slope, fabs(derivative));
        free(d);
    }
    free(x);
    return right;
}

/* Whether the computed result does not change at all about the point, where its slope beside it says that it
 * must. */
static bool is_flat(const evidence *e, int i, int j, double slope)
{
    const double step = 1e5 * e->noise[j] / slope;
    double *x = checked((size_t)e->p->nx, sizeof *x), *y = checked((size_t)judge_ny, sizeof *y);
    memcpy(x, e->p->x, (size_t)e->p->nx * sizeof *x);
    bool flat = isfinite(step) && x[i] + step > x[i];
    for (int part = -4; part <= 4 && flat; part++)
        flat = at(e->p, x, i, x[i] + part * step / 4, e->status, y) && y[j] == e->y[j];
    free(x);
    free(y);
    return flat;
}

static void judge(verdict *v, evidence *e, int i, int j, double derivative, bool forward)
{
    const judge_point *const p = e->p;
    const double *const y = e->y, *const noise = e->noise;
    const size_t entry = (size_t)i * (size_t)judge_ny + (size_t)j;
    const estimate d = jacobian_of(e, 0)[entry];

    const double size = fmax(fabs(derivative), fabs(d.value));
    const double distance = fabs(derivative - d.value);
    /* what a step of one, or of the argument's own size, does not show in the last bits of y */
    const double unseen = 2.3e-15 * fmax(fabs(y[j]), 1) / fmin(fmax(fabs(p->x[i]), 1e-6), 1);
    v->entries++;
    if (isfinite(d.value) && isfinite(derivative) && distance <= 1e-6 * size + 50 * d.error) {
        v->unsure += d.error > 1e-3 * size && d.error > 1e7 * noise[j] / fmax(fabs(p->x[i]), 1e-3);
        const double relative = size > 0 ? fmax(distance - 50 * d.error, 0) / size : 0;
        if (v->wrong == 0 && relative > v->worst)
            *v = (verdict){v->entries, 0, v->unsure, v->isolated, v->flat, relative, j, i, derivative, d.value};
        return;
    }
    if (isfinite(derivative) && (!isfinite(d.value) || distance <= unseen)) {
        v->unsure++;
        return;
    }
    if (of_a_side(e, entry, derivative)) {
        v->unsure += !isfinite(derivative);
        return;
    }
    double beside = NAN;
    if (is_right_beside(e, i, j, forward, &beside) && (isfinite(derivative) || is_flat(e, i, j, beside))) {
        v->isolated += isfinite(derivative);
        v->flat += !isfinite(derivative);
        return;
    }
    const double relative = isfinite(derivative) && size > 0 ? distance / size : INFINITY;
    v->wrong++;
    if (v->wrong == 1 || relative > v->worst) {
        v->worst = relative;
        v->row = j;
        v->column = i;
        v->derivative = derivative;
        v->difference = d.value;
    }
}

static void print(const char *mode, const verdict *v)
{
    printf("%s entries %ld wrong %ld unsure %ld isolated %ld flat %ld worst %.3e row %d column %d derivative %.17g "
           "difference %.17g\n",
           mode, v->entries, v->wrong, v->unsure, v->isolated, v->flat, v->worst, v->row, v->column,
           v->derivative, v->difference);
}

/* The results of the derivatives, and what is seen of them. */
typedef struct {
    verdict tangent, adjoint;
    bool moved; /* whether a derivative's own primal results differ from the primal's */
    double *y, *y_der, *y_at, *noise;
} judgement;

static void judge_at(judgement *all, const judge_point *p, int status)
{
    const size_t nx = (size_t)p->nx, ny = (size_t)judge_ny;
    double *x_der = checked(nx, sizeof *x_der);
    evidence e = {p, status, all->y, all->noise, {0}};
    for (int i = 0; judge_tangent && i < p->nx; i++) {
        memset(x_der, 0, nx * sizeof *x_der);
        memset(all->y_der, 0, ny * sizeof *all->y_der);
        x_der[i] = 1;
        judge_tangent(p->x, x_der, all->y_at, all->y_der, p->fixed, p->text);
        for (int j = 0; j < judge_ny; j++) {
            judge(&all->tangent, &e, i, j, all->y_der[j], true);
            all->moved |= !(fabs(all->y_at[j] - all->y[j]) <= 1e-12 * fmax(1, fabs(all->y[j])));
        }
    }
    for (int j = 0; judge_adjoint && j < judge_ny; j++) {
        memset(x_der, 0, nx * sizeof *x_der);
        memset(all->y_der, 0, ny * sizeof *all->y_der);
        all->y_der[j] = 1;
        judge_adjoint(p->x, x_der, all->y_at, all->y_der, p->fixed, p->text);
        for (int i = 0; i < p->nx; i++)
            judge(&all->adjoint, &e, i, j, x_der[i], false);
    }
    for (int which = 0; which < 3; which++)
        free(e.of[which]);
    free(x_der);
}

static bool is_finite(const double *y)
{
    for (int j = 0; j < judge_ny; j++)
        if (!isfinite(y[j]))
            return false;
    return true;
}

int main(void)
{
    const size_t ny = (size_t)judge_ny;
    judgement all = {0};
    double **const rows[] = {&all.y, &all.y_der, &all.y_at, &all.noise};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        *rows[k] = checked(ny, sizeof(double));
    bool lacking = false;
    for (int k = 0; k < judge_points_count; k++) {
        const judge_point *p = &judge_points[k];
        int status = 0;
        if (p->spare && !lacking)
            continue;
        judge_primal(p->x, all.y, p->fixed, p->text, &status);
        lacking = !is_finite(all.y);
        if (lacking)
            continue;
        rounding(all.y, all.noise);
        judge_at(&all, p, status);
    }
    if (judge_tangent)
        print("tangent", &all.tangent);
    if (judge_adjoint)
        print("adjoint", &all.adjoint);
    if (all.moved)
        puts("moved");
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        free(*rows[k]);
    return 0;
}

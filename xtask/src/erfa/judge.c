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
 * last bits of y could show. */
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
    long entries, wrong, unsure;
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

/* One table for entry i from step h: what it says of every result. */
static void ridders(const judge_point *p, double *x, int i, double h, int status, const double *noise,
                    double *work, estimate *found)
{
    const int ny = judge_ny;
    double *up = work, *down = work + ny, *table = work + 2 * ny; /* [level][order][ny] */
    for (int j = 0; j < ny; j++)
        found[j] = (estimate){NAN, INFINITY};
    for (int a = 0; a < LEVELS; a++, h /= 2) {
        const double high = x[i] + h, low = x[i] - h;
        if (!(high > low) || !at(p, x, i, high, status, up) || !at(p, x, i, low, status, down))
            return;
        for (int j = 0; j < ny; j++) {
            double *row = &table[(size_t)(a * LEVELS) * (size_t)ny + (size_t)j];
            const double *before = row - (size_t)LEVELS * (size_t)ny;
            row[0] = (up[j] - down[j]) / (high - low);
            const double least = 2 * noise[j] / (high - low);
            double factor = 1;
            for (int b = 1; b <= a; b++) {
                factor *= 4;
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
static void jacobian(const judge_point *p, const double *noise, int status, estimate *differences)
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
            ridders(p, x, i, steps[k], status, noise, work, found);
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

static void judge(verdict *v, const judge_point *p, const double *y, const double *noise, int i, int j,
                  double derivative, estimate d)
{
    const double size = fmax(fabs(derivative), fabs(d.value));
    const double distance = fabs(derivative - d.value);
    /* what a step of one, or of the argument's own size, does not show in the last bits of y */
    const double unseen = 2.3e-15 * fmax(fabs(y[j]), 1) / fmin(fmax(fabs(p->x[i]), 1e-6), 1);
    v->entries++;
    if (isfinite(d.value) && isfinite(derivative) && distance <= 1e-6 * size + 50 * d.error) {
        v->unsure += d.error > 1e-3 * size && d.error > 1e7 * noise[j] / fmax(fabs(p->x[i]), 1e-3);
        const double relative = size > 0 ? fmax(distance - 50 * d.error, 0) / size : 0;
        if (v->wrong == 0 && relative > v->worst)
            *v = (verdict){v->entries, 0, v->unsure, relative, j, i, derivative, d.value};
        return;
    }
    if (isfinite(derivative) && (!isfinite(d.value) || distance <= unseen)) {
        v->unsure++;
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
    printf("%s entries %ld wrong %ld unsure %ld worst %.3e row %d column %d derivative %.17g difference %.17g\n",
           mode, v->entries, v->wrong, v->unsure, v->worst, v->row, v->column, v->derivative,
           v->difference);
}

int main(void)
{
    verdict tangent = {0}, adjoint = {0};
    const size_t ny = (size_t)judge_ny;
    double *y = checked(ny, sizeof *y), *y_der = checked(ny, sizeof *y_der), *y_at = checked(ny, sizeof *y_at);
    double *noise = checked(ny, sizeof *noise);
    bool moved = false; /* whether a derivative's own primal results differ from the primal's */
    for (int k = 0; k < judge_points_count; k++) {
        const judge_point *p = &judge_points[k];
        int status = 0;
        judge_primal(p->x, y, p->fixed, p->text, &status);
        rounding(y, noise);
        estimate *differences = checked((size_t)p->nx * ny, sizeof *differences);
        double *x_der = checked((size_t)p->nx, sizeof *x_der);
        jacobian(p, noise, status, differences);
        for (int i = 0; judge_tangent && i < p->nx; i++) {
            memset(x_der, 0, (size_t)p->nx * sizeof *x_der);
            memset(y_der, 0, ny * sizeof *y_der);
            x_der[i] = 1;
            judge_tangent(p->x, x_der, y_at, y_der, p->fixed, p->text);
            for (int j = 0; j < judge_ny; j++) {
                judge(&tangent, p, y, noise, i, j, y_der[j], differences[(size_t)i * ny + (size_t)j]);
                moved |= fabs(y_at[j] - y[j]) > 1e-12 * fmax(1, fabs(y[j]));
            }
        }
        for (int j = 0; judge_adjoint && j < judge_ny; j++) {
            memset(x_der, 0, (size_t)p->nx * sizeof *x_der);
            memset(y_der, 0, ny * sizeof *y_der);
            y_der[j] = 1;
            judge_adjoint(p->x, x_der, y_at, y_der, p->fixed, p->text);
            for (int i = 0; i < p->nx; i++)
                judge(&adjoint, p, y, noise, i, j, x_der[i], differences[(size_t)i * ny + (size_t)j]);
        }
        free(differences);
        free(x_der);
    }
    if (judge_tangent)
        print("tangent", &tangent);
    if (judge_adjoint)
        print("adjoint", &adjoint);
    if (moved)
        puts("moved");
    free(y);
    free(y_der);
    free(y_at);
    free(noise);
    return 0;
}

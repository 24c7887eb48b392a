/* Finite differences for a check: central differences of shrinking steps, extrapolated (Ridders, Advances in
 * Engineering Software 4, 1982), with two additions. The noise of the function is measured, so that rounding
 * explains the error of an estimate. An estimate counts only if all finer steps agree with it as far as their
 * own noise permits: estimates of steps that are too large for the function may agree by chance. */
#include "memory.h"

static const int gr_has_result, gr_result_is_float;

static void gr_shapes(void);                      /* makes Fortran's descriptors of the present buffers */
static void gr_fill(void);                        /* the starting values, in the order of the command line */
static double gr_primal(void);                    /* calls on the primal buffers; gives the result */
static double gr_forward(void);                   /* calls the JVP; gives the result's tangent */
static void gr_reverse(double result_cotangent);  /* calls the VJP; adds to the adjoint buffers */

static uint64_t gr_state = 0x9e3779b97f4a7c15u;

static double gr_uniform(void) /* -1 to 1 */
{
    gr_state ^= gr_state << 13;
    gr_state ^= gr_state >> 7;
    gr_state ^= gr_state << 17;
    return (double)(gr_state >> 11) / 4503599627370496.0 - 1.0;
}

/* Returns a whole number below a bound. */
static size_t gr_below(size_t bound)
{
    gr_uniform();
    return bound ? (size_t)(gr_state >> 33) % bound : 0;
}

static double gr_get(const gr_arg *arg, const void *memory, size_t i)
{
    return arg->kind == GR_FLOAT ? ((const float *)memory)[i] : ((const double *)memory)[i];
}

static void gr_set(const gr_arg *arg, void *memory, size_t i, double value)
{
    if (arg->kind == GR_FLOAT)
        ((float *)memory)[i] = (float)value;
    else
        ((double *)memory)[i] = value;
}

static int gr_single; /* whether anything is kept in single precision */
static double gr_result_cotangent;
static double gr_magnitude; /* of the terms that the last call's outputs were summed from */
static double gr_moved;     /* how far the last call's entry really was from its start */

/* Half a unit in the last place, relative, of the function's numbers. */
static double gr_unit(void) { return gr_single ? 0x1p-24 : 0x1p-53; }

static void gr_restore(void)
{
    for (int a = 0; a < gr_arg_count; a++)
        if (gr_args[a].count)
            memcpy(gr_args[a].primal, gr_args[a].start, gr_args[a].count * gr_args[a].size);
}

/* Sets the primal buffers to start + t * direction; with `only`, along entry `entry` of that argument
 * alone. */
static void gr_place(double t, const gr_arg *only, size_t entry)
{
    gr_restore();
    gr_moved = t;
    for (int a = 0; a < gr_arg_count; a++) {
        gr_arg *arg = &gr_args[a];
        if (!arg->is_active || (only && only != arg))
            continue;
        if (only) {
            gr_set(arg, arg->primal, entry, gr_get(arg, arg->start, entry) + t);
            gr_moved = gr_get(arg, arg->primal, entry) - gr_get(arg, arg->start, entry);
        } else
            for (size_t i = 0; i < arg->count; i++)
                gr_set(arg, arg->primal, i, gr_get(arg, arg->start, i) + t * arg->direction[i]);
    }
}

/* Returns <cotangent, outputs - start> of a call that begins there. */
static double gr_along(double t, const gr_arg *only, size_t entry)
{
    gr_place(t, only, entry);
    double sum = gr_result_cotangent * gr_primal();
    gr_magnitude = fabs(sum);
    for (int a = 0; a < gr_arg_count; a++) {
        const gr_arg *arg = &gr_args[a];
        for (size_t i = 0; arg->is_active && arg->written && i < arg->count; i++) {
            const double out = gr_get(arg, arg->primal, i);
            sum += arg->cotangent[i] * (out - gr_get(arg, arg->start, i));
            gr_magnitude += arg->changed[i] ? fabs(arg->cotangent[i] * out) : 0;
        }
    }
    return sum;
}

/* A relative step of some units in the last place. */
static double gr_tiny(void) { return gr_single ? 0x1p-21 : 0x1p-49; }

/* Returns the distance of the function's values from a smooth curve around a point: second differences at tiny
 * steps. */
static double gr_noise(double around, const gr_arg *only, size_t entry, double scale)
{
    enum { POINTS = 7 };
    const double step = gr_tiny() * scale;
    double value[POINTS], most = 0;
    for (int k = 0; k < POINTS; k++)
        value[k] = gr_along(around + (k - POINTS / 2) * step, only, entry);
    for (int k = 1; k < POINTS - 1; k++)
        most = fmax(most, fabs(value[k + 1] - 2 * value[k] + value[k - 1]));
    return most / 2 + gr_unit() * gr_magnitude;
}

/* A step to both sides. */
typedef struct {
    double h, slope;
    double gap;   /* between the slopes on the right and on the left */
    double size;  /* of these slopes */
    double range; /* how far the values are from that in the middle */
} gr_pair;

static gr_pair gr_beside(double here, double h, const gr_arg *only, size_t entry)
{
    const double right = gr_along(h, only, entry), to = gr_moved;
    const double left = gr_along(-h, only, entry), from = gr_moved;
    gr_pair pair = {to > 0 && from < 0 ? (to - from) / 2 : 0, NAN, INFINITY, 0, 0};
    if (pair.h == 0)
        return pair;
    pair.slope = (right - left) / (to - from);
    pair.gap = fabs((right - here) / to - (left - here) / from);
    pair.size = fabs((right - here) / to) + fabs((left - here) / from);
    pair.range = fmax(fabs(right - here), fabs(left - here));
    return pair;
}

/* An estimate of a derivative. */
typedef struct {
    double slope, error;
} gr_estimate;

enum { GR_STEPS = 18 };

/* Returns the best estimate of one more row of the table. */
static gr_estimate gr_extrapolate(double table[GR_STEPS][GR_STEPS], int k, double rounding)
{
    gr_estimate best = {NAN, INFINITY};
    double factor = 1;
    for (int m = 1; m <= k; m++) {
        factor *= 4;
        table[k][m] = (factor * table[k][m - 1] - table[k - 1][m - 1]) / (factor - 1);
        const double one = fabs(table[k][m] - table[k][m - 1]);
        const double two = fabs(table[k][m] - table[k - 1][m - 1]);
        const double apart = fmax(fmax(one, two), rounding);
        if (apart < best.error && isfinite(one) && isfinite(two))
            best = (gr_estimate){table[k][m], apart};
    }
    return best;
}

/* Returns true if a finer step agrees with an estimate that a step gave. */
static int gr_agrees(gr_estimate estimate, gr_pair from, gr_pair finer, double noise)
{
    const double ratio = finer.h / from.h;
    const double truncation = 2 * fabs(from.slope - estimate.slope) * ratio * ratio;
    return fabs(finer.slope - estimate.slope) <= 4 * noise / finer.h + 4 * estimate.error + truncation;
}

/* Returns the best estimate with which all finer steps agree. Two steps that are finer still take part, and
 * reveal a kink, where the slopes on both sides stay apart. */
static gr_estimate gr_settle(const gr_estimate *of, const gr_pair *pairs, int count, double noise,
                             double here, const gr_arg *only, size_t entry)
{
    const double h = pairs[count - 1].h;
    const gr_pair last[2] = {gr_beside(here, h / 8, only, entry), gr_beside(here, h / 64, only, entry)};
    gr_estimate best = {NAN, INFINITY};
    for (int k = 1; k < count; k++) {
        int agree = of[k].error < best.error;
        for (int j = k + 1; agree && j < count; j++)
            agree = gr_agrees(of[k], pairs[k], pairs[j], noise);
        for (int j = 0; agree && j < 2; j++)
            agree = !(last[j].h > 0) || gr_agrees(of[k], pairs[k], last[j], noise);
        if (agree)
            best = of[k];
    }
    double gap[2];
    for (int j = 0; j < 2; j++)
        gap[j] = last[j].gap - 4 * noise / last[j].h;
    if (last[1].h > 0 && gap[1] > (gr_single ? 1e-2 : 1e-5) * last[1].size && gap[1] > 0.5 * gap[0])
        best.error = INFINITY;
    return best;
}

/* Returns the derivative at 0 and its error, which is infinite if no estimate counts. Slopes far below `least`
 * count as zero. */
static double gr_difference(const gr_arg *only, size_t entry, double scale, double least, double *error)
{
    double table[GR_STEPS][GR_STEPS], h = scale * (gr_single ? 0.1 : 0.02);
    gr_estimate of[GR_STEPS], best = {NAN, INFINITY};
    gr_pair pairs[GR_STEPS];
    const double noise = gr_noise(0, only, entry, scale), here = gr_along(0, only, entry);
    const double tight = gr_single ? 1e-3 : 1e-8, rounding = 16 * gr_unit() * gr_magnitude;
    double range = 0;
    for (int k = 0; k < GR_STEPS; k++, h /= 2) {
        pairs[k] = gr_beside(here, h, only, entry);
        range = fmax(range, pairs[k].range);
        if (k > 0 && !(pairs[k].h > 0))
            break;
        table[k][0] = pairs[k].slope;
        of[k] = gr_extrapolate(table, k, noise / pairs[k].h);
        const double size = fmax(fabs(of[k].slope), least);
        const int good = of[k].error <= tight * size, noisy = noise / pairs[k].h >= 0.05 * size;
        if (k >= 3 && (good || noisy || k == GR_STEPS - 1)) {
            best = gr_settle(of, pairs, k + 1, noise, here, only, entry);
            if (best.error <= (noisy ? 0.01 : tight) * fmax(fabs(best.slope), least))
                break;
            if (noisy && isfinite(best.error) && fabs(best.slope) <= 4 * best.error)
                break; /* nothing but noise, and finer steps have more of it */
        }
    }
    /* A function that changes as much by rounding as by steps has no slope that values could show. */
    *error = noise > rounding && noise > 0.02 * range ? INFINITY : best.error;
    return best.slope;
}

/* Returns true if a difference that contradicts a derivative by `apart` is credible. Other steps must give the
 * same, and so must steps so small that the noise is just below the contradiction. A staircase has another slope
 * from afar. */
static int gr_confirmed(const gr_arg *only, size_t entry, double scale, double least, gr_estimate found, double apart)
{
    const double others[] = {0.37, 0.061};
    for (int k = 0; k < 2; k++) {
        double off;
        const double other = gr_difference(only, entry, others[k] * scale, least, &off);
        if (!(fabs(other - found.slope) <= 4 * (found.error + off)) || !(off < 0.05 * fmax(fabs(other), least)))
            return 0;
    }
    /* A jump right here is no noise: the points next to it have none. */
    const double beside = gr_noise(1e3 * gr_tiny() * scale, only, entry, scale);
    const double noise = fmin(gr_noise(0, only, entry, scale), beside), here = gr_along(0, only, entry);
    double h = fmax(noise / (0.1 * apart), 64 * gr_unit() * scale);
    for (int k = 0; k < 3 && h < 1e-2 * scale; k++, h *= 4) {
        const gr_pair pair = gr_beside(here, h, only, entry);
        if (pair.h > 0 && !(fabs(pair.slope - found.slope) <= 0.5 * apart))
            return 0;
    }
    return 1;
}

/* Returns true if a zero derivative and its difference agree. The difference must be zero within its error, also
 * for small steps. */
static int gr_both_zero(const gr_arg *only, size_t entry, double scale, double derivative, gr_estimate found)
{
    if (derivative != 0 || !isfinite(found.error) || !(fabs(found.slope) <= 4 * found.error))
        return 0;
    const double noise = gr_noise(0, only, entry, scale), here = gr_along(0, only, entry);
    for (double h = 1e-3 * scale; h > 64 * gr_unit() * scale; h /= 64) {
        const gr_pair pair = gr_beside(here, h, only, entry);
        if (pair.h > 0 && !(fabs(pair.slope) <= 8 * noise / pair.h + 4 * found.error))
            return 0;
    }
    return 1;
}

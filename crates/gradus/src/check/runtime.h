/* The part of a check that is the same for all functions: the three tests and their output. The generated part
 * defines the arguments and calls the function and its derivatives. All names are this file's own, because names
 * of the program and of the run-time library begin alike. Lines that begin with two spaces are for the user.
 * Lines that begin with `@` are for the program that started this one. */
#include "differences.h"

static int gr_wrong;
/* True if a nonzero derivative was compared with settled differences. */
static int gr_tested;
/* True if differences did not settle somewhere. */
static int gr_unsettled;

static int gr_same_kind(double a, double b)
{
    return isfinite(a) ? isfinite(b) : isnan(a) ? isnan(b) : a == b;
}

/* One line of the report; gives whether it agrees. */
static int gr_agree(const char *what, double a, double b, double scale, double limit)
{
    if (!isfinite(a) || !isfinite(b)) {
        const int same = gr_same_kind(a, b);
        fprintf(gr_out, "  %-16s %.17g and %.17g: %s\n", what, a, b, same ? "equal" : "MISMATCH");
        gr_wrong |= !same;
        return same;
    }
    const double error = fabs(a - b) / (scale > 0 ? scale : 1);
    const int right = error <= limit;
    if (!right)
        fprintf(gr_out, "  %-16s MISMATCH: %.17g and %.17g\n", what, a, b);
    else if (scale == 0)
        fprintf(gr_out, "  %-16s both are zero\n", what);
    else
        fprintf(gr_out, "  %-16s agree to %.1e\n", what, error);
    gr_wrong |= !right;
    return right;
}

static const char *gr_stage_name;

static void gr_stage(const char *name)
{
    gr_stage_name = name;
    fprintf(gr_out, "@stage %s\n", name);
    fflush(gr_out);
}

/* Moves the given values at random to another point, by its number. The first moves are small. */
static void gr_move_start(int point)
{
    static const double by[] = {0, 0.1, 0.5, 1, 1};
    for (int a = 0; point > 0 && a < gr_arg_count; a++)
        for (size_t i = 0; gr_args[a].is_active && i < gr_args[a].count; i++) {
            const double x = gr_get(&gr_args[a], gr_args[a].start, i), u = gr_uniform();
            const double move = by[point % 5] * (point == 4 ? fabs(u) : u);
            gr_set(&gr_args[a], gr_args[a].start, i, x + move * (x == 0 ? 1 : fabs(x)));
        }
}

/* Marks the elements that the last call changed. */
static void gr_mark_changed(double t)
{
    for (int a = 0; a < gr_arg_count; a++) {
        gr_arg *arg = &gr_args[a];
        for (size_t i = 0; arg->is_active && arg->is_array && i < arg->count; i++) {
            const double out = gr_get(arg, arg->primal, i), was = gr_get(arg, arg->start, i) + t * arg->direction[i];
            const int same = out == (arg->kind == GR_FLOAT ? (float)was : was) || (isnan(out) && isnan(was));
            arg->changed[i] |= !same;
            arg->written |= !same;
        }
    }
}

/* Runs the function alone, on arrays that end where their pages end and on arrays that begin where these begin.
 * Damage to the memory around them is its own. */
static void gr_call_function(void)
{
    gr_stage("the function itself");
    void *high[GR_ARG_COUNT + 1];
    for (int a = 0; a < gr_arg_count; a++) {
        high[a] = gr_args[a].primal;
        gr_args[a].primal = gr_args[a].low;
    }
    gr_shapes();
    gr_restore();
    gr_primal();
    for (int a = 0; a < gr_arg_count; a++)
        gr_args[a].primal = high[a];
    gr_shapes();
    gr_restore();
    gr_primal();
    gr_mark_changed(0);
}

/* Ends the check if two calls of the function give different results. */
static void gr_call_again(void)
{
    const double one = gr_along(0, NULL, 0), two = gr_along(0, NULL, 0);
    const double limit = (gr_single ? 1e-4 : 1e-8) * fmax(gr_magnitude, fabs(one));
    if (gr_same_kind(one, two) && (!isfinite(one) || fabs(one - two) <= limit))
        return;
    fprintf(gr_out, "@nothing unsteady\n@end\n");
    gr_done = 1;
    exit(0);
}

static void gr_prepare(int point)
{
    gr_state += (uint64_t)point * 0x2545f4914f6cdd1du; /* other random values at other points */
    gr_fill();
    gr_move_start(point);
    for (int a = 0; a < gr_arg_count; a++) {
        gr_single |= gr_args[a].is_active && gr_args[a].kind == GR_FLOAT;
        for (size_t i = 0; gr_args[a].is_active && i < gr_args[a].count; i++) {
            const double x = fabs(gr_get(&gr_args[a], gr_args[a].start, i));
            gr_args[a].direction[i] = gr_uniform() * (isfinite(x) ? fmax(x, 1e-3) : 1);
        }
    }
    gr_single |= gr_has_result && gr_result_is_float;
    gr_call_function();
    gr_result_cotangent = gr_has_result ? 1 + 0.5 * gr_uniform() : 0;
    const double t = gr_single ? 0.01 : 0.001;
    gr_place(t, NULL, 0);
    gr_primal();
    gr_mark_changed(t);
    for (int a = 0; a < gr_arg_count; a++)
        for (size_t i = 0; gr_args[a].is_active && gr_args[a].written && i < gr_args[a].count; i++)
            gr_args[a].cotangent[i] = gr_uniform();
    gr_call_again();
}

static double gr_shift; /* how far derivatives are taken from the start, along the direction */

/* <cotangent, tangent of the outputs>; *size gets the sum of magnitudes. */
static double gr_forward_product(double *size)
{
    gr_stage("the forward derivative");
    gr_place(gr_shift, NULL, 0);
    for (int a = 0; a < gr_arg_count; a++)
        for (size_t i = 0; gr_args[a].is_active && i < gr_args[a].count; i++)
            gr_set(&gr_args[a], gr_args[a].tangent, i, gr_args[a].direction[i]);
    double sum = gr_result_cotangent * gr_forward();
    *size = fabs(sum);
    for (int a = 0; a < gr_arg_count; a++)
        for (size_t i = 0; gr_args[a].is_active && gr_args[a].written && i < gr_args[a].count; i++) {
            const double term = gr_args[a].cotangent[i] * gr_get(&gr_args[a], gr_args[a].tangent, i);
            sum += term;
            *size += fabs(term);
        }
    return sum;
}

static double gr_reverse_product(double *size)
{
    gr_stage("the reverse derivative");
    gr_place(gr_shift, NULL, 0);
    for (int a = 0; a < gr_arg_count; a++)
        for (size_t i = 0; gr_args[a].is_active && i < gr_args[a].count; i++)
            gr_set(&gr_args[a], gr_args[a].adjoint, i, gr_args[a].cotangent[i]);
    gr_reverse(gr_result_cotangent);
    double sum = 0;
    *size = 0;
    for (int a = 0; a < gr_arg_count; a++)
        for (size_t i = 0; gr_args[a].is_active && i < gr_args[a].count; i++) {
            const double term = gr_args[a].direction[i] * gr_get(&gr_args[a], gr_args[a].adjoint, i);
            sum += term;
            *size += fabs(term);
        }
    return sum;
}

/* Saves the adjoints, and measures the change of both derivatives if the arguments change by rounding: the
 * derivatives may be off as far by rounding themselves. Returns the change of the forward derivative. */
static double gr_keep_derivatives(double forward)
{
    for (int a = 0; a < gr_arg_count; a++)
        for (size_t i = 0; gr_args[a].is_active && i < gr_args[a].count; i++)
            gr_args[a].reverse[i] = gr_get(&gr_args[a], gr_args[a].adjoint, i);
    double wobble = 0, size;
    for (int side = -1; side <= 1; side += 2) {
        gr_shift = side * gr_tiny();
        wobble = fmax(wobble, fabs(gr_forward_product(&size) - forward));
        gr_reverse_product(&size);
        for (int a = 0; a < gr_arg_count; a++) {
            gr_arg *arg = &gr_args[a];
            for (size_t i = 0; arg->is_active && i < arg->count; i++)
                arg->wobble[i] = fmax(arg->wobble[i], fabs(gr_get(arg, arg->adjoint, i) - arg->reverse[i]));
        }
    }
    gr_shift = 0;
    return wobble;
}

/* Returns the part of an entry's derivative that exists because the function leaves the element as it is. */
static double gr_untouched(const gr_arg *arg, size_t i)
{
    return arg->written && !arg->changed[i] ? arg->cotangent[i] : 0;
}

/* The largest unknown share of a difference that counts. */
static double gr_settled(void) { return gr_single ? 0.03 : 0.01; }

static double gr_limit(void) { return gr_single ? 1e-2 : 1e-6; }

/* The comparison of one entry. */
typedef struct {
    int settled, right, nonzero;
    double adjoint, difference, error, off;
} gr_entry;

static gr_entry gr_compare(const gr_arg *arg, size_t i, double mean)
{
    gr_entry e = {.adjoint = arg->reverse[i]};
    const double x = fabs(gr_get(arg, arg->start, i)), least = fmax(fabs(e.adjoint), 1e-2 * mean);
    double scale = fmax(x, 1e-3);
    e.difference = gr_difference(arg, i, scale, least, &e.error);
    if (!isfinite(e.error) && x > 0 && x < scale) { /* the function may change where x does */
        scale = x;
        e.difference = gr_difference(arg, i, scale, least, &e.error);
    }
    const double size = fmax(fmax(least, fabs(e.difference)), 1e-300);
    e.error += arg->wobble[i];
    e.settled = isfinite(e.difference) && e.error <= gr_settled() * size;
    const gr_estimate found = {e.difference, e.error};
    if (gr_both_zero(arg, i, scale, e.adjoint, found))
        e.settled = e.right = 1;
    if (!e.settled || e.right)
        return e;
    const double off = fabs(e.adjoint - e.difference);
    e.off = off / size;
    e.right = off <= gr_limit() * size + 4 * e.error;
    e.nonzero = fabs(e.difference - gr_untouched(arg, i)) > 10 * e.error;
    if (!e.right && !gr_confirmed(arg, i, scale, least, found, off))
        e.settled = 0;
    return e;
}

/* Entries of one argument by differences; says where they first depart. */
static void gr_entries(const gr_arg *arg)
{
    enum { MOST = 32 };
    long double squares = 0;
    double worst = 0;
    for (size_t i = 0; i < arg->count; i++) {
        const double x = arg->reverse[i];
        squares += isfinite(x) ? (long double)x * x : 0;
    }
    const double mean = arg->count ? (double)sqrtl(squares / arg->count) : 0;
    const size_t tried = arg->count < MOST ? arg->count : MOST;
    size_t unsettled = 0;
    int nonzero = 0;
    for (size_t k = 0; k < tried; k++) {
        const size_t i = tried == arg->count ? k : (size_t)((double)k / MOST * (double)arg->count);
        const gr_entry e = gr_compare(arg, i, mean);
        if (!e.settled) {
            unsettled++;
            continue;
        }
        if (!e.right) {
            fprintf(gr_out, "  %-16s MISMATCH", arg->name);
            if (arg->is_array)
                fprintf(gr_out, " first at %s[%zu]", arg->name, i);
            fprintf(gr_out, ": reverse %.17g, differences %.17g (within %.1e)\n", e.adjoint, e.difference, e.error);
            gr_wrong = 1;
            return;
        }
        nonzero |= e.nonzero;
        worst = fmax(worst, e.off);
    }
    gr_tested |= nonzero;
    gr_unsettled |= unsettled > 0;
    fprintf(gr_out, "  %-16s %zu of %zu entries by differences", arg->name, tried - unsettled, arg->count);
    if (nonzero)
        fprintf(gr_out, ": agree to %.1e", worst);
    else if (tried > unsettled)
        fprintf(gr_out, ": all derivatives are zero");
    if (unsettled)
        fprintf(gr_out, "; differences of %zu do not converge (kink or jump)", unsettled);
    fprintf(gr_out, "\n");
}

/* Compares the forward derivative with differences along its direction. */
static void gr_one_direction(double forward, double forward_size, double wobble)
{
    double error, untouched = 0;
    const double difference = gr_difference(NULL, 0, 1, forward_size, &error);
    error += wobble;
    const double size = fmax(fabs(difference), forward_size);
    for (int a = 0; a < gr_arg_count; a++)
        for (size_t i = 0; gr_args[a].is_active && i < gr_args[a].count; i++)
            untouched += gr_untouched(&gr_args[a], i) * gr_args[a].direction[i];
    const double limit = (gr_single ? gr_limit() : 1e-7) * size + 4 * error; /* a part of many numbers is small */
    int settled = isfinite(difference) && error <= gr_settled() * size;
    const gr_estimate found = {difference, error};
    if (gr_both_zero(NULL, 0, 1, forward, found)) {
        gr_agree("forward", 0, 0, 0, 0);
        return;
    }
    const double apart = fabs(forward - difference);
    if (settled && !(apart <= limit))
        settled = gr_confirmed(NULL, 0, 1, forward_size, found, apart);
    if (!settled) {
        gr_unsettled = 1;
        fprintf(gr_out, "  %-16s differences along one direction do not converge (kink or jump)\n", "forward");
        return;
    }
    const int right = gr_agree("forward", forward, difference, size, size > 0 ? limit / size : 0);
    gr_tested |= right && isfinite(forward) && fabs(difference - untouched) > 10 * error;
}

#ifdef __GLIBC__
/* The operation that was looked for, or the time for that is over: the check is complete without. */
static void gr_found(int number, siginfo_t *info, void *context)
{
    (void)info;
    if (number == SIGFPE)
        gr_frames(fileno(gr_out), context);
    _exit(0);
}
#endif

/* A function that is not finite, or a derivative that is not finite where the function is: it is run once more, up to
 * the first operation that has no value (an infinite slope times zero) or an infinite one. */
static void gr_not_finite(const char *mode, double found, double (*again)(double *))
{
    fprintf(gr_out, "@notfinite %s\n", isnan(found) ? "not a number" : "infinite");
    fprintf(gr_out, "@mode %s\n", mode);
    fflush(gr_out);
#ifdef __GLIBC__
    struct sigaction action = {.sa_sigaction = gr_found, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGFPE, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    feclearexcept(FE_ALL_EXCEPT);
    feenableexcept(isnan(found) ? FE_INVALID : FE_DIVBYZERO | FE_OVERFLOW);
    double size;
    again(&size);
    fedisableexcept(FE_ALL_EXCEPT);
#else
    (void)again;
#endif
}

/* Runs the function alone once more. */
static double gr_function_again(double *size)
{
    *size = 0;
    return gr_along(0, NULL, 0);
}

/* Returns the reason why nothing was tested. */
static const char *gr_reason(int finite)
{
    size_t numbers = 0;
    int written = 0;
    for (int a = 0; a < gr_arg_count; a++) {
        numbers += gr_args[a].is_active ? gr_args[a].count : 0;
        written |= gr_args[a].written;
    }
    if (numbers == 0)
        return "empty";
    if (!gr_has_result && !written)
        return "unwritten";
    if (!finite)
        return "notfinite";
    return gr_unsettled ? "unsettled" : "zero";
}

/* The whole check; ends the program. */
static void gr_check(void)
{
    const struct rlimit memory = {GR_MEMORY_BYTES, GR_MEMORY_BYTES}, core = {0, 0};
    const char *point = getenv("GRADUS_CHECK_POINT");
    gr_out = fdopen(dup(1), "w");
    if (!gr_out || !freopen("/dev/null", "w", stdout))
        _exit(1);
    setvbuf(gr_out, NULL, _IOLBF, 1 << 12);
    gr_catch();
    atexit(gr_ended);
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    alarm(GR_SECONDS);
    gr_prepare(point ? atoi(point) : 0);
    double forward_size, reverse_size;
    const double forward = gr_forward_product(&forward_size);
    const double reverse = gr_reverse_product(&reverse_size);
    const double wobble = gr_keep_derivatives(forward);
    gr_stage("the function itself at nearby values");
    if (!freopen("/dev/null", "w", stderr)) /* the first calls have said what there is to say */
        _exit(1);
    gr_agree("dot product", forward, reverse, forward_size + reverse_size, gr_single ? 1e-5 : 1e-12);
    gr_one_direction(forward, forward_size, wobble);
    for (int a = 0; a < gr_arg_count; a++)
        if (gr_args[a].is_active)
            gr_entries(&gr_args[a]);
    const int finite = isfinite(gr_along(0, NULL, 0));
    if (gr_wrong)
        fprintf(gr_out, "@wrong\n");
    else if (!gr_tested)
        fprintf(gr_out, "@nothing %s\n", gr_reason(finite));
    if (gr_refused && (gr_wrong || !gr_tested))
        fprintf(gr_out, "@refused %zu\n", (size_t)gr_refused);
    fprintf(gr_out, "@end\n");
    fflush(gr_out);
    gr_done = 1;
    if (!finite)
        gr_not_finite("the function itself", gr_along(0, NULL, 0), gr_function_again);
    else if (!isfinite(forward))
        gr_not_finite("forward mode", forward, gr_forward_product);
    else if (!isfinite(reverse))
        gr_not_finite("reverse mode", reverse, gr_reverse_product);
    _exit(0);
}

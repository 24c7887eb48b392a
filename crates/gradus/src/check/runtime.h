/* The part of a check that is the same for all functions: buffers, random numbers, differences with
 * step refinement, the three tests and what they say. The generated part defines the arguments and
 * calls the function and its derivatives. All names are this file's own: those of the program and of the
 * run-time library begin alike. */
#include <fenv.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

enum gr_kind { GR_DOUBLE, GR_FLOAT, GR_BYTES };

/* An argument: a number by value, or an array. */
typedef struct {
    const char *name;
    enum gr_kind kind;
    int is_array, is_active;
    size_t count, size;   /* elements, and bytes of one */
    void *start;          /* what a call begins with */
    void *primal;         /* what a call works on */
    void *tangent, *adjoint;
    double *direction;    /* the tangent that goes in */
    double *cotangent;    /* the adjoint that goes in: zero where the function does not write */
    int written;
} gr_arg;

static gr_arg gr_args[GR_ARG_COUNT];
static const int gr_arg_count = GR_ARG_COUNT;
static const int gr_has_result, gr_result_is_float;

static void gr_fill(void);                       /* the starting values, in the order of the command line */
static double gr_primal(void);                   /* calls on the primal buffers; gives the result */
static double gr_forward(void);                  /* calls the JVP; gives the result's tangent */
static void gr_reverse(double result_cotangent);  /* calls the VJP; adds to the adjoint buffers */

static FILE *gr_out; /* ours; what the function prints goes nowhere */

static uint64_t gr_state = 0x9e3779b97f4a7c15u;

static double gr_uniform(void) /* -1 to 1 */
{
    gr_state ^= gr_state << 13;
    gr_state ^= gr_state >> 7;
    gr_state ^= gr_state << 17;
    return (double)(gr_state >> 11) / 4503599627370496.0 - 1.0;
}

static void *gr_memory(size_t bytes)
{
    void *memory = calloc(1, bytes + 64);
    if (!memory) {
        _exit(3);
    }
    return memory;
}

static void gr_array(gr_arg *arg, size_t count)
{
    const size_t bytes = count * arg->size;
    arg->count = count;
    arg->start = gr_memory(bytes);
    arg->primal = gr_memory(bytes);
    arg->tangent = gr_memory(bytes);
    arg->adjoint = gr_memory(bytes);
    arg->direction = gr_memory(count * sizeof(double));
    arg->cotangent = gr_memory(count * sizeof(double));
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

static void gr_restore(void)
{
    for (int a = 0; a < gr_arg_count; a++)
        memcpy(gr_args[a].primal, gr_args[a].start, gr_args[a].count * gr_args[a].size);
}

/* <cotangent, outputs> of a call that begins at start + t * direction; with `only`, along entry
 * `entry` of that argument alone. */
static double gr_along(double t, const gr_arg *only, size_t entry)
{
    gr_restore();
    for (int a = 0; a < gr_arg_count; a++) {
        gr_arg *arg = &gr_args[a];
        if (!arg->is_active || (only && only != arg))
            continue;
        if (only)
            gr_set(arg, arg->primal, entry, gr_get(arg, arg->start, entry) + t);
        else
            for (size_t i = 0; i < arg->count; i++)
                gr_set(arg, arg->primal, i, gr_get(arg, arg->start, i) + t * arg->direction[i]);
    }
    double sum = gr_result_cotangent * gr_primal();
    for (int a = 0; a < gr_arg_count; a++)
        if (gr_args[a].is_active && gr_args[a].written)
            for (size_t i = 0; i < gr_args[a].count; i++)
                sum += gr_args[a].cotangent[i] * gr_get(&gr_args[a], gr_args[a].primal, i);
    return sum;
}

/* Whether slopes to the right and to the left stay apart as steps shrink. */
static int gr_kink(const gr_arg *only, size_t entry, double scale)
{
    const double here = gr_along(0, only, entry), noise = (gr_single ? 1e-6 : 1e-15) * fabs(here);
    double gap[2], size = 0, h = scale * (gr_single ? 1e-1 : 1e-3);
    for (int k = 0; k < 2; k++, h /= 16) {
        const double right = (gr_along(h, only, entry) - here) / h;
        const double left = (here - gr_along(-h, only, entry)) / h;
        gap[k] = fabs(right - left) - 4 * noise / h;
        size = fabs(right) + fabs(left);
    }
    return gap[1] > 1e-2 * size && gap[1] > 0.5 * gap[0];
}

/* The derivative at 0 by Ridders' method: central differences of shrinking steps, extrapolated; the
 * estimate whose neighbours agree best, and how well they do. That may be by chance where steps are so small
 * that the results differ by few last bits or none: no estimate is better than rounding lets its step be. */
static double gr_difference(const gr_arg *only, size_t entry, double scale, double *error)
{
    enum { STEPS = 10 };
    double table[STEPS][STEPS], best = NAN, h = scale * (gr_single ? 0.1 : 0.02);
    *error = INFINITY;
    for (int k = 0; k < STEPS; k++, h /= 2) {
        const double right = gr_along(h, only, entry), left = gr_along(-h, only, entry);
        const double rounding = (gr_single ? 0x1p-24 : 0x1p-53) * fmax(fabs(right), fabs(left)) / h;
        table[k][0] = (right - left) / (2 * h);
        double factor = 1;
        for (int m = 1; m <= k; m++) {
            factor *= 4;
            table[k][m] = (factor * table[k][m - 1] - table[k - 1][m - 1]) / (factor - 1);
            const double one = fabs(table[k][m] - table[k][m - 1]);
            const double two = fabs(table[k][m] - table[k - 1][m - 1]);
            const double apart = fmax(fmax(one, two), rounding);
            if (apart < *error) {
                *error = apart;
                best = table[k][m];
            }
        }
    }
    if (gr_kink(only, entry, scale))
        *error = INFINITY;
    return best;
}

static int gr_wrong;
/* Whether differences settled anywhere. */
static int gr_compared;

static int gr_same_kind(double a, double b)
{
    return isfinite(a) ? isfinite(b) : isnan(a) ? isnan(b) : a == b;
}

/* One line of the report; gives whether it agrees. */
static int gr_agree(const char *what, double a, double b, double scale, double limit)
{
    if (!isfinite(a) || !isfinite(b)) {
        const int same = gr_same_kind(a, b);
        fprintf(gr_out, "  %-16s %.17g and %.17g: %s\n", what, a, b, same ? "alike" : "DEPART");
        gr_wrong |= !same;
        return same;
    }
    const double error = fabs(a - b) / (scale > 0 ? scale : 1);
    const int right = error <= limit;
    if (right)
        fprintf(gr_out, "  %-16s agree to %.1e\n", what, error);
    else
        fprintf(gr_out, "  %-16s DEPART: %.17g and %.17g\n", what, a, b);
    gr_wrong |= !right;
    return right;
}

static void gr_stage(const char *name)
{
    fprintf(gr_out, "@stage %s\n", name);
    fflush(gr_out);
}

static void gr_prepare(void)
{
    gr_fill();
    for (int a = 0; a < gr_arg_count; a++) {
        gr_single |= gr_args[a].is_active && gr_args[a].kind == GR_FLOAT;
        for (size_t i = 0; gr_args[a].is_active && i < gr_args[a].count; i++)
            gr_args[a].direction[i] = gr_uniform();
    }
    gr_single |= gr_has_result && gr_result_is_float;
    gr_stage("the function itself");
    gr_restore();
    gr_primal();
    gr_result_cotangent = gr_has_result ? 1 + 0.5 * gr_uniform() : 0;
    for (int a = 0; a < gr_arg_count; a++) {
        gr_arg *arg = &gr_args[a];
        arg->written = arg->is_array && memcmp(arg->start, arg->primal, arg->count * arg->size) != 0;
        for (size_t i = 0; arg->is_active && arg->written && i < arg->count; i++)
            arg->cotangent[i] = gr_uniform();
    }
}

/* <cotangent, tangent of the outputs>; *size gets the sum of magnitudes. */
static double gr_forward_product(double *size)
{
    gr_stage("the forward derivative");
    gr_restore();
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
    gr_restore();
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

/* Entries of one argument by differences; says where they first depart. */
static void gr_entries(const gr_arg *arg, double limit)
{
    enum { MOST = 32 };
    double mean = 0, worst = 0;
    for (size_t i = 0; i < arg->count; i++) {
        const double x = gr_get(arg, arg->adjoint, i);
        mean += isfinite(x) ? x * x : 0;
    }
    mean = arg->count ? sqrt(mean / (double)arg->count) : 0;
    const size_t tried = arg->count < MOST ? arg->count : MOST;
    size_t unsettled = 0;
    for (size_t k = 0; k < tried; k++) {
        const size_t i = tried == arg->count ? k : (size_t)((double)k / MOST * (double)arg->count);
        const double adjoint = gr_get(arg, arg->adjoint, i);
        double error;
        const double scale = fmax(fabs(gr_get(arg, arg->start, i)), 1e-3);
        const double difference = gr_difference(arg, i, scale, &error);
        const double size = fmax(fmax(fabs(adjoint), fabs(difference)), fmax(1e-2 * mean, 1e-300));
        if (!isfinite(difference) || error > 0.05 * size) {
            unsettled++;
            continue;
        }
        const double off = fabs(adjoint - difference);
        if (!(off <= limit * size + 10 * error)) {
            fprintf(gr_out, "  %-16s DEPARTS", arg->name);
            if (arg->is_array)
                fprintf(gr_out, " first at %s[%zu]", arg->name, i);
            fprintf(gr_out, ": reverse %.17g, differences %.17g (within %.1e)\n", adjoint, difference, error);
            gr_wrong = 1;
            return;
        }
        worst = fmax(worst, off / size);
        gr_compared = 1;
    }
    fprintf(gr_out, "  %-16s %zu of %zu entries by differences: agree to %.1e", arg->name, tried - unsettled,
           arg->count, worst);
    if (unsettled)
        fprintf(gr_out, "; %zu where differences do not settle (a kink, or a jump)", unsettled);
    fprintf(gr_out, "\n");
}

/* Says where a signal struck, innermost first. */
static void gr_frames(int to, void *context)
{
    (void)context;
#if defined(__x86_64__)
    dprintf(to, "@frame %llx\n", (unsigned long long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    dprintf(to, "@frame %llx\n", (unsigned long long)((ucontext_t *)context)->uc_mcontext.pc);
#endif
#ifdef __GLIBC__
    void *frames[64];
    const int count = backtrace(frames, 64);
    for (int k = 0; k < count; k++) /* a call ends before the address to return to */
        dprintf(to, "@frame %llx\n", (unsigned long long)(uintptr_t)frames[k] - 1);
#endif
}

/* A signal of the function: says where and whether memory ran out, then dies of it. */
static void gr_died(int number, siginfo_t *info, void *context)
{
    const int to = fileno(gr_out);
    const size_t probe = (size_t)64 << 20;
    (void)info;
    if (mmap(NULL, probe, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
        dprintf(to, "@memory\n");
    gr_frames(to, context);
    signal(number, SIG_DFL);
    raise(number);
}

#ifdef __GLIBC__
/* The operation that was looked for, or the time for that is over: the check is complete without. */
static void gr_found(int number, siginfo_t *info, void *context)
{
    (void)info;
    if (number == SIGFPE)
        gr_frames(fileno(gr_out), context);
    _exit(gr_wrong);
}
#endif

/* A derivative that is not finite where the function is: it is run once more, up to the first operation
 * that has no value (an infinite slope times zero) or an infinite one. */
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

/* Signals are caught on a stack of their own: the usual one may have run out. */
static void gr_catch(void)
{
    static char stack[1 << 16];
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = gr_died, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
#ifdef __GLIBC__
    void *frame; /* what backtrace needs is loaded now, not in a signal */
    backtrace(&frame, 1);
#endif
    sigaltstack(&own, NULL);
    sigemptyset(&action.sa_mask);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        sigaction(numbers[k], &action, NULL);
}

/* The whole check; ends the program. */
static void gr_check(void)
{
    const struct rlimit memory = {GR_MEMORY_BYTES, GR_MEMORY_BYTES}, core = {0, 0};
    gr_out = fdopen(dup(1), "w");
    if (!gr_out || !freopen("/dev/null", "w", stdout))
        _exit(1);
    gr_catch();
    setrlimit(RLIMIT_AS, &memory);
    setrlimit(RLIMIT_CORE, &core);
    alarm(GR_SECONDS);
    gr_prepare();
    double forward_size, reverse_size, error;
    const double forward = gr_forward_product(&forward_size);
    const double reverse = gr_reverse_product(&reverse_size);
    gr_stage("differences");
    gr_agree("dot product", forward, reverse, forward_size + reverse_size, gr_single ? 1e-5 : 1e-12);
    const double difference = gr_difference(NULL, 0, 1, &error);
    if (isfinite(difference) && error > 0.05 * fmax(fabs(difference), forward_size))
        fprintf(gr_out, "  %-16s differences along one direction do not settle (a kink, or a jump)\n", "forward");
    else {
        gr_agree("forward", forward, difference, fmax(forward_size, fabs(difference)),
                 (gr_single ? 2e-2 : 1e-6) + 10 * error / fmax(forward_size, 1e-300));
        gr_compared = 1;
    }
    for (int a = 0; a < gr_arg_count; a++)
        if (gr_args[a].is_active)
            gr_entries(&gr_args[a], gr_single ? 2e-2 : 1e-6);
    const int finite = isfinite(gr_along(0, NULL, 0));
    fprintf(gr_out, "%s@end\n", gr_compared ? "@compared\n" : "");
    fflush(gr_out);
    if (finite && !isfinite(forward))
        gr_not_finite("forward mode", forward, gr_forward_product);
    else if (finite && !isfinite(reverse))
        gr_not_finite("reverse mode", reverse, gr_reverse_product);
    _exit(gr_wrong);
}

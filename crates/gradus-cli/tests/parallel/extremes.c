/* Loops that take the larger or the smaller: by calls, by comparisons in every form, among numbers that are equal, and
 * that are none. */
#include <gradus/parallel.h>
#include <math.h>
#include <stdio.h>
enum { N = 5003 };
static double x[N];
static float f[N];
static int k[N];
static unsigned u[N];

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define TAKE(name, type, from, start, statement) \
    __attribute__((noinline)) static type name(void) { \
        type m = start; \
        gr_for (int i = 0; i < N; i++) { type v = from[i]; statement; } \
        return m; \
    }
TAKE(largest, double, x, x[0], m = v > m ? v : m)
TAKE(largest_or_equal, double, x, x[0], m = v >= m ? v : m)
TAKE(largest_by_macro, double, x, x[0], m = MAX(m, v))
TAKE(largest_by_branch, double, x, -1, if (v > m) m = v)
TAKE(largest_by_call, double, x, NAN, m = fmax(m, v))
TAKE(smallest, double, x, x[0], m = v < m ? v : m)
TAKE(smallest_turned, double, x, 1e300, m = m > v ? v : m)
TAKE(smallest_by_call, double, x, x[0], m = fmin(v, m))
TAKE(largest_float, float, f, f[0], m = m < v ? v : m)
TAKE(largest_int, int, k, -5, m = v > m ? v : m)
TAKE(smallest_int, int, k, k[1], if (v < m) m = v)
TAKE(largest_unsigned, unsigned, u, 3, m = MAX(m, v))
TAKE(smallest_unsigned, unsigned, u, 4000000000u, m = v <= m ? v : m)

/* Which one it is, too: an iteration uses what another one gives it. */
__attribute__((noinline)) static int place(void) {
    int at = 0;
    double m = x[0];
    gr_for (int i = 0; i < N; i++) if (x[i] > m) m = x[i], at = i;
    return at;
}
__attribute__((noinline)) static double spread(double *sum) {
    double low = x[0], high = x[0], s = 0;
    gr_for (int i = 0; i < N; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        s += k[i];
    }
    *sum = s;
    return high - low;
}

static void all(void) {
    double sum;
    printf("%g %g %g %g %g\n", largest(), largest_or_equal(), largest_by_macro(), largest_by_branch(), largest_by_call());
    printf("%g %g %g %g\n", smallest(), smallest_turned(), smallest_by_call(), largest_float());
    printf("%d %d %u %u %d\n", largest_int(), smallest_int(), largest_unsigned(), smallest_unsigned(), place());
    printf("%g %g\n", spread(&sum), sum);
}

int main(void) {
    for (int i = 0; i < N; i++) {
        k[i] = i * 7919 % 4001 - 1000;
        u[i] = i * 2654435761u;
        x[i] = sin(i) * 100;
        f[i] = cos(i);
    }
    all();
    /* Zeros of both signs: the first of two that are equal, or the last. */
    for (int i = 0; i < N; i++) x[i] = i % 2 ? 0.0 : -0.0;
    printf("%g %g %g\n", largest(), largest_or_equal(), smallest());
    for (int i = 0; i < N; i++) x[i] = i % 2 ? -0.0 : 0.0;
    printf("%g %g %g\n", largest(), largest_or_equal(), smallest());
    /* None is a number. */
    for (int i = 0; i < N; i++) x[i] = NAN;
    printf("%d %d %d\n", isnan(largest()), isnan(largest_by_call()), largest_by_branch() == -1);
    /* The first is none: it stays, where what is compared with it is never larger. */
    for (int i = 1; i < N; i++) x[i] = i % 3 ? i % 100 : NAN;
    printf("%d %g %g %g\n", isnan(largest()), largest_by_call(), largest_by_branch(), largest_by_macro());
    return 0;
}

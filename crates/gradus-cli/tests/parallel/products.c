/* Sums of products, which clang makes one call of (`llvm.fmuladd`), and the call that a program makes itself. All numbers
 * are small and whole, so that no order of adding changes a sum. */
#include <gradus/parallel.h>
#include <math.h>
#include <stdio.h>
enum { N = 5003 };
static double x[N], y[N];
static float f[N];

#define SUM(name, type, statement) \
    __attribute__((noinline)) static type name(int n) { \
        type s = 3; \
        gr_for (int i = 0; i < n; i++) { statement; } \
        return s; \
    }
SUM(dot, double, s += x[i] * y[i])
SUM(taken_away, double, s -= x[i] * y[i])
SUM(of_floats, float, s += f[i] * f[i])
SUM(two, double, s += x[i] * y[i] + x[i])
SUM(one_after_the_other, double, s += x[i] * x[i]; s += y[i] * y[i])
SUM(some, double, if (x[i] > 0) s += x[i] * y[i])
SUM(of_a_row, double, for (int j = 0; j < 3; j++) s += x[i] * y[j])
SUM(of_rows, double, for (int j = 0; j < i % 5; j++) s += x[i] + y[j])
SUM(until, double, for (int j = i; j < N && x[j] < 2; j++) s += x[j] * y[i])
SUM(by_call, double, s = fma(x[i], y[i], s))

/* The value of a polynomial: what is carried is a factor. */
__attribute__((noinline)) static double horner(int n, double at) {
    double s = 0;
    gr_for (int i = 0; i < n; i++) s = at * s + x[i];
    return s;
}
/* An inner loop begins anew, or forgets. */
__attribute__((noinline)) static double last_row(int n, int m) {
    double s = 0;
    gr_for (int i = 0; i < n; i++) {
        s = x[i];
        for (int j = 0; j < m; j++) s += y[j];
    }
    return s;
}
__attribute__((noinline)) static double last_column(int n, int m) {
    double s = 0;
    gr_for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) s = j == 1 ? y[i] : s + x[j];
    return s;
}
/* What is carried is both. */
__attribute__((noinline)) static double grown(int n) {
    double s = 1;
    gr_for (int i = 0; i < n; i++) s += s * x[i];
    return s;
}

int main(void) {
    for (int i = 0; i < N; i++) {
        x[i] = i % 7 - 3;
        y[i] = i % 5 - 1;
        f[i] = i % 3;
    }
    for (int n = 0; n <= N; n += N / 2) {
        printf("%g %g %g %g\n", dot(n), taken_away(n), of_floats(n), two(n));
        printf("%g %g %g %g\n", one_after_the_other(n), some(n), of_a_row(n), by_call(n));
        printf("%g %g\n", of_rows(n), until(n));
        printf("%g %g %g %g\n", horner(n, -1), last_row(n, 3), last_column(n, 3), grown(n < 5 ? n : 5));
    }
}

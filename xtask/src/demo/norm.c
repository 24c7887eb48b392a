/* out = in / |in|, as it is often written: the norm is asked for anew in every iteration. Whoever
 * differentiates the source differentiates n norms, and the gradient takes time n squared; whoever lets the
 * compiler take the call out of the loop first, n. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int enzyme_const, enzyme_dup, enzyme_dupnoneed;
void __enzyme_autodiff(void *function, ...);

static double mag(const double *in, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += in[i] * in[i];
    return sqrt(sum);
}

static void norm(double *restrict out, const double *restrict in, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = in[i] / mag(in, n);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void)
{
    double first = 0, last = 0, worst = 0;
    puts("       n   gradient (us)   per entry (ns)   largest error against the formula");
    for (int n = 1000; n <= 16000; n *= 2) {
        double *in = malloc((size_t)n * sizeof *in), *in_adj = malloc((size_t)n * sizeof *in);
        double *out = malloc((size_t)n * sizeof *in), *out_adj = malloc((size_t)n * sizeof *in);
        if (!in || !in_adj || !out || !out_adj)
            return 2;
        double best = INFINITY, m = 0, along = 0, error = 0;
        for (int i = 0; i < n; i++)
            in[i] = sin(1.3 * i) + 0.1;
        for (int run = 0; run < 5; run++) {
            memset(in_adj, 0, (size_t)n * sizeof *in);
            for (int i = 0; i < n; i++)
                out_adj[i] = cos(0.7 * i);
            const double start = seconds();
            __enzyme_autodiff((void *)norm, enzyme_dupnoneed, out, out_adj, enzyme_dup, in, in_adj,
                              enzyme_const, n);
            best = fmin(best, seconds() - start);
        }
        for (int i = 0; i < n; i++) {
            m += in[i] * in[i];
            along += cos(0.7 * i) * in[i];
        }
        m = sqrt(m);
        for (int i = 0; i < n; i++)
            error = fmax(error, fabs(in_adj[i] - (cos(0.7 * i) / m - in[i] * along / (m * m * m))));
        printf("  %6d   %13.2f   %14.2f   %.1e\n", n, 1e6 * best, 1e9 * best / n, error);
        if (first == 0)
            first = best / n;
        last = best / n;
        worst = fmax(worst, error);
        free(in);
        free(in_adj);
        free(out);
        free(out_adj);
    }
    const int right = worst < 1e-12 && last < 4 * first;
    printf("  sixteen times the entries take %.1f times as long (256 if it were quadratic): %s\n",
           16 * last / first, right ? "linear, and right" : "NOT AS IT SHOULD BE");
    return right ? 0 : 1;
}

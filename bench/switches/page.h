/* The frame of a bench page: `double f(int n, const double *restrict x)`, its gradient, and what that
 * costs. Prints `bytes B seconds T error E`: the peak of the heap during a gradient, the time of the
 * fastest of some, and how far the gradient along a direction is from differences.
 * Link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=free. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
void __real_free(void *);
static size_t heap_now, heap_peak;
static void *counted(void *p)
{
    heap_now += p ? malloc_usable_size(p) : 0;
    heap_peak = heap_now > heap_peak ? heap_now : heap_peak;
    return p;
}
void *__wrap_malloc(size_t n) { return counted(__real_malloc(n)); }
void *__wrap_calloc(size_t n, size_t size) { return counted(__real_calloc(n, size)); }
void __wrap_free(void *p)
{
    heap_now -= p ? malloc_usable_size(p) : 0;
    __real_free(p);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* `gradient(n, x, x_adj)` is the page's, as some pass more than x. */
#define PAGE(n_usual)                                                                                   \
    int main(int argc, char **argv)                                                                     \
    {                                                                                                   \
        const int n = argc > 1 ? atoi(argv[1]) : (n_usual), times = argc > 2 ? atoi(argv[2]) : 5;       \
        double *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y), *x_adj = malloc(n * sizeof *x);  \
        for (int i = 0; i < n; i++) x[i] = 0.5 + 0.4 * sin(1.7 * i);                                    \
        double best = 1e30, bytes = 0;                                                                  \
        for (int k = 0; k < times; k++) {                                                               \
            memset(x_adj, 0, n * sizeof *x);                                                            \
            const size_t before = heap_peak = heap_now;                                                 \
            const double start = now();                                                                 \
            gradient(n, x, x_adj);                                                                      \
            best = fmin(best, now() - start);                                                           \
            bytes = (double)(heap_peak - before);                                                       \
        }                                                                                               \
        const double h = 1e-4, steps[4] = {-2, -1, 1, 2}, factors[4] = {1, -8, 8, -1};                  \
        double slope = 0, along = 0, size = 1e-300;                                                     \
        for (int k = 0; k < 4; k++) {                                                                   \
            for (int i = 0; i < n; i++) y[i] = x[i] + steps[k] * h * cos(0.3 * i);                      \
            slope += factors[k] * f(n, y) / (12 * h);                                                   \
        }                                                                                               \
        for (int i = 0; i < n; i++) {                                                                   \
            along += x_adj[i] * cos(0.3 * i);                                                           \
            size += fabs(x_adj[i] * cos(0.3 * i));                                                      \
        }                                                                                               \
        printf("bytes %.0f seconds %.9f error %.1e\n", bytes, best, fabs(slope - along) / size);        \
        return !(fabs(slope - along) <= 1e-6 * size);                                                   \
    }
#define GRADIENT                                                                                        \
    __attribute__((noinline)) static void gradient(int n, const double *x, double *x_adj)               \
    {                                                                                                   \
        __enzyme_autodiff((void *)f, enzyme_const, n, enzyme_dup, x, x_adj);                            \
    }

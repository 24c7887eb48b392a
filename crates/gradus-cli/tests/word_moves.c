#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef union { double number; long index; char *address; } word;
typedef struct { long tag; union { double number; long index; } u; } value;

/* Numbers that move as integers, under an integer's name. */
__attribute__((noinline)) static void copy(long *to, const long *from) { *to = *from; }
double values_by_function(const double *x, int n)
{
    value *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b);
    double s = 0;
    for (int i = 0; i < n; i++) {
        a[i].tag = i & 1;
        if (i & 1) a[i].u.index = i;
        else a[i].u.number = x[i] * x[0];
    }
    for (int i = 0; i < n; i++) {
        b[i].tag = a[i].tag;
        copy(&b[i].u.index, &a[i].u.index);
    }
    for (int i = 0; i < n; i++)
        s += b[i].tag ? x[b[i].u.index] : b[i].u.number * x[1];
    free(a);
    free(b);
    return s;
}
double sorted(const double *x, int n)
{
    uint64_t key[8], place[8];
    double s = 0;
    for (int i = 0; i < n; i++)
        memcpy(&key[i], &x[i], 8);
    for (int i = 0; i < n; i++) {
        int rank = 0;
        for (int j = 0; j < n; j++)
            rank += key[j] < key[i];
        place[rank] = key[i];
    }
    for (int i = 0; i < n; i++) {
        double y;
        memcpy(&y, &place[i], 8);
        s += i * y * y;
    }
    return s;
}
double single(const double *x, int n)
{
    uint32_t *v = malloc(4 * n), *w = malloc(4 * n);
    double s = 0;
    for (int i = 0; i < n; i++) {
        float y = x[i];
        memcpy(&v[i], &y, 4);
    }
    for (int i = 0; i < n; i++)
        w[n - 1 - i] = v[i];
    for (int i = 0; i < n; i++) {
        float y;
        memcpy(&y, &w[i], 4);
        s += y * x[i];
    }
    free(v);
    free(w);
    return s;
}

/* Bits that become numbers: approximate logarithms. */
double union_to_array(const double *x, int n)
{
    word *a = malloc(n * sizeof *a);
    long *b = malloc(n * sizeof *b);
    double s = 0;
    for (int i = 0; i < n; i++)
        if (i & 1) a[i].index = i;
        else a[i].number = x[i] + 2;
    for (int i = 0; i < n; i++)
        b[i] = a[i].index;
    for (int i = 0; i < n; i++)
        s += b[i] * 1e-15 + x[i] * x[i];
    free(a);
    free(b);
    return s;
}
double bytes_to_array(const double *x, int n)
{
    long *b = malloc(n * sizeof *b);
    double s = 0;
    for (int i = 0; i < n; i++) {
        double y = x[i] + 2;
        memcpy(&b[i], &y, 8);
    }
    for (int i = 0; i < n; i++)
        s += b[i] * 1e-15 + x[i] * x[i];
    free(b);
    return s;
}
double array_to_array(const double *x, int n)
{
    double *a = malloc(n * sizeof *a), s = 0;
    long *b = malloc(n * sizeof *b);
    for (int i = 0; i < n; i++)
        a[i] = x[i] + 2;
    memcpy(b, a, n * sizeof *a);
    for (int i = 0; i < n; i++)
        s += b[i] * 1e-15 + x[i] * x[i];
    free(a);
    free(b);
    return s;
}
double after_a_maximum(const double *x, int n)
{
    word *a = malloc(n * sizeof *a);
    double s = 0;
    for (int i = 0; i < n; i++)
        if (i & 1) a[i].index = i;
        else a[i].number = x[i] + 2;
    for (int i = 0; i < n; i++)
        s += (double)(a[i].index > 5 ? a[i].index : 5) * 1e-15 * x[i];
    free(a);
    return s;
}

/* Numbers that become bits: approximate exponentials. */
double union_of_converted(const double *x, int n)
{
    word *a = malloc(n * sizeof *a);
    double s = 0;
    for (int i = 0; i < n; i++)
        a[i].index = (long)(x[i] * 6497320848556798.0) + 4606853616395542500L;
    for (int i = 0; i < n; i++)
        s += a[i].number + x[i] * x[i];
    free(a);
    return s;
}
double array_of_converted(const double *x, int n)
{
    double *a = malloc(n * sizeof *a), s = 0;
    for (int i = 0; i < n; i++) {
        long bits = (long)(x[i] * 6497320848556798.0) + 4606853616395542500L;
        memcpy(&a[i], &bits, 8);
    }
    for (int i = 0; i < n; i++)
        s += a[i] + x[i] * x[i];
    free(a);
    return s;
}

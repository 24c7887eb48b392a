// Addresses of active memory in integers with which the program computes.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// A cursor in a member of type `uint64_t` moves over the array.
struct cursor { uint64_t place; int count; };
double moved_cursor(const double *x, int n)
{
    double t[8], r = 0;
    struct cursor c = {(uint64_t)t, n};
    for (int i = 0; i < n; i++) {
        *(double *)c.place = x[i] * x[i];
        c.place += sizeof(double);
    }
    c.place -= sizeof(double) * (uint64_t)n;
    for (int i = 0; i < c.count; i++)
        r += ((double *)c.place)[i] * (i + 1);
    return r;
}

// Each address in a table is computed from the entry before.
double table_of_addresses(const double *x, int n)
{
    double *t = malloc(n * sizeof *t), r = 0;
    uint64_t table[4];
    for (int i = 0; i < n; i++)
        t[i] = x[i] * x[i];
    table[0] = (uint64_t)t;
    for (int i = 1; i < 4; i++)
        table[i] = table[i - 1] + sizeof(double);
    for (int i = 0; i < 4; i++)
        r += *(double *)table[i] * (i + 1);
    free(t);
    return r;
}

// The lowest bit of a word tells a leaf from an inner node.
typedef uintptr_t word;
struct inner { word left, right; char op; };
static word leaf(double value)
{
    double *p = malloc(sizeof *p);
    *p = value;
    return (word)p | 1;
}
static word inner(char op, word left, word right)
{
    struct inner *p = malloc(sizeof *p);
    *p = (struct inner){left, right, op};
    return (word)p;
}
static double value_of(word node)
{
    if (node & 1)
        return *(double *)(node & ~(word)1);
    struct inner *p = (struct inner *)node;
    double a = value_of(p->left), b = value_of(p->right);
    return p->op == '+' ? a + b : a * b;
}
double tagged_nodes(const double *x, int n)
{
    word tree = leaf(1.0);
    for (int i = 0; i < n; i++)
        tree = inner(i % 2 ? '+' : '*', tree, inner('*', leaf(x[i]), leaf(x[i] + i)));
    return value_of(tree);
}

// An allocator rounds its cursor, and its blocks hold addresses and integers at different times.
struct arena { uintptr_t next, end; };
static void *take(struct arena *a, size_t bytes)
{
    uintptr_t at = (a->next + 31) & ~(uintptr_t)31;
    if (at + bytes > a->end)
        abort();
    a->next = at + bytes;
    return (void *)at;
}
double rounded_arena(const double *x, int n)
{
    char *room = malloc(4096);
    struct arena a = {(uintptr_t)room, (uintptr_t)room + 4096};
    uintptr_t *places = take(&a, n * sizeof *places);
    double r = 0;
    for (int i = 0; i < n; i++)
        places[i] = 1000 + i;
    for (int i = n - 1; i >= 0; i--) {
        double *p = take(&a, sizeof *p);
        *p = x[i] * x[i];
        r += x[i] * (double)places[i];
        places[i] = (uintptr_t)p;
    }
    for (int i = 0; i < n; i++)
        r += *(double *)places[i] * (i + 1);
    free(room);
    return r;
}

// The addresses of variables are constants of the linker.
static double numbers[8], others[8];
double constant_addresses(const double *x, int n)
{
    double r = 0;
    uintptr_t distance = (uintptr_t)others - (uintptr_t)numbers;
    uintptr_t at = (uintptr_t)numbers;
    for (int i = 0; i < n; i++, at += sizeof(double)) {
        *(double *)at = x[i] * x[i];
        *(double *)(at + distance) = x[i];
    }
    uintptr_t either = (n > 2 ? (uintptr_t)numbers : (uintptr_t)others) + sizeof(double);
    for (uintptr_t p = (uintptr_t)numbers, end = (uintptr_t)(numbers + n); p < end; p += sizeof(double))
        r += *(double *)p * *(double *)(p + distance);
    return r + *(double *)either;
}

// Integers take the places of addresses.
double integers_over_addresses(const double *x, int n)
{
    double t[8], r = 0;
    uint64_t words[8], counts[8];
    for (int i = 0; i < n; i++) {
        t[i] = x[i] * x[i];
        words[i] = (uint64_t)(t + i);
        counts[i] = sizeof(double) * (uint64_t)i;
    }
    for (int i = 0; i < n; i++)
        r += *(double *)(words[i] + 0) * i;
    memcpy(words, counts, n * sizeof *words);
    words[0] = sizeof(double);
    for (int i = 0; i < n; i++)
        r += *(double *)((uint64_t)t + words[i]) * (i + 1);
    return r;
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
struct node {
    int kind;
    union { double value; int index; struct node *arg; struct { struct node *left, *right; } pair; } u;
};
static struct node *make(int kind) { struct node *e = malloc(sizeof *e); e->kind = kind; return e; }
static struct node *number(double v) { struct node *e = make(0); e->u.value = v; return e; }
static struct node *variable(int i) { struct node *e = make(1); e->u.index = i; return e; }
static struct node *product(struct node *a, struct node *b) { struct node *e = make(2); e->u.pair.left = a; e->u.pair.right = b; return e; }
static struct node *sine(struct node *a) { struct node *e = make(3); e->u.arg = a; return e; }
static double value(const struct node *e, const double *x)
{
    switch (e->kind) {
    case 0: return e->u.value;
    case 1: return x[e->u.index];
    case 2: return value(e->u.pair.left, x) * value(e->u.pair.right, x);
    default: return sin(value(e->u.arg, x));
    }
}
static void drop(struct node *e)
{
    if (e->kind == 2) { drop(e->u.pair.left); drop(e->u.pair.right); }
    if (e->kind == 3) drop(e->u.arg);
    free(e);
}
double tree(const double *x, int n)
{
    struct node *e = number(x[0] * x[1]);
    for (int i = 1; i < n; i++)
        e = product(sine(e), i % 2 ? variable(i) : number(x[i] * x[i - 1]));
    double v = value(e, x);
    drop(e);
    return v;
}
/* One block: numbers, then indices. */
double block(const double *x, int n)
{
    char *raw = malloc(n * sizeof(double) + n * sizeof(int));
    double *v = (double *)raw;
    int *order = (int *)(raw + n * sizeof(double));
    for (int i = 0; i < n; i++) { v[i] = x[i] * x[(i + 1) % n]; order[i] = (i * 3 + 1) % n; }
    double s = 0;
    for (int i = 0; i < n; i++) s += v[order[i]] * x[i];
    free(raw);
    return s;
}
/* Slots that hold a number, an address or a count, moved within an array and between arrays. */
union slot { double number; double *address; int count; };
double moved(const double *x, int n)
{
    double *pool = malloc((n + 2) * sizeof *pool);
    union slot *a = malloc((n + 2) * sizeof *a), *b = malloc((n + 2) * sizeof *b);
    for (int i = 0; i < n; i++) {
        pool[i] = x[i] * x[i];
        if (i % 3 == 0) a[i].number = x[i] * (i + 1);
        else if (i % 3 == 1) a[i].address = &pool[i];
        else a[i].count = i;
    }
    memmove(a + 2, a, n * sizeof *a); /* The kinds are now 0 1 | 0 1 2 0 1 2 ... */
    memcpy(b, a, (n + 2) * sizeof *b);
    a[2].number = x[0];
    double s = a[2].number;
    for (int i = 0; i < n + 2; i++) {
        int kind = i < 2 ? i : (i - 2) % 3;
        if (kind == 0) s += b[i].number * x[1];
        else if (kind == 1) s += *b[i].address * x[0];
        else s += x[b[i].count % n];
    }
    free(a);
    free(b);
    free(pool);
    return s;
}
/* Slots that change their kind while they live. */
double reused(const double *x, int n)
{
    union slot a[3];
    double s = 0, c[2] = {x[0], x[1]};
    for (int i = 0; i < 12; i++) {
        union slot *p = &a[i % 3];
        if (i % 4 == 0) { p->number = x[i % n] * s + x[0]; s += p->number * p->number; }
        else if (i % 4 == 1) { p->address = &c[i % 2]; s += *p->address * x[i % n]; *p->address *= x[i % n]; }
        else if (i % 4 == 2) { p->count = i; s += c[p->count % 2]; }
        else { a[(i + 1) % 3] = *p; }
    }
    return s;
}
/* A message: kind and payload in a buffer of bytes, written and read field by field. */
static size_t put(char *to, const void *from, size_t bytes) { memcpy(to, from, bytes); return (bytes + 7) / 8 * 8; }
double message(const double *x, int n)
{
    _Alignas(8) char buffer[256];
    size_t at = 0;
    for (int i = 0; i < 6; i++) {
        int kind = i % 2;
        at += put(buffer + at, &kind, sizeof kind);
        double v = x[i % n] * x[0];
        int k = i * 7;
        at += kind ? put(buffer + at, &v, sizeof v) : put(buffer + at, &k, sizeof k);
    }
    double s = 0;
    for (size_t p = 0; p < at; p += 16) {
        int kind, k;
        double v;
        memcpy(&kind, buffer + p, sizeof kind);
        if (kind) { memcpy(&v, buffer + p + 8, sizeof v); s += v * v; }
        else { memcpy(&k, buffer + p + 8, sizeof k); s += x[k % n]; }
    }
    return s;
}
/* Elements erased from the middle: an overlapping copy towards the front. */
struct entry { int tag; union { double number; const double *address; } u; };
double erased(const double *x, int n)
{
    struct entry *v = malloc(2 * n * sizeof *v);
    int m = 2 * n;
    double s = 0;
    for (int k = 0; k < m; k++) {
        v[k].tag = k % 2;
        if (k % 2)
            v[k].u.address = x + k % n;
        else
            v[k].u.number = x[k % n] * x[0];
    }
    while (m > 3) {
        int j = m * 5 % 7 % m;
        s += v[j].tag ? *v[j].u.address : v[j].u.number;
        memmove(v + j, v + j + 1, (m - j - 1) * sizeof *v);
        m--;
        s += (v[0].tag ? *v[0].u.address : v[0].u.number) * m;
    }
    for (int k = 0; k < m; k++)
        s += k * (v[k].tag ? *v[k].u.address : v[k].u.number * v[k].u.number);
    free(v);
    return s;
}
/* A copy behind the start of a block, and a copy of the copy: types would move without end. */
struct cell { union { double number; long index; const double *address; } a, b; };
__attribute__((noinline)) static struct cell *behind(const struct cell *s, int n)
{
    struct cell *r = calloc(n + 2, sizeof *r);
    memcpy(r + 1, s, n * sizeof *r);
    return r;
}
double shifted(const double *x, int n)
{
    struct cell v[4];
    double s = 0;
    for (int r = 0; r < 3; r++) {
        for (int k = 0; k < 4; k++) {
            if ((k + r) % 2) {
                v[k].a.number = x[k] * s + x[k];
                v[k].b.index = (k + r) % n;
            } else {
                v[k].a.address = x + k;
                v[k].b.number = x[r] * x[k];
            }
        }
        struct cell *once = behind(v, 4), *twice = behind(once, 5);
        for (int k = 0; k < 4; k++) {
            struct cell *e = twice + 2 + k;
            s += (k + r) % 2 ? e->a.number * x[e->b.index] : *e->a.address * e->b.number;
        }
        free(once);
        free(twice);
    }
    return s;
}
/* Text beside numbers in one structure, and a copy of a constant text. */
struct named { char name[16]; double weight; const double *address; };
double named(const double *x, int n)
{
    struct named *v = malloc(n * sizeof *v);
    double s = 0;
    for (int k = 0; k < n; k++) {
        v[k].weight = x[k] * x[k];
        v[k].address = x + (k + 1) % n;
        strcpy(v[k].name, "ab");
        snprintf(v[k].name + 2, 8, "%d", k);
    }
    for (int k = 0; k < n; k++) {
        struct named w = v[k];
        s += w.weight * *w.address * w.name[1];
    }
    free(v);
    return s;
}
/* Integers of two widths that share a word with numbers, and become numbers. */
struct value { int kind; union { int count; double number; long index; } u; };
static struct value *values(const double *x, int n)
{
    struct value *v = malloc(n * sizeof *v);
    for (int k = 0; k < n; k++) {
        v[k].kind = k % 3;
        if (k % 3 == 0) v[k].u.count = k;
        else if (k % 3 == 1) v[k].u.number = x[k] * x[0] + 1;
        else v[k].u.index = k - 4;
    }
    return v;
}
double converted(const double *x, int n)
{
    struct value *v = values(x, n);
    double s = 0;
    for (int k = 0; k < n; k++) {
        struct value w = v[k];
        s += w.kind == 0 ? w.u.count * x[1] : w.kind == 1 ? w.u.number * w.u.number : w.u.index * x[2];
    }
    free(v);
    return s;
}
double chosen(const double *x, int n)
{
    struct value *v = values(x, n);
    double s = 0;
    for (int k = 0; k < n; k++)
        if (v[k].kind)
            s += x[1] * (v[k].kind == 2 ? v[k].u.index : v[k].u.number);
    free(v);
    return s;
}
double bits(const double *x, int n)
{
    struct value *v = values(x, n);
    double s = 0;
    for (int k = 0; k < n; k++)
        if (v[k].kind)
            s += v[k].u.index * x[2];
    free(v);
    return s;
}
double logarithms(const double *x, int n)
{
    struct value *v = values(x, n);
    double s = 0;
    for (int k = 0; k < n; k++)
        if (v[k].kind)
            s += (v[k].u.index - 4606853616395542500) * 1e-16;
    free(v);
    return s;
}
double upper_halves(const double *x, int n)
{
    struct value *v = values(x, n);
    double s = 0;
    for (int k = 0; k < n; k++)
        if (v[k].kind)
            s += (int)(v[k].u.index >> 32) * x[0];
    free(v);
    return s;
}
/* Tagged numbers by value: arguments, results and callbacks take the union in an integer register. */
struct tagged {
    int kind;
    union { double number; long index; } u;
};
__attribute__((noinline)) static struct tagged tagged(double x, int i)
{
    struct tagged r;
    r.kind = i % 3 != 0;
    if (r.kind)
        r.u.number = x;
    else
        r.u.index = i;
    return r;
}
__attribute__((noinline)) static struct tagged squared(struct tagged a, double x)
{
    struct tagged r;
    r.kind = 1;
    r.u.number = a.kind ? a.u.number * a.u.number + x : (double)a.u.index * x;
    return r;
}
__attribute__((noinline)) static struct tagged counted(struct tagged a, double x)
{
    struct tagged r;
    r.kind = 0;
    r.u.index = a.kind ? 7 : 3;
    return r;
}
double returned(const double *x, int n)
{
    struct tagged a[16];
    for (int i = 0; i < n; i++)
        a[i] = tagged(x[i] * x[i], i);
    double s = 0;
    for (int i = 0; i < n; i++)
        s += (a[i].kind ? a[i].u.number : (double)a[i].u.index) * x[i];
    return s;
}
double passed(const double *x, int n)
{
    struct tagged (*steps[2])(struct tagged, double) = {squared, counted};
    struct tagged a = tagged(x[0], 1);
    double s = 0;
    for (int i = 0; i < n; i++) {
        a = steps[i % 3 == 1](a, x[i]);
        s += a.kind ? a.u.number * x[i] : (double)a.u.index;
    }
    return s;
}
double returned_bits(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        struct tagged a = tagged(x[i], i);
        s += (double)a.u.index * 1e-15;
    }
    return s;
}
double returned_halves(const double *x, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) {
        struct tagged a = tagged(x[i], i);
        s += (double)(a.u.index >> 20) * 1e-10;
    }
    return s;
}
/* Unions, and numbers beside integers, through pointers to functions. */
typedef union { double number; long index; } slot_number;
__attribute__((noinline)) static double taken(slot_number a, int is_number) { return is_number ? a.number * a.number : (double)a.index; }
__attribute__((noinline)) static double take(double (*by)(slot_number, int), slot_number a, int i) { return by(a, i); }
struct counted { int count; float number; };
__attribute__((noinline)) static struct counted square(float x, int i) { struct counted r = {i, x * x}; return r; }
__attribute__((noinline)) static struct counted triple(float x, int i) { struct counted r = {i + 1, x * 3}; return r; }
double called(const double *x, int n)
{
    struct counted (*steps[2])(float, int) = {square, triple};
    double s = 0;
    for (int i = 0; i < n; i++) {
        slot_number a;
        if (i % 2)
            a.number = x[i];
        else
            a.index = i * 1000;
        s += take(taken, a, i % 2) * x[i];
        struct counted p = steps[i % 2]((float)x[i], i), q = steps[i % 3 == 0](p.number, p.count);
        s += p.number * q.number * q.count;
    }
    return s;
}
/* Whole structures that LLVM splits: the rest of a tagged union is a variable whose words begin at offset four. */
double swapped(const double *x, int n)
{
    struct tagged a[6];
    double s = 0;
    for (int i = 0; i < 6; i++) {
        a[i].kind = i & 1;
        if (a[i].kind)
            a[i].u.number = x[i % n];
        else
            a[i].u.index = -i;
    }
    for (int k = 0; k < 12; k++) {
        struct tagged *v = &a[k % 6];
        s += (v->kind ? v->u.number : (double)v->u.index) * x[k % n];
        struct tagged t = a[k % 6];
        a[k % 6] = a[(k + 3) % 6];
        a[(k + 3) % 6] = t;
        if (t.kind == 0) {
            a[k % 6].kind = 1;
            a[k % 6].u.number = x[k % n];
        }
    }
    return s;
}

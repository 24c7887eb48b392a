/* Checks each row of a table of functions: reverse mode against differences by the library, and forward mode
   against reverse mode, for random flags, shapes, strides and leading dimensions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
real __enzyme_fwddiff(void *, ...);

typedef struct {
    char trans, trans_b, uplo, diag, side;
    int m, n, k, bands, lower, upper, incx, incy, lda, ldb, ldc, order;
} Call;

/* Two factors, three matrices, two vectors. */
enum { SIZE = 160, COUNT = 2 + 5 * SIZE };

static int flag(char c) {
    static const char letters[] = "NTC?UL";
    const char *at = strchr(letters, c);
    int position = (int)(at - letters);
    return position < 4 ? 111 + position : 117 + position;
}
static int diag_flag(char c) { return c == 'U' ? 132 : 131; }
static int side_flag(char c) { return c == 'L' ? 141 : 142; }
static real weight(int i) { return (real)(0.3 + 0.1 * ((i * 7) % 11)); }

static unsigned long state = 88172645463325252ul;
static unsigned draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 20);
}
static double uniform(void) { return (draw() % 20001) / 10000.0 - 1; }

typedef struct {
    const char *name;
    real (*value)(real *, const Call *);
    void (*gradient)(real *, real *, Call *);
    real (*tangent)(real *, real *, Call *);
} Row;

static Call call_of(const char *name, int run) {
    static const int strides[] = {1, -1, 2, -3, 3};
    Call c = {"NTC"[draw() % 3], "NTC"[draw() % 3], "UL"[draw() % 2], "UN"[draw() % 2], "LR"[draw() % 2]};
    if (!strcmp(name, "syrk") || !strcmp(name, "syr2k"))
        c.trans = c.trans == 'C' ? 'T' : c.trans;
    c.m = run < 8 ? run % 4 : 1 + draw() % 5;
    c.n = run < 8 ? run / 2 % 4 : 1 + draw() % 5;
    c.k = run < 4 ? 0 : draw() % 5;
    c.bands = c.n ? draw() % c.n : 0;
    c.lower = c.m ? draw() % c.m : 0;
    c.upper = c.n ? draw() % c.n : 0;
    c.incx = strides[draw() % 5];
    c.incy = strides[draw() % 5];
    if (!strcmp(name, "nrm2"))
        c.incx = abs(c.incx);
    c.order = draw() % 2 ? 101 : 102;
    c.lda = 9 + draw() % 3;
    c.ldb = 9 + draw() % 3;
    c.ldc = 9 + draw() % 3;
    return c;
}

static void point(const char *name, int run, const Call *c, real *p) {
    for (int i = 0; i < COUNT; i++)
        p[i] = uniform();
    p[0] = run % 7 == 5 ? 0 : 0.5 + 0.3 * uniform();
    p[1] = run % 7 == 6 ? 0 : 0.6 + 0.2 * uniform();
    if (name[0] != 't')
        return;
    /* Triangular matrices with dominant diagonals. */
    for (int i = 0; i < SIZE; i++)
        if (name[1] != 'r' || i % (c->lda + 1) == 0)
            p[2 + i] = 1.5 + 0.3 * uniform();
}

static int check(const Row *row, int run) {
    const int is_double = sizeof(real) == 8;
    const double step = is_double ? 1e-6 : 1e-2, close = is_double ? 1e-6 : 3e-2,
                 near = is_double ? 1e-11 : 1e-4;
    const char *name = strchr(row->name, ' ') + 1;
    static real start[COUNT], p[COUNT], adjoint[COUNT], direction[COUNT], tangent[COUNT];
    Call c = call_of(name, run);
    point(name, run, &c, start);
    double forward, reverse = 0, scale = 1;
    for (int i = 0; i < COUNT; i++) {
        tangent[i] = direction[i] = uniform();
        adjoint[i] = 0;
    }
    memcpy(p, start, sizeof p);
    row->gradient(p, adjoint, &c);
    memcpy(p, start, sizeof p);
    forward = row->tangent(p, tangent, &c);
    for (int i = 0; i < COUNT; i++) {
        reverse += (double)adjoint[i] * direction[i];
        scale += fabs(adjoint[i]);
    }
    int bad = !(fabs(forward - reverse) <= near * scale);
    for (int i = 0; i < COUNT && !bad; i++) {
        if (i > 1 && draw() % 8)
            continue;
        double value[2];
        for (int side = 0; side < 2; side++) {
            memcpy(p, start, sizeof p);
            p[i] += side ? step : -step;
            value[side] = row->value(p, &c);
        }
        double difference = (value[1] - value[0]) / 2 / step;
        bad = !(fabs(difference - adjoint[i]) <= close * (1 + fabs(difference) + 0.03 * scale));
        if (bad)
            printf("entry %d: difference %.9g, adjoint %.9g\n", i, difference, (double)adjoint[i]);
    }
    if (bad)
        printf("%s: forward %.12g, reverse %.12g; %c%c%c%c%c m %d n %d k %d strides %d %d order %d factors "
               "%g %g\n",
               row->name, forward, reverse, c.trans, c.trans_b, c.uplo, c.diag, c.side, c.m, c.n, c.k, c.incx,
               c.incy, c.order, (double)start[0], (double)start[1]);
    return bad;
}

static int check_all(const Row *rows, int count) {
    int bad = 0;
    for (int at = 0; at < count; at++)
        for (int run = 0; run < 21; run++)
            bad += check(&rows[at], run);
    return bad != 0;
}

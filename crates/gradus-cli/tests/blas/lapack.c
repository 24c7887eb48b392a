/* Factorisations, solutions and inverses: reverse mode against differences, forward mode against reverse
   mode. `REAL` is the type and `ROUTINE(name)` the symbol of a routine. */
typedef REAL real;

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern int enzyme_const, enzyme_dup;
void __enzyme_autodiff(void *, ...);
real __enzyme_fwddiff(void *, ...);
typedef struct {
    char u, t, g;
    int m, n, k, lda, ldb;
} Cfg;
enum { SZ = 200, NP = 2 * SZ };

void ROUTINE(potrf)(const char *, const int *, real *, const int *, int *);
void ROUTINE(potrs)(const char *, const int *, const int *, const real *, const int *, real *, const int *,
                    int *);
void ROUTINE(posv)(const char *, const int *, const int *, real *, const int *, real *, const int *, int *);
void ROUTINE(potri)(const char *, const int *, real *, const int *, int *);
void ROUTINE(trtrs)(const char *, const char *, const char *, const int *, const int *, const real *,
                    const int *, real *, const int *, int *);
void ROUTINE(trtri)(const char *, const char *, const int *, real *, const int *, int *);
void ROUTINE(getrf)(const int *, const int *, real *, const int *, int *, int *);
void ROUTINE(gesv)(const int *, const int *, real *, const int *, int *, real *, const int *, int *);
void ROUTINE(getrs)(const char *, const int *, const int *, const real *, const int *, const int *, real *,
                    const int *, int *);
void ROUTINE(getri)(const int *, real *, const int *, const int *, real *, const int *, int *);
static real F_potrf(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(potrf)(&c->u, &c->n, A, &c->lda, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_potrf(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_potrf, enzyme_dup, p, d, enzyme_const, c);
}
static real J_potrf(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_potrf, enzyme_dup, p, d, enzyme_const, c);
}
static real F_potrfs(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(potrf)(&c->u, &c->n, A, &c->lda, &info);
    if (info) {
        return -1e9;
    }
    ROUTINE(potrs)(&c->u, &c->n, &c->k, A, &c->lda, B, &c->ldb, &info);
    if (info) {
        return -1e9;
    }
    ROUTINE(potrs)(&c->u, &c->n, &c->k, A, &c->lda, B, &c->ldb, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_potrfs(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_potrfs, enzyme_dup, p, d, enzyme_const, c);
}
static real J_potrfs(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_potrfs, enzyme_dup, p, d, enzyme_const, c);
}
static real F_posv(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(posv)(&c->u, &c->n, &c->k, A, &c->lda, B, &c->ldb, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_posv(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_posv, enzyme_dup, p, d, enzyme_const, c);
}
static real J_posv(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_posv, enzyme_dup, p, d, enzyme_const, c);
}
static real F_potri(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(potrf)(&c->u, &c->n, A, &c->lda, &info);
    if (info) {
        return -1e9;
    }
    ROUTINE(potri)(&c->u, &c->n, A, &c->lda, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_potri(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_potri, enzyme_dup, p, d, enzyme_const, c);
}
static real J_potri(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_potri, enzyme_dup, p, d, enzyme_const, c);
}
static real F_trtrs(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(trtrs)(&c->u, &c->t, &c->g, &c->n, &c->k, A, &c->lda, B, &c->ldb, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_trtrs(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_trtrs, enzyme_dup, p, d, enzyme_const, c);
}
static real J_trtrs(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_trtrs, enzyme_dup, p, d, enzyme_const, c);
}
static real F_trtri(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(trtri)(&c->u, &c->g, &c->n, A, &c->lda, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_trtri(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_trtri, enzyme_dup, p, d, enzyme_const, c);
}
static real J_trtri(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_trtri, enzyme_dup, p, d, enzyme_const, c);
}
static real F_getrf(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(getrf)(&c->m, &c->n, A, &c->lda, piv, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_getrf(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_getrf, enzyme_dup, p, d, enzyme_const, c);
}
static real J_getrf(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_getrf, enzyme_dup, p, d, enzyme_const, c);
}
static real F_gesv(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(gesv)(&c->n, &c->k, A, &c->lda, piv, B, &c->ldb, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_gesv(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_gesv, enzyme_dup, p, d, enzyme_const, c);
}
static real J_gesv(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_gesv, enzyme_dup, p, d, enzyme_const, c);
}
static real F_getrfs(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    ROUTINE(getrf)(&c->m, &c->n, A, &c->lda, piv, &info);
    if (info) {
        return -1e9;
    }
    ROUTINE(getrs)(&c->t, &c->n, &c->k, A, &c->lda, piv, B, &c->ldb, &info);
    if (info) {
        return -1e9;
    }
    ROUTINE(getrs)(&c->t, &c->n, &c->k, A, &c->lda, piv, B, &c->ldb, &info);
    if (info) {
        return -1e9;
    }
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_getrfs(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_getrfs, enzyme_dup, p, d, enzyme_const, c);
}
static real J_getrfs(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_getrfs, enzyme_dup, p, d, enzyme_const, c);
}
static real F_getri(real *p, const Cfg *c) {
    int info = 0, piv[16];
    real s = 0;
    real *A = malloc(SZ * sizeof(real)), *B = malloc(SZ * sizeof(real));
    memcpy(A, p, SZ * sizeof(real));
    memcpy(B, p + SZ, SZ * sizeof(real));
    real q;
    int lw = -1;
    real *work = &q;
    ROUTINE(getri)(&c->n, A, &c->lda, piv, work, &lw, &info);
    lw = q > 1 ? (int)q : 1;
    work = malloc(lw * sizeof(real));
    ROUTINE(getrf)(&c->m, &c->n, A, &c->lda, piv, &info);
    if (info) {
        return -1e9;
    }
    ROUTINE(getri)(&c->n, A, &c->lda, piv, work, &lw, &info);
    if (info) {
        return -1e9;
    }
    free(work);
    for (int i = 0; i < SZ; i++)
        s += (0.3 + 0.1 * ((i * 7) % 11)) * A[i] * A[i] + (0.3 + 0.1 * ((i * 5) % 13)) * B[i] * B[i];
    free(A);
    free(B);
    return s;
}
static void G_getri(real *p, real *d, Cfg *c) {
    __enzyme_autodiff((void *)F_getri, enzyme_dup, p, d, enzyme_const, c);
}
static real J_getri(real *p, real *d, Cfg *c) {
    return __enzyme_fwddiff((void *)F_getri, enzyme_dup, p, d, enzyme_const, c);
}
typedef struct {
    const char *n;
    real (*F)(real *, const Cfg *);
    void (*G)(real *, real *, Cfg *);
    real (*J)(real *, real *, Cfg *);
} Row;
static Row rows[] = {{"potrf", F_potrf, G_potrf, J_potrf},     {"potrfs", F_potrfs, G_potrfs, J_potrfs},
                     {"posv", F_posv, G_posv, J_posv},         {"potri", F_potri, G_potri, J_potri},
                     {"trtrs", F_trtrs, G_trtrs, J_trtrs},     {"trtri", F_trtri, G_trtri, J_trtri},
                     {"getrf", F_getrf, G_getrf, J_getrf},     {"gesv", F_gesv, G_gesv, J_gesv},
                     {"getrfs", F_getrfs, G_getrfs, J_getrfs}, {"getri", F_getri, G_getri, J_getri}};
static const double TOL = sizeof(real) == 8 ? 1e-6 : 5e-2, EPS = sizeof(real) == 8 ? 1e-6 : 3e-3,
                    NEAR = sizeof(real) == 8 ? 1e-10 : 1e-3;

static unsigned long rs = 88172645463325252ul;
static unsigned rnd(void) {
    rs ^= rs << 13;
    rs ^= rs >> 7;
    rs ^= rs << 17;
    return (unsigned)(rs >> 20);
}
static double ur(void) { return (rnd() % 20001) / 10000.0 - 1; }
int main(int argc, char **argv) {
    int bad = 0, checked = 0;
    int reps = argc > 1 ? atoi(argv[1]) : 30;
    for (unsigned r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int q = 0; q < reps; q++) {
            const char *nm = rows[r].n;
            Cfg c;
            c.u = "UL"[rnd() % 2];
            c.t = "NTC"[rnd() % 3];
            c.g = "UN"[rnd() % 2];
            c.m = rnd() % 6;
            c.n = q < 4 ? q % 3 : 1 + rnd() % 6;
            c.k = q % 5 ? 1 + rnd() % 3 : rnd() % 2;
            c.lda = 7 + rnd() % 3;
            c.ldb = 7 + rnd() % 3;
            if (strcmp(nm, "getrf"))
                c.m = c.n;
            if (!c.k)
                c.k = 1;
            real p[NP], p0[NP], d[NP], v[NP], t[NP];
            for (int i = 0; i < NP; i++) {
                p0[i] = ur();
                v[i] = ur();
                d[i] = 0;
            }
            int spd = nm[0] == 'p';
            for (int i = 0; i < c.n; i++)
                p0[i * c.lda + i] += spd ? 5 : (nm[0] == 't' ? 3 : 0);
            memcpy(p, p0, sizeof p);
            if (rows[r].F(p, &c) == -1e9) {
                continue;
            }
            memcpy(p, p0, sizeof p);
            rows[r].G(p, d, &c);
            memcpy(p, p0, sizeof p);
            memcpy(t, v, sizeof t);
            double jv = rows[r].J(p, t, &c), rv = 0, scale = 1;
            for (int i = 0; i < NP; i++) {
                rv += (double)d[i] * v[i];
                scale += fabs(d[i]);
            }
            if (!(fabs(jv - rv) <= NEAR * scale)) {
                bad++;
                if (bad < 20)
                    printf("%s q=%d fwd %.12g rev %.12g %c%c%c m%d n%d k%d\n", nm, q, jv, rv, c.u, c.t, c.g,
                           c.m, c.n, c.k);
            }
            for (int i = 0; i < NP; i++) {
                if (rnd() % 4)
                    continue;
                memcpy(p, p0, sizeof p);
                real h = EPS;
                p[i] += h;
                double a = rows[r].F(p, &c);
                memcpy(p, p0, sizeof p);
                p[i] -= h;
                double b = rows[r].F(p, &c);
                double fd = (a - b) / 2 / h;
                checked++;
                if (fabs(a) == 1e9 || fabs(b) == 1e9)
                    continue;
                if (scale > 1e4)
                    continue;
                if (!(fabs(fd - d[i]) <= TOL * (1 + fabs(fd) + 0.03 * scale))) {
                    bad++;
                    if (bad < 20)
                        printf("%s q=%d i=%d fd %.9g rev %.9g %c%c%c m%d n%d k%d lda %d\n", nm, q, i, fd,
                               (double)d[i], c.u, c.t, c.g, c.m, c.n, c.k, c.lda);
                    break;
                }
            }
        }
    printf("bad %d of %d\n", bad, checked);
    return bad != 0;
}

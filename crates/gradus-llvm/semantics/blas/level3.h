// Matrix-matrix operations: the core routines, their bodies as loops, and the library's interfaces.
//
// Derivatives of the loops are exact but slow. They serve requests that the rules in `rules.h` do not cover.

void CORE(gemm)(int ta, int tb, int m, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc);
void CORE(symm)(int side, int uplo, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc);
void CORE(syrk)(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, REAL beta, REAL *c, int ldc);
void CORE(syr2k)(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc);

// Element (i, j) of op(A), of a symmetric and of a triangular matrix.
#define OP(a, lda, trans, i, j) (is(trans, 'N') ? a[at(i, j, lda)] : a[at(j, i, lda)])
#define IN_TRIANGLE(uplo, i, j) (is(uplo, 'U') ? (i) <= (j) : (i) >= (j))
#define SYMMETRIC(a, lda, uplo, i, j) (IN_TRIANGLE(uplo, i, j) ? a[at(i, j, lda)] : a[at(j, i, lda)])

// The rows of column j within a triangle of order n.
#define START(uplo, j) (is(uplo, 'U') ? 0 : (j))
#define END(uplo, j, n) (is(uplo, 'U') ? (j) + 1 : (n))

// y := beta y. BLAS does not read the old contents if beta is zero.
void BODY(CORE(scale))(int n, REAL beta, REAL *y, int incy)
{
    y += first(n, incy);
    if (beta == 0)
        for (int i = 0; i < n; i++)
            y[(long)i * incy] = 0;
    else
        for (int i = 0; i < n; i++)
            y[(long)i * incy] = beta * y[(long)i * incy];
}
INLINE void NAME(scale_matrix)(int m, int n, REAL beta, REAL *c, int ldc)
{
    for (int j = 0; j < n; j++)
        CORE(scale)(m, beta, c + at(0, j, ldc), 1);
}
INLINE void NAME(scale_triangle)(int uplo, int n, REAL beta, REAL *c, int ldc)
{
    for (int j = 0; j < n; j++)
        CORE(scale)(END(uplo, j, n) - START(uplo, j), beta, c + at(START(uplo, j), j, ldc), 1);
}

void BODY(CORE(gemm))(int ta, int tb, int m, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    if (m <= 0 || n <= 0)
        return;
    NAME(scale_matrix)(m, n, beta, c, ldc);
    for (int j = 0; j < n; j++)
        for (int l = 0; l < k; l++) {
            REAL factor = alpha * OP(b, ldb, tb, l, j);
            for (int i = 0; i < m; i++)
                c[at(i, j, ldc)] += factor * OP(a, lda, ta, i, l);
        }
}
void FORTRAN(gemm)(const char *ta, const char *tb, const int *m, const int *n, const int *k, const REAL *alpha, const REAL *a, const int *lda, const REAL *b, const int *ldb, const REAL *beta, REAL *c, const int *ldc)
{
    CORE(gemm)(*ta, *tb, *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);
}
void CBLAS(gemm)(int order, int ta, int tb, int m, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    if (order == ROW_MAJOR)
        CORE(gemm)(trans_of(tb), trans_of(ta), n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
    else
        CORE(gemm)(trans_of(ta), trans_of(tb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void BODY(CORE(symm))(int side, int uplo, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    if (m <= 0 || n <= 0)
        return;
    NAME(scale_matrix)(m, n, beta, c, ldc);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            REAL sum = 0;
            if (is(side, 'L'))
                for (int l = 0; l < m; l++)
                    sum += SYMMETRIC(a, lda, uplo, i, l) * b[at(l, j, ldb)];
            else
                for (int l = 0; l < n; l++)
                    sum += b[at(i, l, ldb)] * SYMMETRIC(a, lda, uplo, l, j);
            c[at(i, j, ldc)] += alpha * sum;
        }
}
void FORTRAN(symm)(const char *side, const char *uplo, const int *m, const int *n, const REAL *alpha, const REAL *a, const int *lda, const REAL *b, const int *ldb, const REAL *beta, REAL *c, const int *ldc)
{
    CORE(symm)(*side, *uplo, *m, *n, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);
}
void CBLAS(symm)(int order, int side, int uplo, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    char own = side_of(side), part = uplo_of(uplo);
    if (order == ROW_MAJOR)
        CORE(symm)(flip_side(own), flip_uplo(part), n, m, alpha, a, lda, b, ldb, beta, c, ldc);
    else
        CORE(symm)(own, part, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
}

void BODY(CORE(syrk))(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, REAL beta, REAL *c, int ldc)
{
    NAME(scale_triangle)(uplo, n, beta, c, ldc);
    for (int j = 0; j < n; j++)
        for (int i = START(uplo, j); i < END(uplo, j, n); i++) {
            REAL sum = 0;
            for (int l = 0; l < k; l++)
                sum += OP(a, lda, trans, i, l) * OP(a, lda, trans, j, l);
            c[at(i, j, ldc)] += alpha * sum;
        }
}
void FORTRAN(syrk)(const char *uplo, const char *trans, const int *n, const int *k, const REAL *alpha, const REAL *a, const int *lda, const REAL *beta, REAL *c, const int *ldc)
{
    CORE(syrk)(*uplo, *trans, *n, *k, *alpha, a, *lda, *beta, c, *ldc);
}
void CBLAS(syrk)(int order, int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, REAL beta, REAL *c, int ldc)
{
    int rows = order == ROW_MAJOR;
    char own = trans_of(trans), part = uplo_of(uplo);
    CORE(syrk)(rows ? flip_uplo(part) : part, rows ? flip_trans(own) : own, n, k, alpha, a, lda, beta, c, ldc);
}

void BODY(CORE(syr2k))(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    NAME(scale_triangle)(uplo, n, beta, c, ldc);
    for (int j = 0; j < n; j++)
        for (int i = START(uplo, j); i < END(uplo, j, n); i++) {
            REAL sum = 0;
            for (int l = 0; l < k; l++)
                sum += OP(a, lda, trans, i, l) * OP(b, ldb, trans, j, l) + OP(b, ldb, trans, i, l) * OP(a, lda, trans, j, l);
            c[at(i, j, ldc)] += alpha * sum;
        }
}
void FORTRAN(syr2k)(const char *uplo, const char *trans, const int *n, const int *k, const REAL *alpha, const REAL *a, const int *lda, const REAL *b, const int *ldb, const REAL *beta, REAL *c, const int *ldc)
{
    CORE(syr2k)(*uplo, *trans, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);
}
void CBLAS(syr2k)(int order, int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    int rows = order == ROW_MAJOR;
    char own = trans_of(trans), part = uplo_of(uplo);
    CORE(syr2k)(rows ? flip_uplo(part) : part, rows ? flip_trans(own) : own, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

// Element (i, j) of op(A) for a triangular matrix, and the part of row i without the diagonal.
INLINE REAL NAME(diagonal)(int diag, const REAL *a, int lda, int i) { return is(diag, 'U') ? 1 : a[at(i, i, lda)]; }

// B := alpha op(A) B or alpha B op(A). Each row or column of the product is computed after all rows or columns
// that depend on its old contents.
void BODY(CORE(trmm))(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, const REAL *a, int lda, REAL *b, int ldb)
{
    int up = is_upper(uplo, trans), left = is(side, 'L'), order = left ? m : n, others = left ? n : m;
    if (m <= 0 || n <= 0)
        return;
    for (int o = 0; o < others; o++)
        for (int p = 0; p < order; p++) {
            int i = up == left ? p : order - 1 - p;
            REAL sum = NAME(diagonal)(diag, a, lda, i) * b[left ? at(i, o, ldb) : at(o, i, ldb)];
            int start = up == left ? i + 1 : 0, end = up == left ? order : i;
            for (int l = start; l < end; l++) {
                REAL element = left ? OP(a, lda, trans, i, l) : OP(a, lda, trans, l, i);
                sum += element * b[left ? at(l, o, ldb) : at(o, l, ldb)];
            }
            b[left ? at(i, o, ldb) : at(o, i, ldb)] = alpha * sum;
        }
}

// B := alpha op(A)⁻¹ B or alpha B op(A)⁻¹, by substitution.
void BODY(CORE(trsm))(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, const REAL *a, int lda, REAL *b, int ldb)
{
    int up = is_upper(uplo, trans), left = is(side, 'L'), order = left ? m : n, others = left ? n : m;
    if (m <= 0 || n <= 0)
        return;
    for (int o = 0; o < others; o++)
        for (int p = 0; p < order; p++) {
            int i = up == left ? order - 1 - p : p;
            REAL sum = alpha * b[left ? at(i, o, ldb) : at(o, i, ldb)];
            int start = up == left ? i + 1 : 0, end = up == left ? order : i;
            for (int l = start; l < end; l++) {
                REAL element = left ? OP(a, lda, trans, i, l) : OP(a, lda, trans, l, i);
                sum -= element * b[left ? at(l, o, ldb) : at(o, l, ldb)];
            }
            b[left ? at(i, o, ldb) : at(o, i, ldb)] = sum / NAME(diagonal)(diag, a, lda, i);
        }
}

#define TRIANGULAR_MATRIX(name)                                                                                    \
    void FORTRAN(name)(const char *side, const char *uplo, const char *trans, const char *diag, const int *m, const int *n, const REAL *alpha, const REAL *a, const int *lda, REAL *b, const int *ldb) \
    {                                                                                                              \
        CORE(name)(*side, *uplo, *trans, *diag, *m, *n, *alpha, a, *lda, b, *ldb);                                 \
    }                                                                                                              \
    void CBLAS(name)(int order, int side, int uplo, int trans, int diag, int m, int n, REAL alpha, const REAL *a, int lda, REAL *b, int ldb) \
    {                                                                                                              \
        char own = side_of(side), part = uplo_of(uplo);                                                            \
        if (order == ROW_MAJOR)                                                                                    \
            CORE(name)(flip_side(own), flip_uplo(part), trans_of(trans), diag_of(diag), n, m, alpha, a, lda, b, ldb); \
        else                                                                                                       \
            CORE(name)(own, part, trans_of(trans), diag_of(diag), m, n, alpha, a, lda, b, ldb);                    \
    }
TRIANGULAR_MATRIX(trmm)
TRIANGULAR_MATRIX(trsm)

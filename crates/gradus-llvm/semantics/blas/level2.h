// Matrix-vector operations. Products with triangular matrices and triangular solutions are level-3 routines
// with one column.

void CORE(scale)(int n, REAL beta, REAL *y, int incy);

// Returns true if a product with the factor alpha reads its operands.
INLINE int NAME(is_read)(REAL alpha, int rows, int columns, const REAL *a, int lda, int n, const REAL *x, int incx)
{
    if (alpha != 0)
        return 1;
    int finite = NAME(are_finite)(n, x, incx);
    for (int j = 0; j < columns; j++)
        finite &= NAME(are_finite)(rows, a + at(0, j, lda), 1);
    return finite;
}

void CORE(gemv)(int trans, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy);
void CORE(ger)(int m, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a, int lda);

void BODY(CORE(gemv))(int trans, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    if (m <= 0 || n <= 0)
        return;
    int rows = is(trans, 'N') ? m : n, columns = is(trans, 'N') ? n : m;
    CORE(scale)(rows, beta, y, incy);
    if (!NAME(is_read)(alpha, m, n, a, lda, columns, x, incx))
        return;
    x += first(columns, incx);
    y += first(rows, incy);
    if (is(trans, 'N')) {
        for (int j = 0; j < n; j++) {
            REAL factor = alpha * x[(long)j * incx];
            for (int i = 0; i < m; i++)
                y[(long)i * incy] += factor * a[at(i, j, lda)];
        }
    } else {
        for (int j = 0; j < n; j++) {
            REAL sum = 0;
            for (int i = 0; i < m; i++)
                sum += a[at(i, j, lda)] * x[(long)i * incx];
            y[(long)j * incy] += alpha * sum;
        }
    }
}
void FORTRAN(gemv)(const char *trans, const int *m, const int *n, const REAL *alpha, const REAL *a, const int *lda, const REAL *x, const int *incx, const REAL *beta, REAL *y, const int *incy)
{
    CORE(gemv)(*trans, *m, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy);
}
void CBLAS(gemv)(int order, int trans, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    char own = trans_of(trans);
    if (order == ROW_MAJOR)
        CORE(gemv)(flip_trans(own), n, m, alpha, a, lda, x, incx, beta, y, incy);
    else
        CORE(gemv)(own, m, n, alpha, a, lda, x, incx, beta, y, incy);
}

void BODY(CORE(ger))(int m, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a, int lda)
{
    if (alpha == 0 && !(NAME(are_finite)(m, x, incx) && NAME(are_finite)(n, y, incy)))
        return;
    x += first(m, incx);
    y += first(n, incy);
    for (int j = 0; j < n; j++) {
        REAL factor = alpha * y[(long)j * incy];
        for (int i = 0; i < m; i++)
            a[at(i, j, lda)] += factor * x[(long)i * incx];
    }
}
void FORTRAN(ger)(const int *m, const int *n, const REAL *alpha, const REAL *x, const int *incx, const REAL *y, const int *incy, REAL *a, const int *lda)
{
    CORE(ger)(*m, *n, *alpha, x, *incx, y, *incy, a, *lda);
}
void CBLAS(ger)(int order, int m, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a, int lda)
{
    if (order == ROW_MAJOR)
        CORE(ger)(n, m, alpha, y, incy, x, incx, a, lda);
    else
        CORE(ger)(m, n, alpha, x, incx, y, incy, a, lda);
}

// The storage of triangles: the index of an element (i, j) with i ≤ j (upper) or i ≥ j (lower), in a full,
// a banded or a packed matrix of order n.
#define FULL(uplo, i, j) at(i, j, lda)
#define BANDED(uplo, i, j) at(is(uplo, 'U') ? k + (i) - (j) : (i) - (j), j, lda)
#define PACKED(uplo, i, j) (is(uplo, 'U') ? (i) + (long)(j) * ((j) + 1) / 2 : (i) + (long)(j) * (2 * n - (j) - 1) / 2)

// The rows of column j within a triangle of bandwidth k.
#define BAND_START(uplo, j, k) (is(uplo, 'U') ? ((j) > (k) ? (j) - (k) : 0) : (j))
#define BAND_END(uplo, j, k) (is(uplo, 'U') ? (j) + 1 : (n - (j) > (k) ? (j) + (k) + 1 : n))

// y := alpha A x + beta y for a symmetric matrix of bandwidth k.
#define SYMMETRIC_PRODUCT(INDEX)                                                                                   \
    if (n <= 0)                                                                                                    \
        return;                                                                                                    \
    CORE(scale)(n, beta, y, incy);                                                                          \
    int finite = alpha != 0 || NAME(are_finite)(n, x, incx);                                                       \
    if (alpha == 0)                                                                                                \
        for (int j = 0; j < n; j++)                                                                                \
            for (int i = BAND_START(uplo, j, k); i < BAND_END(uplo, j, k); i++)                                    \
                finite &= NAME(is_finite)(a[INDEX(uplo, i, j)]);                                                   \
    if (!finite)                                                                                                   \
        return;                                                                                                    \
    x += first(n, incx);                                                                                           \
    y += first(n, incy);                                                                                           \
    for (int j = 0; j < n; j++) {                                                                                  \
        REAL factor = alpha * x[(long)j * incx], sum = 0;                                                          \
        for (int i = BAND_START(uplo, j, k); i < BAND_END(uplo, j, k); i++) {                                      \
            REAL element = a[INDEX(uplo, i, j)];                                                                   \
            y[(long)i * incy] += factor * element;                                                                 \
            sum += i == j ? 0 : element * x[(long)i * incx];                                                       \
        }                                                                                                          \
        y[(long)j * incy] += alpha * sum;                                                                          \
    }

void CORE(symv)(int uplo, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy);
void BODY(CORE(symv))(int uplo, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    int k = n;
    SYMMETRIC_PRODUCT(FULL)
}
void FORTRAN(symv)(const char *uplo, const int *n, const REAL *alpha, const REAL *a, const int *lda, const REAL *x, const int *incx, const REAL *beta, REAL *y, const int *incy)
{
    CORE(symv)(*uplo, *n, *alpha, a, *lda, x, *incx, *beta, y, *incy);
}
void CBLAS(symv)(int order, int uplo, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    char own = order == ROW_MAJOR ? flip_uplo(uplo_of(uplo)) : uplo_of(uplo);
    CORE(symv)(own, n, alpha, a, lda, x, incx, beta, y, incy);
}

INLINE void NAME(sbmv_of)(char uplo, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    SYMMETRIC_PRODUCT(BANDED)
}
void FORTRAN(sbmv)(const char *uplo, const int *n, const int *k, const REAL *alpha, const REAL *a, const int *lda, const REAL *x, const int *incx, const REAL *beta, REAL *y, const int *incy)
{
    NAME(sbmv_of)(*uplo, *n, *k, *alpha, a, *lda, x, *incx, *beta, y, *incy);
}
void CBLAS(sbmv)(int order, int uplo, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    char own = order == ROW_MAJOR ? flip_uplo(uplo_of(uplo)) : uplo_of(uplo);
    NAME(sbmv_of)(own, n, k, alpha, a, lda, x, incx, beta, y, incy);
}

INLINE void NAME(spmv_of)(char uplo, int n, REAL alpha, const REAL *a, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    int k = n;
    SYMMETRIC_PRODUCT(PACKED)
}
void FORTRAN(spmv)(const char *uplo, const int *n, const REAL *alpha, const REAL *a, const REAL *x, const int *incx, const REAL *beta, REAL *y, const int *incy)
{
    NAME(spmv_of)(*uplo, *n, *alpha, a, x, *incx, *beta, y, *incy);
}
void CBLAS(spmv)(int order, int uplo, int n, REAL alpha, const REAL *a, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    char own = order == ROW_MAJOR ? flip_uplo(uplo_of(uplo)) : uplo_of(uplo);
    NAME(spmv_of)(own, n, alpha, a, x, incx, beta, y, incy);
}

// A := alpha x xᵀ + A and A := alpha (x yᵀ + y xᵀ) + A for a triangle.
#define RANK_ONE(INDEX)                                                                                            \
    int k = n;                                                                                                     \
    if (alpha == 0 && !NAME(are_finite)(n, x, incx))                                                               \
        return;                                                                                                    \
    x += first(n, incx);                                                                                           \
    for (int j = 0; j < n; j++) {                                                                                  \
        REAL factor = alpha * x[(long)j * incx];                                                                   \
        for (int i = BAND_START(uplo, j, k); i < BAND_END(uplo, j, k); i++)                                        \
            a[INDEX(uplo, i, j)] += factor * x[(long)i * incx];                                                    \
    }
#define RANK_TWO(INDEX)                                                                                            \
    int k = n;                                                                                                     \
    if (alpha == 0 && !(NAME(are_finite)(n, x, incx) && NAME(are_finite)(n, y, incy)))                             \
        return;                                                                                                    \
    x += first(n, incx);                                                                                           \
    y += first(n, incy);                                                                                           \
    for (int j = 0; j < n; j++) {                                                                                  \
        REAL of_x = alpha * y[(long)j * incy], of_y = alpha * x[(long)j * incx];                                   \
        for (int i = BAND_START(uplo, j, k); i < BAND_END(uplo, j, k); i++)                                        \
            a[INDEX(uplo, i, j)] += of_x * x[(long)i * incx] + of_y * y[(long)i * incy];                           \
    }

INLINE void NAME(syr_of)(char uplo, int n, REAL alpha, const REAL *x, int incx, REAL *a, int lda)
{
    RANK_ONE(FULL)
}
void FORTRAN(syr)(const char *uplo, const int *n, const REAL *alpha, const REAL *x, const int *incx, REAL *a, const int *lda)
{
    NAME(syr_of)(*uplo, *n, *alpha, x, *incx, a, *lda);
}
void CBLAS(syr)(int order, int uplo, int n, REAL alpha, const REAL *x, int incx, REAL *a, int lda)
{
    char own = order == ROW_MAJOR ? flip_uplo(uplo_of(uplo)) : uplo_of(uplo);
    NAME(syr_of)(own, n, alpha, x, incx, a, lda);
}

INLINE void NAME(spr_of)(char uplo, int n, REAL alpha, const REAL *x, int incx, REAL *a)
{
    RANK_ONE(PACKED)
}
void FORTRAN(spr)(const char *uplo, const int *n, const REAL *alpha, const REAL *x, const int *incx, REAL *a)
{
    NAME(spr_of)(*uplo, *n, *alpha, x, *incx, a);
}
void CBLAS(spr)(int order, int uplo, int n, REAL alpha, const REAL *x, int incx, REAL *a)
{
    char own = order == ROW_MAJOR ? flip_uplo(uplo_of(uplo)) : uplo_of(uplo);
    NAME(spr_of)(own, n, alpha, x, incx, a);
}

INLINE void NAME(syr2_of)(char uplo, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a, int lda)
{
    RANK_TWO(FULL)
}
void FORTRAN(syr2)(const char *uplo, const int *n, const REAL *alpha, const REAL *x, const int *incx, const REAL *y, const int *incy, REAL *a, const int *lda)
{
    NAME(syr2_of)(*uplo, *n, *alpha, x, *incx, y, *incy, a, *lda);
}
void CBLAS(syr2)(int order, int uplo, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a, int lda)
{
    char own = order == ROW_MAJOR ? flip_uplo(uplo_of(uplo)) : uplo_of(uplo);
    NAME(syr2_of)(own, n, alpha, x, incx, y, incy, a, lda);
}

INLINE void NAME(spr2_of)(char uplo, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a)
{
    RANK_TWO(PACKED)
}
void FORTRAN(spr2)(const char *uplo, const int *n, const REAL *alpha, const REAL *x, const int *incx, const REAL *y, const int *incy, REAL *a)
{
    NAME(spr2_of)(*uplo, *n, *alpha, x, *incx, y, *incy, a);
}
void CBLAS(spr2)(int order, int uplo, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a)
{
    char own = order == ROW_MAJOR ? flip_uplo(uplo_of(uplo)) : uplo_of(uplo);
    NAME(spr2_of)(own, n, alpha, x, incx, y, incy, a);
}

// The general banded product: kl subdiagonals, ku superdiagonals.
INLINE void NAME(gbmv_of)(char trans, int m, int n, int kl, int ku, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    if (m <= 0 || n <= 0)
        return;
    int rows = is(trans, 'N') ? m : n, columns = is(trans, 'N') ? n : m;
    CORE(scale)(rows, beta, y, incy);
    int finite = alpha != 0 || NAME(are_finite)(columns, x, incx);
    x += first(columns, incx);
    y += first(rows, incy);
    if (alpha == 0)
        for (int j = 0; j < n; j++)
            for (int i = j > ku ? j - ku : 0; i < m && i <= j + kl; i++)
                finite &= NAME(is_finite)(a[at(ku + i - j, j, lda)]);
    if (!finite)
        return;
    for (int j = 0; j < n; j++) {
        REAL sum = 0;
        int end = m < j + kl + 1 ? m : j + kl + 1;
        for (int i = j > ku ? j - ku : 0; i < end; i++) {
            REAL element = a[at(ku + i - j, j, lda)];
            if (is(trans, 'N'))
                y[(long)i * incy] += alpha * element * x[(long)j * incx];
            else
                sum += element * x[(long)i * incx];
        }
        if (!is(trans, 'N'))
            y[(long)j * incy] += alpha * sum;
    }
}
void FORTRAN(gbmv)(const char *trans, const int *m, const int *n, const int *kl, const int *ku, const REAL *alpha, const REAL *a, const int *lda, const REAL *x, const int *incx, const REAL *beta, REAL *y, const int *incy)
{
    NAME(gbmv_of)(*trans, *m, *n, *kl, *ku, *alpha, a, *lda, x, *incx, *beta, y, *incy);
}
void CBLAS(gbmv)(int order, int trans, int m, int n, int kl, int ku, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    char own = trans_of(trans);
    if (order == ROW_MAJOR)
        NAME(gbmv_of)(flip_trans(own), n, m, ku, kl, alpha, a, lda, x, incx, beta, y, incy);
    else
        NAME(gbmv_of)(own, m, n, kl, ku, alpha, a, lda, x, incx, beta, y, incy);
}

typedef void NAME(triangular)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, const REAL *a, int lda, REAL *b, int ldb);
NAME(triangular) CORE(trmm), CORE(trsm);

// x := op(A) x or op(A)⁻¹ x, in contiguous memory. Scattered vectors are copied.
INLINE void NAME(triangle_by_vector)(NAME(triangular) *routine, char uplo, char trans, char diag, int n, const REAL *a, int lda, REAL *x, int incx)
{
    if (n <= 0)
        return;
    if (incx == 1) {
        routine('L', uplo, trans, diag, n, 1, 1, a, lda, x, n);
        return;
    }
    REAL *column = malloc(n * sizeof *column);
    x += first(n, incx);
    for (int i = 0; i < n; i++)
        column[i] = x[(long)i * incx];
    routine('L', uplo, trans, diag, n, 1, 1, a, lda, column, n);
    for (int i = 0; i < n; i++)
        x[(long)i * incx] = column[i];
    free(column);
}

// Copies a banded or packed triangle to a full matrix, whose other triangle is zero.
#define UNPACKED_TRIANGLE(routine, INDEX)                                                                          \
    if (n <= 0)                                                                                                    \
        return;                                                                                                    \
    int skipped = is(diag, 'U');                                                                                   \
    REAL *full = malloc((word)n * n * sizeof *full);                                                               \
    for (int j = 0; j < n; j++) {                                                                                  \
        for (int i = 0; i < n; i++)                                                                                \
            full[at(i, j, n)] = 0;                                                                                 \
        for (int i = BAND_START(uplo, j, k); i < BAND_END(uplo, j, k); i++)                                        \
            if (i != j || !skipped)                                                                                \
                full[at(i, j, n)] = a[INDEX(uplo, i, j)];                                                          \
    }                                                                                                              \
    NAME(triangle_by_vector)(CORE(routine), uplo, trans, diag, n, full, n, x, incx);                               \
    free(full);

#define TRIANGULAR(vector_name, banded_name, packed_name, routine)                                                 \
    void FORTRAN(vector_name)(const char *uplo, const char *trans, const char *diag, const int *n, const REAL *a, const int *lda, REAL *x, const int *incx) \
    {                                                                                                              \
        NAME(triangle_by_vector)(CORE(routine), *uplo, *trans, *diag, *n, a, *lda, x, *incx);                      \
    }                                                                                                              \
    void CBLAS(vector_name)(int order, int uplo, int trans, int diag, int n, const REAL *a, int lda, REAL *x, int incx) \
    {                                                                                                              \
        int rows = order == ROW_MAJOR;                                                                             \
        char own = trans_of(trans), part = uplo_of(uplo);                                                          \
        NAME(triangle_by_vector)(CORE(routine), rows ? flip_uplo(part) : part, rows ? flip_trans(own) : own, diag_of(diag), n, a, lda, x, incx); \
    }                                                                                                              \
    INLINE void NAME(JOIN(banded_name, _of))(char uplo, char trans, char diag, int n, int k, const REAL *a, int lda, REAL *x, int incx) \
    {                                                                                                              \
        UNPACKED_TRIANGLE(routine, BANDED)                                                                         \
    }                                                                                                              \
    void FORTRAN(banded_name)(const char *uplo, const char *trans, const char *diag, const int *n, const int *k, const REAL *a, const int *lda, REAL *x, const int *incx) \
    {                                                                                                              \
        NAME(JOIN(banded_name, _of))(*uplo, *trans, *diag, *n, *k, a, *lda, x, *incx);                             \
    }                                                                                                              \
    void CBLAS(banded_name)(int order, int uplo, int trans, int diag, int n, int k, const REAL *a, int lda, REAL *x, int incx) \
    {                                                                                                              \
        int rows = order == ROW_MAJOR;                                                                             \
        char own = trans_of(trans), part = uplo_of(uplo);                                                          \
        NAME(JOIN(banded_name, _of))(rows ? flip_uplo(part) : part, rows ? flip_trans(own) : own, diag_of(diag), n, k, a, lda, x, incx); \
    }                                                                                                              \
    INLINE void NAME(JOIN(packed_name, _of))(char uplo, char trans, char diag, int n, const REAL *a, REAL *x, int incx) \
    {                                                                                                              \
        int k = n;                                                                                                 \
        UNPACKED_TRIANGLE(routine, PACKED)                                                                         \
    }                                                                                                              \
    void FORTRAN(packed_name)(const char *uplo, const char *trans, const char *diag, const int *n, const REAL *a, REAL *x, const int *incx) \
    {                                                                                                              \
        NAME(JOIN(packed_name, _of))(*uplo, *trans, *diag, *n, a, x, *incx);                                       \
    }                                                                                                              \
    void CBLAS(packed_name)(int order, int uplo, int trans, int diag, int n, const REAL *a, REAL *x, int incx)     \
    {                                                                                                              \
        int rows = order == ROW_MAJOR;                                                                             \
        char own = trans_of(trans), part = uplo_of(uplo);                                                          \
        NAME(JOIN(packed_name, _of))(rows ? flip_uplo(part) : part, rows ? flip_trans(own) : own, diag_of(diag), n, a, x, incx); \
    }

TRIANGULAR(trmv, tbmv, tpmv, trmm)
TRIANGULAR(trsv, tbsv, tpsv, trsm)

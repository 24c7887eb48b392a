// Factorisations and solutions of LAPACK. Factorisations are core routines; solutions and inverses are
// triangular solutions.

void CORE(potrf)(int uplo, int n, REAL *a, int lda, int *info);
void CORE(getrf)(int m, int n, REAL *a, int lda, int *pivots, int *info);

// The Cholesky factor in place of a triangle. `info` is the order of the first minor that is not positive.
void BODY(CORE(potrf))(int uplo, int n, REAL *a, int lda, int *info)
{
    int up = is(uplo, 'U');
    *info = 0;
    for (int j = 0; j < n; j++) {
        REAL pivot = a[at(j, j, lda)];
        for (int l = 0; l < j; l++) {
            REAL element = a[up ? at(l, j, lda) : at(j, l, lda)];
            pivot -= element * element;
        }
        if (!(pivot > 0)) {
            a[at(j, j, lda)] = pivot;
            *info = j + 1;
            return;
        }
        pivot = SQRT(pivot);
        a[at(j, j, lda)] = pivot;
        for (int i = j + 1; i < n; i++) {
            REAL sum = a[up ? at(j, i, lda) : at(i, j, lda)];
            for (int l = 0; l < j; l++)
                sum -= a[up ? at(l, i, lda) : at(i, l, lda)] * a[up ? at(l, j, lda) : at(j, l, lda)];
            a[up ? at(j, i, lda) : at(i, j, lda)] = sum / pivot;
        }
    }
}
void FORTRAN(potrf)(const char *uplo, const int *n, REAL *a, const int *lda, int *info)
{
    CORE(potrf)(*uplo, *n, a, *lda, info);
}

INLINE void NAME(potrs_of)(char uplo, int n, int columns, const REAL *a, int lda, REAL *b, int ldb)
{
    CORE(trsm)('L', uplo, is(uplo, 'U') ? 'T' : 'N', 'N', n, columns, 1, a, lda, b, ldb);
    CORE(trsm)('L', uplo, is(uplo, 'U') ? 'N' : 'T', 'N', n, columns, 1, a, lda, b, ldb);
}
void FORTRAN(potrs)(const char *uplo, const int *n, const int *columns, const REAL *a, const int *lda, REAL *b, const int *ldb, int *info)
{
    *info = 0;
    NAME(potrs_of)(*uplo, *n, *columns, a, *lda, b, *ldb);
}
void FORTRAN(posv)(const char *uplo, const int *n, const int *columns, REAL *a, const int *lda, REAL *b, const int *ldb, int *info)
{
    CORE(potrf)(*uplo, *n, a, *lda, info);
    if (*info == 0)
        NAME(potrs_of)(*uplo, *n, *columns, a, *lda, b, *ldb);
}

INLINE int NAME(zero_on_diagonal)(int n, const REAL *a, int lda)
{
    for (int i = 0; i < n; i++)
        if (a[at(i, i, lda)] == 0)
            return i + 1;
    return 0;
}
void FORTRAN(trtrs)(const char *uplo, const char *trans, const char *diag, const int *n, const int *columns, const REAL *a, const int *lda, REAL *b, const int *ldb, int *info)
{
    *info = is(*diag, 'N') ? NAME(zero_on_diagonal)(*n, a, *lda) : 0;
    if (*info == 0)
        CORE(trsm)('L', *uplo, *trans, *diag, *n, *columns, 1, a, *lda, b, *ldb);
}

INLINE REAL *NAME(identity)(int n)
{
    REAL *one = malloc((word)n * n * sizeof *one);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            one[at(i, j, n)] = i == j;
    return one;
}
INLINE void NAME(copy_triangle)(char uplo, int skips_diagonal, int n, const REAL *from, REAL *a, int lda)
{
    for (int j = 0; j < n; j++)
        for (int i = is(uplo, 'U') ? 0 : j; i < (is(uplo, 'U') ? j + 1 : n); i++)
            if (i != j || !skips_diagonal)
                a[at(i, j, lda)] = from[at(i, j, n)];
}
void FORTRAN(trtri)(const char *uplo, const char *diag, const int *order, REAL *a, const int *lda, int *info)
{
    int n = *order;
    *info = is(*diag, 'N') ? NAME(zero_on_diagonal)(n, a, *lda) : 0;
    if (n <= 0 || *info != 0)
        return;
    REAL *inverse = NAME(identity)(n);
    CORE(trsm)('L', *uplo, 'N', *diag, n, n, 1, a, *lda, inverse, n);
    NAME(copy_triangle)(*uplo, is(*diag, 'U'), n, inverse, a, *lda);
    free(inverse);
}
void FORTRAN(potri)(const char *uplo, const int *order, REAL *a, const int *lda, int *info)
{
    int n = *order;
    *info = NAME(zero_on_diagonal)(n, a, *lda);
    if (n <= 0 || *info != 0)
        return;
    REAL *inverse = NAME(identity)(n);
    NAME(potrs_of)(*uplo, n, n, a, *lda, inverse, n);
    NAME(copy_triangle)(*uplo, 0, n, inverse, a, *lda);
    free(inverse);
}

INLINE void NAME(swap_rows)(int i, int k, int columns, REAL *a, int lda)
{
    if (i != k)
        for (int j = 0; j < columns; j++) {
            REAL old = a[at(i, j, lda)];
            a[at(i, j, lda)] = a[at(k, j, lda)];
            a[at(k, j, lda)] = old;
        }
}

// Factors of a matrix with interchanged rows: a unit lower and an upper triangle in place of the matrix.
void BODY(CORE(getrf))(int m, int n, REAL *a, int lda, int *pivots, int *info)
{
    int count = m < n ? m : n;
    *info = 0;
    for (int k = 0; k < count; k++) {
        int best = k;
        for (int i = k + 1; i < m; i++)
            if (ABS(a[at(i, k, lda)]) > ABS(a[at(best, k, lda)]))
                best = i;
        pivots[k] = best + 1;
        NAME(swap_rows)(k, best, n, a, lda);
        REAL pivot = a[at(k, k, lda)];
        if (pivot == 0) {
            if (*info == 0)
                *info = k + 1;
            continue;
        }
        for (int i = k + 1; i < m; i++)
            a[at(i, k, lda)] = a[at(i, k, lda)] / pivot;
        for (int j = k + 1; j < n; j++)
            for (int i = k + 1; i < m; i++)
                a[at(i, j, lda)] -= a[at(i, k, lda)] * a[at(k, j, lda)];
    }
}
void FORTRAN(getrf)(const int *m, const int *n, REAL *a, const int *lda, int *pivots, int *info)
{
    CORE(getrf)(*m, *n, a, *lda, pivots, info);
}

INLINE void NAME(getrs_of)(char trans, int n, int columns, const REAL *a, int lda, const int *pivots, REAL *b, int ldb)
{
    if (is(trans, 'N')) {
        for (int i = 0; i < n; i++)
            NAME(swap_rows)(i, pivots[i] - 1, columns, b, ldb);
        CORE(trsm)('L', 'L', 'N', 'U', n, columns, 1, a, lda, b, ldb);
        CORE(trsm)('L', 'U', 'N', 'N', n, columns, 1, a, lda, b, ldb);
    } else {
        CORE(trsm)('L', 'U', 'T', 'N', n, columns, 1, a, lda, b, ldb);
        CORE(trsm)('L', 'L', 'T', 'U', n, columns, 1, a, lda, b, ldb);
        for (int i = n - 1; i >= 0; i--)
            NAME(swap_rows)(i, pivots[i] - 1, columns, b, ldb);
    }
}
void FORTRAN(getrs)(const char *trans, const int *n, const int *columns, const REAL *a, const int *lda, const int *pivots, REAL *b, const int *ldb, int *info)
{
    *info = 0;
    NAME(getrs_of)(*trans, *n, *columns, a, *lda, pivots, b, *ldb);
}
void FORTRAN(gesv)(const int *n, const int *columns, REAL *a, const int *lda, int *pivots, REAL *b, const int *ldb, int *info)
{
    CORE(getrf)(*n, *n, a, *lda, pivots, info);
    if (*info == 0)
        NAME(getrs_of)('N', *n, *columns, a, *lda, pivots, b, *ldb);
}
// A length of -1 asks for the length of the work array.
void FORTRAN(getri)(const int *order, REAL *a, const int *lda, const int *pivots, REAL *work, const int *length, int *info)
{
    int n = *order;
    *info = 0;
    work[0] = n > 1 ? 64 * n : 64;
    if (*length == -1 || n <= 0)
        return;
    *info = NAME(zero_on_diagonal)(n, a, *lda);
    if (*info != 0)
        return;
    REAL *inverse = NAME(identity)(n);
    NAME(getrs_of)('N', n, n, a, *lda, pivots, inverse, n);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            a[at(i, j, *lda)] = inverse[at(i, j, n)];
    free(inverse);
}

// Definitions of the core routines by calls of the program's library, for both interfaces. Fortran's
// compilers pass the lengths of characters after all arguments.
#define VIA_FORTRAN(name) JOIN(__gr_blas_fortran_, NAME(name))
#define VIA_CBLAS(name) JOIN(__gr_blas_cblas_, NAME(name))
#define LIBRARY_FORTRAN(name) JOIN(NAME(name), _)
#define LIBRARY_CBLAS(name) JOIN(cblas_, NAME(name))

#define SCALE                                                                                                      \
    {                                                                                                              \
        y += first(n, incy);                                                                                       \
        for (int i = 0; i < n; i++)                                                                                \
            y[(long)i * incy] = beta == 0 ? 0 : beta * y[(long)i * incy];                                          \
    }
void VIA_FORTRAN(scale)(int n, REAL beta, REAL *y, int incy) SCALE
void VIA_CBLAS(scale)(int n, REAL beta, REAL *y, int incy) SCALE

void LIBRARY_FORTRAN(gemv)(const char *, const int *, const int *, const REAL *, const REAL *, const int *, const REAL *, const int *, const REAL *, REAL *, const int *, word);
void LIBRARY_CBLAS(gemv)(int, int, int, int, REAL, const REAL *, int, const REAL *, int, REAL, REAL *, int);
void VIA_FORTRAN(gemv)(int trans, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    char flag = (char)trans;
    LIBRARY_FORTRAN(gemv)(&flag, &m, &n, &alpha, a, &lda, x, &incx, &beta, y, &incy, 1);
}
void VIA_CBLAS(gemv)(int trans, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    LIBRARY_CBLAS(gemv)(COLUMN_MAJOR, flag_of_trans(trans), m, n, alpha, a, lda, x, incx, beta, y, incy);
}

void LIBRARY_FORTRAN(symv)(const char *, const int *, const REAL *, const REAL *, const int *, const REAL *, const int *, const REAL *, REAL *, const int *, word);
void LIBRARY_CBLAS(symv)(int, int, int, REAL, const REAL *, int, const REAL *, int, REAL, REAL *, int);
void VIA_FORTRAN(symv)(int uplo, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    char flag = (char)uplo;
    LIBRARY_FORTRAN(symv)(&flag, &n, &alpha, a, &lda, x, &incx, &beta, y, &incy, 1);
}
void VIA_CBLAS(symv)(int uplo, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy)
{
    LIBRARY_CBLAS(symv)(COLUMN_MAJOR, flag_of_uplo(uplo), n, alpha, a, lda, x, incx, beta, y, incy);
}

void LIBRARY_FORTRAN(ger)(const int *, const int *, const REAL *, const REAL *, const int *, const REAL *, const int *, REAL *, const int *);
void LIBRARY_CBLAS(ger)(int, int, int, REAL, const REAL *, int, const REAL *, int, REAL *, int);
void VIA_FORTRAN(ger)(int m, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a, int lda)
{
    LIBRARY_FORTRAN(ger)(&m, &n, &alpha, x, &incx, y, &incy, a, &lda);
}
void VIA_CBLAS(ger)(int m, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a, int lda)
{
    LIBRARY_CBLAS(ger)(COLUMN_MAJOR, m, n, alpha, x, incx, y, incy, a, lda);
}

void LIBRARY_FORTRAN(gemm)(const char *, const char *, const int *, const int *, const int *, const REAL *, const REAL *, const int *, const REAL *, const int *, const REAL *, REAL *, const int *, word, word);
void LIBRARY_CBLAS(gemm)(int, int, int, int, int, int, REAL, const REAL *, int, const REAL *, int, REAL, REAL *, int);
void VIA_FORTRAN(gemm)(int ta, int tb, int m, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    char flags[2] = {(char)ta, (char)tb};
    LIBRARY_FORTRAN(gemm)(flags, flags + 1, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}
void VIA_CBLAS(gemm)(int ta, int tb, int m, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    LIBRARY_CBLAS(gemm)(COLUMN_MAJOR, flag_of_trans(ta), flag_of_trans(tb), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void LIBRARY_FORTRAN(symm)(const char *, const char *, const int *, const int *, const REAL *, const REAL *, const int *, const REAL *, const int *, const REAL *, REAL *, const int *, word, word);
void LIBRARY_CBLAS(symm)(int, int, int, int, int, REAL, const REAL *, int, const REAL *, int, REAL, REAL *, int);
void VIA_FORTRAN(symm)(int side, int uplo, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    char flags[2] = {(char)side, (char)uplo};
    LIBRARY_FORTRAN(symm)(flags, flags + 1, &m, &n, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}
void VIA_CBLAS(symm)(int side, int uplo, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    LIBRARY_CBLAS(symm)(COLUMN_MAJOR, flag_of_side(side), flag_of_uplo(uplo), m, n, alpha, a, lda, b, ldb, beta, c, ldc);
}

void LIBRARY_FORTRAN(syrk)(const char *, const char *, const int *, const int *, const REAL *, const REAL *, const int *, const REAL *, REAL *, const int *, word, word);
void LIBRARY_CBLAS(syrk)(int, int, int, int, int, REAL, const REAL *, int, REAL, REAL *, int);
void VIA_FORTRAN(syrk)(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, REAL beta, REAL *c, int ldc)
{
    char flags[2] = {(char)uplo, (char)trans};
    LIBRARY_FORTRAN(syrk)(flags, flags + 1, &n, &k, &alpha, a, &lda, &beta, c, &ldc, 1, 1);
}
void VIA_CBLAS(syrk)(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, REAL beta, REAL *c, int ldc)
{
    LIBRARY_CBLAS(syrk)(COLUMN_MAJOR, flag_of_uplo(uplo), flag_of_trans(trans), n, k, alpha, a, lda, beta, c, ldc);
}

void LIBRARY_FORTRAN(syr2k)(const char *, const char *, const int *, const int *, const REAL *, const REAL *, const int *, const REAL *, const int *, const REAL *, REAL *, const int *, word, word);
void LIBRARY_CBLAS(syr2k)(int, int, int, int, int, REAL, const REAL *, int, const REAL *, int, REAL, REAL *, int);
void VIA_FORTRAN(syr2k)(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    char flags[2] = {(char)uplo, (char)trans};
    LIBRARY_FORTRAN(syr2k)(flags, flags + 1, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc, 1, 1);
}
void VIA_CBLAS(syr2k)(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc)
{
    LIBRARY_CBLAS(syr2k)(COLUMN_MAJOR, flag_of_uplo(uplo), flag_of_trans(trans), n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

#define TRIANGULAR_LIBRARY(name)                                                                                   \
    void LIBRARY_FORTRAN(name)(const char *, const char *, const char *, const char *, const int *, const int *, const REAL *, const REAL *, const int *, REAL *, const int *, word, word, word, word); \
    void LIBRARY_CBLAS(name)(int, int, int, int, int, int, int, REAL, const REAL *, int, REAL *, int);             \
    void VIA_FORTRAN(name)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, const REAL *a, int lda, REAL *b, int ldb) \
    {                                                                                                              \
        char flags[4] = {(char)side, (char)uplo, (char)trans, (char)diag};                                         \
        LIBRARY_FORTRAN(name)(flags, flags + 1, flags + 2, flags + 3, &m, &n, &alpha, a, &lda, b, &ldb, 1, 1, 1, 1); \
    }                                                                                                              \
    void VIA_CBLAS(name)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, const REAL *a, int lda, REAL *b, int ldb) \
    {                                                                                                              \
        LIBRARY_CBLAS(name)(COLUMN_MAJOR, flag_of_side(side), flag_of_uplo(uplo), flag_of_trans(trans), flag_of_diag(diag), m, n, alpha, a, lda, b, ldb); \
    }
TRIANGULAR_LIBRARY(trmm)
TRIANGULAR_LIBRARY(trsm)

void LIBRARY_FORTRAN(potrf)(const char *, const int *, REAL *, const int *, int *, word);
void VIA_FORTRAN(potrf)(int uplo, int n, REAL *a, int lda, int *info)
{
    char flag = (char)uplo;
    LIBRARY_FORTRAN(potrf)(&flag, &n, a, &lda, info, 1);
}
void LIBRARY_FORTRAN(getrf)(const int *, const int *, REAL *, const int *, int *, int *);
void VIA_FORTRAN(getrf)(int m, int n, REAL *a, int lda, int *pivots, int *info)
{
    LIBRARY_FORTRAN(getrf)(&m, &n, a, &lda, pivots, info);
}

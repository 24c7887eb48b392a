// Rules of the products of a matrix and a vector, and of the rank-one update.

INLINE void NAME(copy_vector)(int n, const REAL *x, int incx, REAL *to)
{
    x += first(n, incx);
    for (int i = 0; i < n; i++)
        to[i] = x[(long)i * incx];
}
INLINE void NAME(add_vector)(int n, const REAL *sum, REAL *to, int inc, int shared)
{
    to += first(n, inc);
    for (int i = 0; i < n; i++)
        NAME(add)(&to[(long)i * inc], sum[i], shared);
}
INLINE REAL NAME(inner_vector)(int n, const REAL *a, const REAL *b, int incb)
{
#pragma clang fp reassociate(on)
    REAL sum = 0;
    b += first(n, incb);
    for (int i = 0; i < n; i++)
        sum += a[i] * b[(long)i * incb];
    return sum;
}

// Adds alpha op(A) x to an adjoint.
INLINE void NAME(add_matrix_vector)(int trans, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL *to, int inc, int shared)
{
    int rows = is(trans, 'N') ? m : n;
    if (shared) {
        REAL *sum = NAME(block)(rows, 1);
        CORE(gemv)(trans, m, n, alpha, a, lda, x, incx, 0, sum, 1);
        NAME(add_vector)(rows, sum, to, inc, 1);
        free(sum);
    } else {
        CORE(gemv)(trans, m, n, alpha, a, lda, x, incx, 1, to, inc);
    }
}
// Adds alpha x yᵀ to an adjoint.
INLINE void NAME(add_outer)(int m, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *to, int ld, int shared)
{
    if (!shared) {
        CORE(ger)(m, n, alpha, x, incx, y, incy, to, ld);
        return;
    }
    x += first(m, incx);
    y += first(n, incy);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            NAME(add)(&to[at(i, j, ld)], alpha * x[(long)i * incx] * y[(long)j * incy], 1);
}

// y := alpha op(A) x + beta y. Parameters: 3 alpha, 4 A, 6 x, 8 beta, 9 y.
void TANGENT(gemv)(int trans, int m, int n, REAL alpha, REAL alpha_tan, const REAL *a, const REAL *a_tan, int lda, const REAL *x, const REAL *x_tan, int incx, REAL beta, REAL beta_tan, REAL *y, REAL *y_tan, int incy, int active)
{
    if (!y_tan || m <= 0 || n <= 0)
        return;
    int rows = is(trans, 'N') ? m : n;
    CORE(scale)(rows, beta, y_tan, incy);
    if (ACTIVE(8))
        NAME(add_read)(rows, beta, beta_tan, y, y_tan, incy);
    if (ACTIVE(3))
        CORE(gemv)(trans, m, n, alpha_tan, a, lda, x, incx, 1, y_tan, incy);
    if (a_tan)
        CORE(gemv)(trans, m, n, alpha, a_tan, lda, x, incx, 1, y_tan, incy);
    if (x_tan)
        CORE(gemv)(trans, m, n, alpha, a, lda, x_tan, incx, 1, y_tan, incy);
}

#define KEEPS_A (ACTIVE(9) && OVERWRITTEN(4) && (ACTIVE(3) || ACTIVE(6)))
#define KEEPS_X (ACTIVE(9) && OVERWRITTEN(6) && (ACTIVE(3) || ACTIVE(4)))
#define KEEPS_Y (ACTIVE(9) && ACTIVE(8))

REAL *AUGMENTED(gemv)(int trans, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy, int active, int overwritten)
{
    REAL *tape = 0;
    if (m > 0 && n > 0) {
        int rows = is(trans, 'N') ? m : n, columns = is(trans, 'N') ? n : m;
        word of_a = KEEPS_A ? (word)m * n : 0, of_x = KEEPS_X ? columns : 0, of_y = KEEPS_Y ? rows : 0;
        if (of_a + of_x + of_y > 0)
            tape = malloc((of_a + of_x + of_y) * sizeof *tape);
        if (of_a > 0)
            NAME(copy_matrix)(m, n, a, lda, tape);
        if (of_x > 0)
            NAME(copy_vector)(columns, x, incx, tape + of_a);
        if (of_y > 0)
            NAME(copy_vector)(rows, y, incy, tape + of_a + of_x);
    }
    CORE(gemv)(trans, m, n, alpha, a, lda, x, incx, beta, y, incy);
    return tape;
}

void REVERSE(gemv)(int trans, int m, int n, REAL alpha, REAL *alpha_adj, const REAL *a, REAL *a_adj, int lda, const REAL *x, REAL *x_adj, int incx, REAL beta, REAL *beta_adj, const REAL *y, REAL *y_adj, int incy, const REAL *tape, int active, int overwritten, int shared)
{
    if (!y_adj || m <= 0 || n <= 0)
        return;
    int plain = is(trans, 'N'), rows = plain ? m : n, columns = plain ? n : m;
    word of_a = KEEPS_A ? (word)m * n : 0, of_x = KEEPS_X ? columns : 0;
    int la = of_a > 0 ? m : lda, incx_old = of_x > 0 ? 1 : incx;
    const REAL *old_a = of_a > 0 ? tape : a, *old_x = of_x > 0 ? tape + of_a : x;
    if (alpha_adj) {
        REAL *product = NAME(block)(rows, 1);
        CORE(gemv)(trans, m, n, 1, old_a, la, old_x, incx_old, 0, product, 1);
        *alpha_adj += NAME(inner_vector)(rows, product, y_adj, incy);
        free(product);
    }
    if (beta_adj) {
        const REAL *old_y = tape + of_a + of_x, *start = y_adj + first(rows, incy);
        REAL sum = 0;
        for (int i = 0; i < rows; i++)
            sum += NAME(read)(beta, old_y[i]) * start[(long)i * incy];
        *beta_adj += sum;
    }
    if (a_adj) {
        if (plain)
            NAME(add_outer)(m, n, alpha, y_adj, incy, old_x, incx_old, a_adj, lda, shared);
        else
            NAME(add_outer)(m, n, alpha, old_x, incx_old, y_adj, incy, a_adj, lda, shared);
    }
    if (x_adj)
        NAME(add_matrix_vector)(flip_trans(trans), m, n, alpha, old_a, la, y_adj, incy, x_adj, incx, shared);
    CORE(scale)(rows, beta, y_adj, incy);
}
#undef KEEPS_A
#undef KEEPS_X
#undef KEEPS_Y

// A := alpha x yᵀ + A. Parameters: 2 alpha, 3 x, 5 y, 7 A.
void TANGENT(ger)(int m, int n, REAL alpha, REAL alpha_tan, const REAL *x, const REAL *x_tan, int incx, const REAL *y, const REAL *y_tan, int incy, REAL *a, REAL *a_tan, int lda, int active)
{
    if (!a_tan || m <= 0 || n <= 0)
        return;
    if (ACTIVE(2))
        CORE(ger)(m, n, alpha_tan, x, incx, y, incy, a_tan, lda);
    if (x_tan)
        CORE(ger)(m, n, alpha, x_tan, incx, y, incy, a_tan, lda);
    if (y_tan)
        CORE(ger)(m, n, alpha, x, incx, y_tan, incy, a_tan, lda);
}

#define KEEPS_X (ACTIVE(7) && OVERWRITTEN(3) && (ACTIVE(2) || ACTIVE(5)))
#define KEEPS_Y (ACTIVE(7) && OVERWRITTEN(5) && (ACTIVE(2) || ACTIVE(3)))

REAL *AUGMENTED(ger)(int m, int n, REAL alpha, const REAL *x, int incx, const REAL *y, int incy, REAL *a, int lda, int active, int overwritten)
{
    REAL *tape = 0;
    if (m > 0 && n > 0) {
        word of_x = KEEPS_X ? m : 0, of_y = KEEPS_Y ? n : 0;
        if (of_x + of_y > 0)
            tape = malloc((of_x + of_y) * sizeof *tape);
        if (of_x > 0)
            NAME(copy_vector)(m, x, incx, tape);
        if (of_y > 0)
            NAME(copy_vector)(n, y, incy, tape + of_x);
    }
    CORE(ger)(m, n, alpha, x, incx, y, incy, a, lda);
    return tape;
}

void REVERSE(ger)(int m, int n, REAL alpha, REAL *alpha_adj, const REAL *x, REAL *x_adj, int incx, const REAL *y, REAL *y_adj, int incy, const REAL *a, REAL *a_adj, int lda, const REAL *tape, int active, int overwritten, int shared)
{
    if (!a_adj || m <= 0 || n <= 0)
        return;
    word of_x = KEEPS_X ? m : 0, of_y = KEEPS_Y ? n : 0;
    const REAL *old_x = of_x > 0 ? tape : x, *old_y = of_y > 0 ? tape + of_x : y;
    int incx_old = of_x > 0 ? 1 : incx, incy_old = of_y > 0 ? 1 : incy;
    if (alpha_adj) {
        REAL *product = NAME(block)(m, 1);
        CORE(gemv)('N', m, n, 1, a_adj, lda, old_y, incy_old, 0, product, 1);
        *alpha_adj += NAME(inner_vector)(m, product, old_x, incx_old);
        free(product);
    }
    if (x_adj)
        NAME(add_matrix_vector)('N', m, n, alpha, a_adj, lda, old_y, incy_old, x_adj, incx, shared);
    if (y_adj)
        NAME(add_matrix_vector)('T', m, n, alpha, a_adj, lda, old_x, incx_old, y_adj, incy, shared);
}
#undef KEEPS_X
#undef KEEPS_Y

// y := alpha A x + beta y for a symmetric A. Parameters: 2 alpha, 3 A, 5 x, 7 beta, 8 y.
void TANGENT(symv)(int uplo, int n, REAL alpha, REAL alpha_tan, const REAL *a, const REAL *a_tan, int lda, const REAL *x, const REAL *x_tan, int incx, REAL beta, REAL beta_tan, REAL *y, REAL *y_tan, int incy, int active)
{
    if (!y_tan || n <= 0)
        return;
    CORE(scale)(n, beta, y_tan, incy);
    if (ACTIVE(7))
        NAME(add_read)(n, beta, beta_tan, y, y_tan, incy);
    if (ACTIVE(2))
        CORE(symv)(uplo, n, alpha_tan, a, lda, x, incx, 1, y_tan, incy);
    if (a_tan)
        CORE(symv)(uplo, n, alpha, a_tan, lda, x, incx, 1, y_tan, incy);
    if (x_tan)
        CORE(symv)(uplo, n, alpha, a, lda, x_tan, incx, 1, y_tan, incy);
}

#define KEEPS_A (ACTIVE(8) && OVERWRITTEN(3) && (ACTIVE(2) || ACTIVE(5)))
#define KEEPS_X (ACTIVE(8) && OVERWRITTEN(5) && (ACTIVE(2) || ACTIVE(3)))
#define KEEPS_Y (ACTIVE(8) && ACTIVE(7))

REAL *AUGMENTED(symv)(int uplo, int n, REAL alpha, const REAL *a, int lda, const REAL *x, int incx, REAL beta, REAL *y, int incy, int active, int overwritten)
{
    REAL *tape = 0;
    if (n > 0) {
        word of_a = KEEPS_A ? (word)n * n : 0, of_x = KEEPS_X ? n : 0, of_y = KEEPS_Y ? n : 0;
        if (of_a + of_x + of_y > 0)
            tape = malloc((of_a + of_x + of_y) * sizeof *tape);
        if (of_a > 0)
            NAME(copy_matrix)(n, n, a, lda, tape);
        if (of_x > 0)
            NAME(copy_vector)(n, x, incx, tape + of_a);
        if (of_y > 0)
            NAME(copy_vector)(n, y, incy, tape + of_a + of_x);
    }
    CORE(symv)(uplo, n, alpha, a, lda, x, incx, beta, y, incy);
    return tape;
}

void REVERSE(symv)(int uplo, int n, REAL alpha, REAL *alpha_adj, const REAL *a, REAL *a_adj, int lda, const REAL *x, REAL *x_adj, int incx, REAL beta, REAL *beta_adj, const REAL *y, REAL *y_adj, int incy, const REAL *tape, int active, int overwritten, int shared)
{
    if (!y_adj || n <= 0)
        return;
    word of_a = KEEPS_A ? (word)n * n : 0, of_x = KEEPS_X ? n : 0;
    int la = of_a > 0 ? n : lda, incx_old = of_x > 0 ? 1 : incx;
    const REAL *old_a = of_a > 0 ? tape : a, *old_x = of_x > 0 ? tape + of_a : x;
    REAL *g = NAME(block)(n, 1);
    NAME(copy_vector)(n, y_adj, incy, g);
    if (alpha_adj) {
        REAL *product = NAME(block)(n, 1);
        CORE(symv)(uplo, n, 1, old_a, la, old_x, incx_old, 0, product, 1);
        *alpha_adj += NAME(inner_vector)(n, product, g, 1);
        free(product);
    }
    if (beta_adj) {
        const REAL *old_y = tape + of_a + of_x;
        REAL sum = 0;
        for (int i = 0; i < n; i++)
            sum += NAME(read)(beta, old_y[i]) * g[i];
        *beta_adj += sum;
    }
    if (a_adj) {
        // An element off the diagonal occurs twice in A.
        REAL *v = NAME(block)(n, 1);
        NAME(copy_vector)(n, old_x, incx_old, v);
        for (int j = 0; j < n; j++) {
            REAL of_g = alpha * v[j], of_v = alpha * g[j];
            for (int i = START(uplo, j); i < END(uplo, j, n); i++)
                NAME(add)(&a_adj[at(i, j, lda)], i == j ? of_g * g[i] : of_g * g[i] + of_v * v[i], shared);
        }
        free(v);
    }
    if (x_adj && shared) {
        REAL *sum = NAME(block)(n, 1);
        CORE(symv)(uplo, n, alpha, old_a, la, g, 1, 0, sum, 1);
        NAME(add_vector)(n, sum, x_adj, incx, 1);
        free(sum);
    } else if (x_adj) {
        CORE(symv)(uplo, n, alpha, old_a, la, g, 1, 1, x_adj, incx);
    }
    free(g);
    CORE(scale)(n, beta, y_adj, incy);
}
#undef KEEPS_A
#undef KEEPS_X
#undef KEEPS_Y

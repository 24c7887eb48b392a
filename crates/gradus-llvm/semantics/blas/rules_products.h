// Rules of the products with general and symmetric matrices.

// C := alpha op(A) op(B) + beta C. Parameters: 5 alpha, 6 A, 8 B, 10 beta, 11 C.
void TANGENT(gemm)(int ta, int tb, int m, int n, int k, REAL alpha, REAL alpha_tan, const REAL *a, const REAL *a_tan, int lda, const REAL *b, const REAL *b_tan, int ldb, REAL beta, REAL beta_tan, REAL *c, REAL *c_tan, int ldc, int active)
{
    if (!c_tan || m <= 0 || n <= 0)
        return;
    NAME(scale_tangent)(m, n, beta, beta_tan, ACTIVE(10), c, c_tan, ldc);
    if (ACTIVE(5))
        CORE(gemm)(ta, tb, m, n, k, alpha_tan, a, lda, b, ldb, 1, c_tan, ldc);
    if (a_tan)
        CORE(gemm)(ta, tb, m, n, k, alpha, a_tan, lda, b, ldb, 1, c_tan, ldc);
    if (b_tan)
        CORE(gemm)(ta, tb, m, n, k, alpha, a, lda, b_tan, ldb, 1, c_tan, ldc);
}

#define ROWS_A (is(ta, 'N') ? m : k)
#define COLUMNS_A (is(ta, 'N') ? k : m)
#define ROWS_B (is(tb, 'N') ? k : n)
#define COLUMNS_B (is(tb, 'N') ? n : k)
#define KEEPS_A (ACTIVE(11) && OVERWRITTEN(6) && (ACTIVE(5) || ACTIVE(8)))
#define KEEPS_B (ACTIVE(11) && OVERWRITTEN(8) && (ACTIVE(5) || ACTIVE(6)))
#define KEEPS_C (ACTIVE(11) && ACTIVE(10))

REAL *AUGMENTED(gemm)(int ta, int tb, int m, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc, int active, int overwritten)
{
    REAL *tape = 0;
    if (m > 0 && n > 0) {
        word of_a = KEEPS_A && k > 0 ? (word)m * k : 0, of_b = KEEPS_B && k > 0 ? (word)n * k : 0, of_c = KEEPS_C ? (word)m * n : 0;
        if (of_a + of_b + of_c > 0)
            tape = malloc((of_a + of_b + of_c) * sizeof *tape);
        if (of_a > 0)
            NAME(copy_matrix)(ROWS_A, COLUMNS_A, a, lda, tape);
        if (of_b > 0)
            NAME(copy_matrix)(ROWS_B, COLUMNS_B, b, ldb, tape + of_a);
        if (of_c > 0)
            NAME(copy_matrix)(m, n, c, ldc, tape + of_a + of_b);
    }
    CORE(gemm)(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return tape;
}

void REVERSE(gemm)(int ta, int tb, int m, int n, int k, REAL alpha, REAL *alpha_adj, const REAL *a, REAL *a_adj, int lda, const REAL *b, REAL *b_adj, int ldb, REAL beta, REAL *beta_adj, const REAL *c, REAL *c_adj, int ldc, const REAL *tape, int active, int overwritten, int shared)
{
    if (!c_adj || m <= 0 || n <= 0)
        return;
    word of_a = KEEPS_A && k > 0 ? (word)m * k : 0, of_b = KEEPS_B && k > 0 ? (word)n * k : 0;
    int la = of_a > 0 ? ROWS_A : lda, lb = of_b > 0 ? ROWS_B : ldb;
    const REAL *old_a = of_a > 0 ? tape : a, *old_b = of_b > 0 ? tape + of_a : b;
    if (alpha_adj) {
        REAL *product = NAME(block)(m, n);
        CORE(gemm)(ta, tb, m, n, k, 1, old_a, la, old_b, lb, 0, product, m);
        *alpha_adj += NAME(inner)(m, n, product, m, c_adj, ldc);
        free(product);
    }
    if (beta_adj)
        *beta_adj += NAME(inner_read)(m, n, beta, tape + of_a + of_b, m, c_adj, ldc);
    if (a_adj) {
        if (is(ta, 'N'))
            NAME(add_product)('N', flip_trans(tb), m, k, n, alpha, c_adj, ldc, old_b, lb, a_adj, lda, shared);
        else
            NAME(add_product)(tb, 'T', k, m, n, alpha, old_b, lb, c_adj, ldc, a_adj, lda, shared);
    }
    if (b_adj) {
        if (is(tb, 'N'))
            NAME(add_product)(flip_trans(ta), 'N', k, n, m, alpha, old_a, la, c_adj, ldc, b_adj, ldb, shared);
        else
            NAME(add_product)('T', ta, n, k, m, alpha, c_adj, ldc, old_a, la, b_adj, ldb, shared);
    }
    NAME(scale_matrix)(m, n, beta, c_adj, ldc);
}
#undef KEEPS_A
#undef KEEPS_B
#undef KEEPS_C

// C := alpha A B + beta C or alpha B A + beta C for a symmetric A.
// Parameters: 4 alpha, 5 A, 7 B, 9 beta, 10 C.
void TANGENT(symm)(int side, int uplo, int m, int n, REAL alpha, REAL alpha_tan, const REAL *a, const REAL *a_tan, int lda, const REAL *b, const REAL *b_tan, int ldb, REAL beta, REAL beta_tan, REAL *c, REAL *c_tan, int ldc, int active)
{
    if (!c_tan || m <= 0 || n <= 0)
        return;
    NAME(scale_tangent)(m, n, beta, beta_tan, ACTIVE(9), c, c_tan, ldc);
    if (ACTIVE(4))
        CORE(symm)(side, uplo, m, n, alpha_tan, a, lda, b, ldb, 1, c_tan, ldc);
    if (a_tan)
        CORE(symm)(side, uplo, m, n, alpha, a_tan, lda, b, ldb, 1, c_tan, ldc);
    if (b_tan)
        CORE(symm)(side, uplo, m, n, alpha, a, lda, b_tan, ldb, 1, c_tan, ldc);
}

#define ORDER (is(side, 'L') ? m : n)
#define KEEPS_A (ACTIVE(10) && OVERWRITTEN(5) && (ACTIVE(4) || ACTIVE(7)))
#define KEEPS_B (ACTIVE(10) && OVERWRITTEN(7) && (ACTIVE(4) || ACTIVE(5)))
#define KEEPS_C (ACTIVE(10) && ACTIVE(9))

REAL *AUGMENTED(symm)(int side, int uplo, int m, int n, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc, int active, int overwritten)
{
    REAL *tape = 0;
    if (m > 0 && n > 0) {
        word of_a = KEEPS_A ? (word)ORDER * ORDER : 0, of_b = KEEPS_B ? (word)m * n : 0, of_c = KEEPS_C ? (word)m * n : 0;
        if (of_a + of_b + of_c > 0)
            tape = malloc((of_a + of_b + of_c) * sizeof *tape);
        if (of_a > 0)
            NAME(copy_matrix)(ORDER, ORDER, a, lda, tape);
        if (of_b > 0)
            NAME(copy_matrix)(m, n, b, ldb, tape + of_a);
        if (of_c > 0)
            NAME(copy_matrix)(m, n, c, ldc, tape + of_a + of_b);
    }
    CORE(symm)(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc);
    return tape;
}

void REVERSE(symm)(int side, int uplo, int m, int n, REAL alpha, REAL *alpha_adj, const REAL *a, REAL *a_adj, int lda, const REAL *b, REAL *b_adj, int ldb, REAL beta, REAL *beta_adj, const REAL *c, REAL *c_adj, int ldc, const REAL *tape, int active, int overwritten, int shared)
{
    if (!c_adj || m <= 0 || n <= 0)
        return;
    int order = ORDER;
    word of_a = KEEPS_A ? (word)order * order : 0, of_b = KEEPS_B ? (word)m * n : 0;
    int la = of_a > 0 ? order : lda, lb = of_b > 0 ? m : ldb;
    const REAL *old_a = of_a > 0 ? tape : a, *old_b = of_b > 0 ? tape + of_a : b;
    if (alpha_adj) {
        REAL *product = NAME(block)(m, n);
        CORE(symm)(side, uplo, m, n, 1, old_a, la, old_b, lb, 0, product, m);
        *alpha_adj += NAME(inner)(m, n, product, m, c_adj, ldc);
        free(product);
    }
    if (beta_adj)
        *beta_adj += NAME(inner_read)(m, n, beta, tape + of_a + of_b, m, c_adj, ldc);
    if (a_adj) {
        // An element off the diagonal occurs twice in A: the sum of the gradient and its transpose.
        REAL *sum = NAME(block)(order, order);
        CORE(syr2k)(uplo, is(side, 'L') ? 'N' : 'T', order, is(side, 'L') ? n : m, alpha, c_adj, ldc, old_b, lb, 0, sum, order);
        NAME(add_triangle)(uplo, 0, (REAL)0.5, order, sum, a_adj, lda, shared);
        free(sum);
    }
    if (b_adj) {
        if (shared) {
            REAL *sum = NAME(block)(m, n);
            CORE(symm)(side, uplo, m, n, alpha, old_a, la, c_adj, ldc, 0, sum, m);
            NAME(add_matrix)(m, n, sum, b_adj, ldb, 1);
            free(sum);
        } else {
            CORE(symm)(side, uplo, m, n, alpha, old_a, la, c_adj, ldc, 1, b_adj, ldb);
        }
    }
    NAME(scale_matrix)(m, n, beta, c_adj, ldc);
}
#undef KEEPS_A
#undef KEEPS_B
#undef KEEPS_C

// The adjoint of a triangle as a symmetric matrix in a triangle: elements on the diagonal count twice.
INLINE REAL *NAME(doubled_diagonal)(int uplo, int n, const REAL *adjoint, int ld)
{
    REAL *full = NAME(block)(n, n);
    for (int j = 0; j < n; j++)
        for (int i = START(uplo, j); i < END(uplo, j, n); i++)
            full[at(i, j, n)] = i == j ? 2 * adjoint[at(i, j, ld)] : adjoint[at(i, j, ld)];
    return full;
}

// Adds alpha S A (trans N) or alpha A S to an adjoint, for a symmetric S.
INLINE void NAME(add_symmetric_product)(int uplo, int trans, int n, int k, REAL alpha, const REAL *s, const REAL *a, int lda, REAL *to, int ld, int shared)
{
    int plain = is(trans, 'N'), rows = plain ? n : k, columns = plain ? k : n;
    if (shared) {
        REAL *sum = NAME(block)(rows, columns);
        CORE(symm)(plain ? 'L' : 'R', uplo, rows, columns, alpha, s, n, a, lda, 0, sum, rows);
        NAME(add_matrix)(rows, columns, sum, to, ld, 1);
        free(sum);
    } else {
        CORE(symm)(plain ? 'L' : 'R', uplo, rows, columns, alpha, s, n, a, lda, 1, to, ld);
    }
}

#define ROWS (is(trans, 'N') ? n : k)
#define COLUMNS (is(trans, 'N') ? k : n)

// C := alpha op(A) op(A)ᵀ + beta C, one triangle. Parameters: 4 alpha, 5 A, 7 beta, 8 C.
void TANGENT(syrk)(int uplo, int trans, int n, int k, REAL alpha, REAL alpha_tan, const REAL *a, const REAL *a_tan, int lda, REAL beta, REAL beta_tan, REAL *c, REAL *c_tan, int ldc, int active)
{
    if (!c_tan || n <= 0)
        return;
    NAME(scale_tangent_triangle)(uplo, n, beta, beta_tan, ACTIVE(7), c, c_tan, ldc);
    if (ACTIVE(4))
        CORE(syrk)(uplo, trans, n, k, alpha_tan, a, lda, 1, c_tan, ldc);
    if (a_tan)
        CORE(syr2k)(uplo, trans, n, k, alpha, a_tan, lda, a, lda, 1, c_tan, ldc);
}

#define KEEPS_A (ACTIVE(8) && OVERWRITTEN(5))
#define KEEPS_C (ACTIVE(8) && ACTIVE(7))

REAL *AUGMENTED(syrk)(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, REAL beta, REAL *c, int ldc, int active, int overwritten)
{
    REAL *tape = 0;
    if (n > 0) {
        int rows = KEEPS_A && k > 0 ? ROWS : 0, columns = KEEPS_A && k > 0 ? COLUMNS : 0, order = KEEPS_C ? n : 0;
        tape = NAME(saved_pair)(rows, columns, a, lda, order, order, c, ldc);
    }
    CORE(syrk)(uplo, trans, n, k, alpha, a, lda, beta, c, ldc);
    return tape;
}

void REVERSE(syrk)(int uplo, int trans, int n, int k, REAL alpha, REAL *alpha_adj, const REAL *a, REAL *a_adj, int lda, REAL beta, REAL *beta_adj, const REAL *c, REAL *c_adj, int ldc, const REAL *tape, int active, int overwritten, int shared)
{
    if (!c_adj || n <= 0)
        return;
    word of_a = KEEPS_A && k > 0 ? (word)n * k : 0;
    int la = of_a > 0 ? ROWS : lda;
    const REAL *old_a = of_a > 0 ? tape : a;
    if (alpha_adj) {
        REAL *product = NAME(block)(n, n);
        CORE(syrk)(uplo, trans, n, k, 1, old_a, la, 0, product, n);
        *alpha_adj += NAME(inner_triangle)(uplo, n, product, n, c_adj, ldc);
        free(product);
    }
    if (beta_adj)
        *beta_adj += NAME(inner_read_triangle)(uplo, n, beta, tape + of_a, n, c_adj, ldc);
    if (a_adj && k > 0) {
        REAL *s = NAME(doubled_diagonal)(uplo, n, c_adj, ldc);
        NAME(add_symmetric_product)(uplo, trans, n, k, alpha, s, old_a, la, a_adj, lda, shared);
        free(s);
    }
    NAME(scale_triangle)(uplo, n, beta, c_adj, ldc);
}
#undef KEEPS_A
#undef KEEPS_C

// C := alpha (op(A) op(B)ᵀ + op(B) op(A)ᵀ) + beta C, one triangle.
// Parameters: 4 alpha, 5 A, 7 B, 9 beta, 10 C.
void TANGENT(syr2k)(int uplo, int trans, int n, int k, REAL alpha, REAL alpha_tan, const REAL *a, const REAL *a_tan, int lda, const REAL *b, const REAL *b_tan, int ldb, REAL beta, REAL beta_tan, REAL *c, REAL *c_tan, int ldc, int active)
{
    if (!c_tan || n <= 0)
        return;
    NAME(scale_tangent_triangle)(uplo, n, beta, beta_tan, ACTIVE(9), c, c_tan, ldc);
    if (ACTIVE(4))
        CORE(syr2k)(uplo, trans, n, k, alpha_tan, a, lda, b, ldb, 1, c_tan, ldc);
    if (a_tan)
        CORE(syr2k)(uplo, trans, n, k, alpha, a_tan, lda, b, ldb, 1, c_tan, ldc);
    if (b_tan)
        CORE(syr2k)(uplo, trans, n, k, alpha, a, lda, b_tan, ldb, 1, c_tan, ldc);
}

#define KEEPS_A (ACTIVE(10) && OVERWRITTEN(5) && (ACTIVE(4) || ACTIVE(7)))
#define KEEPS_B (ACTIVE(10) && OVERWRITTEN(7) && (ACTIVE(4) || ACTIVE(5)))
#define KEEPS_C (ACTIVE(10) && ACTIVE(9))

REAL *AUGMENTED(syr2k)(int uplo, int trans, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL beta, REAL *c, int ldc, int active, int overwritten)
{
    REAL *tape = 0;
    if (n > 0) {
        word of_a = KEEPS_A && k > 0 ? (word)n * k : 0, of_b = KEEPS_B && k > 0 ? (word)n * k : 0, of_c = KEEPS_C ? (word)n * n : 0;
        if (of_a + of_b + of_c > 0)
            tape = malloc((of_a + of_b + of_c) * sizeof *tape);
        if (of_a > 0)
            NAME(copy_matrix)(ROWS, COLUMNS, a, lda, tape);
        if (of_b > 0)
            NAME(copy_matrix)(ROWS, COLUMNS, b, ldb, tape + of_a);
        if (of_c > 0)
            NAME(copy_matrix)(n, n, c, ldc, tape + of_a + of_b);
    }
    CORE(syr2k)(uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return tape;
}

void REVERSE(syr2k)(int uplo, int trans, int n, int k, REAL alpha, REAL *alpha_adj, const REAL *a, REAL *a_adj, int lda, const REAL *b, REAL *b_adj, int ldb, REAL beta, REAL *beta_adj, const REAL *c, REAL *c_adj, int ldc, const REAL *tape, int active, int overwritten, int shared)
{
    if (!c_adj || n <= 0)
        return;
    word of_a = KEEPS_A && k > 0 ? (word)n * k : 0, of_b = KEEPS_B && k > 0 ? (word)n * k : 0;
    int la = of_a > 0 ? ROWS : lda, lb = of_b > 0 ? ROWS : ldb;
    const REAL *old_a = of_a > 0 ? tape : a, *old_b = of_b > 0 ? tape + of_a : b;
    if (alpha_adj) {
        REAL *product = NAME(block)(n, n);
        CORE(syr2k)(uplo, trans, n, k, 1, old_a, la, old_b, lb, 0, product, n);
        *alpha_adj += NAME(inner_triangle)(uplo, n, product, n, c_adj, ldc);
        free(product);
    }
    if (beta_adj)
        *beta_adj += NAME(inner_read_triangle)(uplo, n, beta, tape + of_a + of_b, n, c_adj, ldc);
    if ((a_adj || b_adj) && k > 0) {
        REAL *s = NAME(doubled_diagonal)(uplo, n, c_adj, ldc);
        if (a_adj)
            NAME(add_symmetric_product)(uplo, trans, n, k, alpha, s, old_b, lb, a_adj, lda, shared);
        if (b_adj)
            NAME(add_symmetric_product)(uplo, trans, n, k, alpha, s, old_a, la, b_adj, ldb, shared);
        free(s);
    }
    NAME(scale_triangle)(uplo, n, beta, c_adj, ldc);
}
#undef KEEPS_A
#undef KEEPS_B
#undef KEEPS_C

// Rules of products with triangular matrices and of triangular solutions.
// Parameters: 6 alpha, 7 A, 9 B.

// op(A') B or B op(A') for a tangent A' of a triangle, in a new block. A unit diagonal has no tangent.
INLINE REAL *NAME(triangle_tangent_product)(int side, int uplo, int trans, int diag, int m, int n, const REAL *a_tan, int lda, const REAL *b, int ldb)
{
    REAL *product = NAME(saved)(m, n, b, ldb);
    CORE(trmm)(side, uplo, trans, diag, m, n, 1, a_tan, lda, product, m);
    if (is(diag, 'U'))
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                product[at(i, j, m)] -= b[at(i, j, ldb)];
    return product;
}

// Adds factor G op(B)ᵀ to the adjoint of A in op(A) B, or factor op(B)ᵀ G for B op(A), restricted to the
// triangle of A.
INLINE void NAME(add_to_triangle)(int side, int uplo, int trans, int diag, int m, int n, REAL factor, const REAL *g, int ldg, const REAL *b, int ldb, REAL *a_adj, int lda, int shared)
{
    int left = is(side, 'L'), order = left ? m : n, inner = left ? n : m, plain = is(trans, 'N');
    if (inner == 1) {
        long row = left ? 1 : plain ? ldb : ldg, column = left ? 1 : plain ? ldg : ldb;
        const REAL *rows = left == plain ? g : b, *columns = left == plain ? b : g;
        for (int j = 0; j < order; j++)
            for (int i = START(uplo, j); i < END(uplo, j, order); i++)
                if (i != j || !is(diag, 'U'))
                    NAME(add)(&a_adj[at(i, j, lda)], factor * rows[i * row] * columns[j * column], shared);
        return;
    }
    REAL *sum = NAME(block)(order, order);
    if (left == plain)
        CORE(gemm)(left ? 'N' : 'T', left ? 'T' : 'N', order, order, inner, factor, g, ldg, b, ldb, 0, sum, order);
    else
        CORE(gemm)(left ? 'N' : 'T', left ? 'T' : 'N', order, order, inner, factor, b, ldb, g, ldg, 0, sum, order);
    NAME(add_triangle)(uplo, is(diag, 'U'), 1, order, sum, a_adj, lda, shared);
    free(sum);
}

// B := alpha op(A) B or alpha B op(A).
void TANGENT(trmm)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, REAL alpha_tan, const REAL *a, const REAL *a_tan, int lda, REAL *b, REAL *b_tan, int ldb, int active)
{
    if (!b_tan || m <= 0 || n <= 0)
        return;
    CORE(trmm)(side, uplo, trans, diag, m, n, alpha, a, lda, b_tan, ldb);
    if (a_tan) {
        REAL *product = NAME(triangle_tangent_product)(side, uplo, trans, diag, m, n, a_tan, lda, b, ldb);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                b_tan[at(i, j, ldb)] += alpha * product[at(i, j, m)];
        free(product);
    }
    if (ACTIVE(6)) {
        REAL *product = NAME(saved)(m, n, b, ldb);
        CORE(trmm)(side, uplo, trans, diag, m, n, alpha_tan, a, lda, product, m);
        NAME(add_matrix)(m, n, product, b_tan, ldb, 0);
        free(product);
    }
}

#define ORDER (is(side, 'L') ? m : n)
#define KEEPS_A (ACTIVE(9) && OVERWRITTEN(7))
#define KEEPS_B (ACTIVE(9) && (ACTIVE(6) || ACTIVE(7)))

REAL *AUGMENTED(trmm)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, const REAL *a, int lda, REAL *b, int ldb, int active, int overwritten)
{
    REAL *tape = 0;
    if (m > 0 && n > 0) {
        int order = KEEPS_A ? ORDER : 0, rows = KEEPS_B ? m : 0, columns = KEEPS_B ? n : 0;
        tape = NAME(saved_pair)(order, order, a, lda, rows, columns, b, ldb);
    }
    CORE(trmm)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);
    return tape;
}

void REVERSE(trmm)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, REAL *alpha_adj, const REAL *a, REAL *a_adj, int lda, const REAL *b, REAL *b_adj, int ldb, const REAL *tape, int active, int overwritten, int shared)
{
    if (!b_adj || m <= 0 || n <= 0)
        return;
    word of_a = KEEPS_A ? (word)ORDER * ORDER : 0;
    int la = of_a > 0 ? ORDER : lda;
    const REAL *old_a = of_a > 0 ? tape : a, *old_b = tape + of_a;
    if (alpha_adj) {
        REAL *product = NAME(saved)(m, n, old_b, m);
        CORE(trmm)(side, uplo, trans, diag, m, n, 1, old_a, la, product, m);
        *alpha_adj += NAME(inner)(m, n, product, m, b_adj, ldb);
        free(product);
    }
    if (a_adj)
        NAME(add_to_triangle)(side, uplo, trans, diag, m, n, alpha, b_adj, ldb, old_b, m, a_adj, lda, shared);
    CORE(trmm)(side, uplo, flip_trans(trans), diag, m, n, alpha, old_a, la, b_adj, ldb);
}
#undef KEEPS_B

// X := alpha op(A)⁻¹ B or alpha B op(A)⁻¹: X' = op(A)⁻¹ (alpha B' + alpha' B - op(A') X).
void TANGENT(trsm)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, REAL alpha_tan, const REAL *a, const REAL *a_tan, int lda, REAL *b, REAL *b_tan, int ldb, int active)
{
    if (!b_tan || m <= 0 || n <= 0)
        return;
    NAME(scale_tangent)(m, n, alpha, alpha_tan, ACTIVE(6), b, b_tan, ldb);
    if (a_tan) {
        REAL *x = NAME(saved)(m, n, b, ldb);
        CORE(trsm)(side, uplo, trans, diag, m, n, alpha, a, lda, x, m);
        REAL *product = NAME(triangle_tangent_product)(side, uplo, trans, diag, m, n, a_tan, lda, x, m);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                b_tan[at(i, j, ldb)] -= product[at(i, j, m)];
        free(product);
        free(x);
    }
    CORE(trsm)(side, uplo, trans, diag, m, n, 1, a, lda, b_tan, ldb);
}

// The tape holds A and the solution, or with an active alpha the right-hand side.
#define KEEPS_B (ACTIVE(9) && ACTIVE(6))
#define KEEPS_X (ACTIVE(9) && ACTIVE(7) && OVERWRITTEN(9) && !ACTIVE(6))

REAL *AUGMENTED(trsm)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, const REAL *a, int lda, REAL *b, int ldb, int active, int overwritten)
{
    REAL *tape = 0;
    word of_a = 0;
    if (m > 0 && n > 0) {
        of_a = KEEPS_A ? (word)ORDER * ORDER : 0;
        word count = of_a + (KEEPS_B || KEEPS_X ? (word)m * n : 0);
        if (count > 0)
            tape = malloc(count * sizeof *tape);
        if (of_a > 0)
            NAME(copy_matrix)(ORDER, ORDER, a, lda, tape);
        if (KEEPS_B)
            NAME(copy_matrix)(m, n, b, ldb, tape + of_a);
    }
    CORE(trsm)(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);
    if (m > 0 && n > 0 && KEEPS_X)
        NAME(copy_matrix)(m, n, b, ldb, tape + of_a);
    return tape;
}

void REVERSE(trsm)(int side, int uplo, int trans, int diag, int m, int n, REAL alpha, REAL *alpha_adj, const REAL *a, REAL *a_adj, int lda, const REAL *b, REAL *b_adj, int ldb, const REAL *tape, int active, int overwritten, int shared)
{
    if (!b_adj || m <= 0 || n <= 0)
        return;
    word of_a = KEEPS_A ? (word)ORDER * ORDER : 0;
    int la = of_a > 0 ? ORDER : lda;
    const REAL *old_a = of_a > 0 ? tape : a;
    CORE(trsm)(side, uplo, flip_trans(trans), diag, m, n, 1, old_a, la, b_adj, ldb);
    if (alpha_adj) {
        *alpha_adj += NAME(inner)(m, n, tape + of_a, m, b_adj, ldb);
        if (a_adj) {
            REAL *x = NAME(saved)(m, n, tape + of_a, m);
            CORE(trsm)(side, uplo, trans, diag, m, n, alpha, old_a, la, x, m);
            NAME(add_to_triangle)(side, uplo, trans, diag, m, n, -1, b_adj, ldb, x, m, a_adj, lda, shared);
            free(x);
        }
    } else if (a_adj) {
        const REAL *x = KEEPS_X ? tape + of_a : b;
        NAME(add_to_triangle)(side, uplo, trans, diag, m, n, -1, b_adj, ldb, x, KEEPS_X ? m : ldb, a_adj, lda, shared);
    }
    NAME(scale_matrix)(m, n, alpha, b_adj, ldb);
}
#undef KEEPS_A
#undef KEEPS_B
#undef KEEPS_X

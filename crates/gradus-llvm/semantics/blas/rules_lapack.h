// Rules of the factorisations. The tape holds `info`, and the factors if the program may overwrite them.
//
// A failed factorisation has no derivative: tangents become NaN, and adjoints that are not zero become NaN.

INLINE REAL NAME(failed)(REAL adjoint) { return adjoint == 0 ? 0 : (REAL)__builtin_nan(""); }

#define BLOCK 32

// The adjoint of an unblocked Cholesky factorisation (I. Murray: Differentiation of the Cholesky
// decomposition, 2016). The element (i, j) of a factor, j ≤ i, has the index (j, i) for an upper triangle.
#define FACTOR(i, j) l[up ? at(j, i, ldl) : at(i, j, ldl)]
#define ADJOINT(i, j) g[up ? at(j, i, ldg) : at(i, j, ldg)]
INLINE void NAME(cholesky_block_reverse)(int up, int n, const REAL *l, int ldl, REAL *g, int ldg)
{
#pragma clang fp reassociate(on)
    for (int j = n - 1; j >= 0; j--) {
        REAL pivot = FACTOR(j, j), sum = ADJOINT(j, j);
        for (int i = j + 1; i < n; i++) {
            sum -= FACTOR(i, j) * ADJOINT(i, j) / pivot;
            ADJOINT(i, j) = ADJOINT(i, j) / pivot;
        }
        sum = sum / pivot;
        for (int k = 0; k < j; k++) {
            REAL old = FACTOR(j, k), row = ADJOINT(j, k) - sum * old;
            for (int i = j + 1; i < n; i++) {
                row -= ADJOINT(i, j) * FACTOR(i, k);
                ADJOINT(i, k) -= ADJOINT(i, j) * old;
            }
            ADJOINT(j, k) = row;
        }
        ADJOINT(j, j) = sum / 2;
    }
}

// The blocked form. Names of blocks: R left of the diagonal block D, C below D, B below R; for an upper
// factor their transposes.
INLINE void NAME(cholesky_reverse)(int uplo, int n, const REAL *l, int ldl, REAL *g, int ldg)
{
    int up = is(uplo, 'U');
    for (int end = n; end > 0; end -= BLOCK) {
        int start = end > BLOCK ? end - BLOCK : 0, size = end - start, rest = n - end;
        const REAL *d = l + at(start, start, ldl);
        const REAL *r = l + (up ? at(0, start, ldl) : at(start, 0, ldl));
        const REAL *c = l + (up ? at(start, end, ldl) : at(end, start, ldl));
        const REAL *b = l + (up ? at(0, end, ldl) : at(end, 0, ldl));
        REAL *d_adj = g + at(start, start, ldg);
        REAL *r_adj = g + (up ? at(0, start, ldg) : at(start, 0, ldg));
        REAL *c_adj = g + (up ? at(start, end, ldg) : at(end, start, ldg));
        REAL *b_adj = g + (up ? at(0, end, ldg) : at(end, 0, ldg));
        if (rest > 0) {
            REAL *product = NAME(block)(size, size);
            if (up) {
                CORE(trsm)('L', 'U', 'N', 'N', size, rest, 1, d, ldl, c_adj, ldg);
                CORE(gemm)('N', 'N', start, rest, size, -1, r, ldl, c_adj, ldg, 1, b_adj, ldg);
                CORE(gemm)('N', 'T', size, size, rest, -1, c, ldl, c_adj, ldg, 0, product, size);
                CORE(gemm)('N', 'T', start, size, rest, -1, b, ldl, c_adj, ldg, 1, r_adj, ldg);
            } else {
                CORE(trsm)('R', 'L', 'N', 'N', rest, size, 1, d, ldl, c_adj, ldg);
                CORE(gemm)('N', 'N', rest, start, size, -1, c_adj, ldg, r, ldl, 1, b_adj, ldg);
                CORE(gemm)('T', 'N', size, size, rest, -1, c_adj, ldg, c, ldl, 0, product, size);
                CORE(gemm)('T', 'N', size, start, rest, -1, c_adj, ldg, b, ldl, 1, r_adj, ldg);
            }
            NAME(add_triangle)(uplo, 0, 1, size, product, d_adj, ldg, 0);
            free(product);
        }
        NAME(cholesky_block_reverse)(up, size, d, ldl, d_adj, ldg);
        if (start > 0) {
            REAL *s = NAME(doubled_diagonal)(uplo, size, d_adj, ldg);
            if (up)
                CORE(symm)('R', 'U', start, size, -1, s, size, r, ldl, 1, r_adj, ldg);
            else
                CORE(symm)('L', 'L', size, start, -1, s, size, r, ldl, 1, r_adj, ldg);
            free(s);
        }
    }
}

// A = L Lᵀ or Uᵀ U. Parameters: 2 A, 4 info. With the factor L: L' = L F(L⁻¹ A' L⁻ᵀ), where F takes the lower
// triangle with half the diagonal.
void TANGENT(potrf)(int uplo, int n, REAL *a, REAL *a_tan, int lda, int *info, int *info_shadow, int active)
{
    if (!a_tan || n <= 0)
        return;
    int state, up = is(uplo, 'U');
    REAL *factor = NAME(saved)(n, n, a, lda), *inner = NAME(block)(n, n);
    CORE(potrf)(uplo, n, factor, n, &state);
    if (state != 0) {
        for (int j = 0; j < n; j++)
            for (int i = START(uplo, j); i < END(uplo, j, n); i++)
                a_tan[at(i, j, lda)] = (REAL)__builtin_nan("");
    } else {
        for (int j = 0; j < n; j++)
            for (int i = START(uplo, j); i < END(uplo, j, n); i++) {
                inner[at(i, j, n)] = a_tan[at(i, j, lda)];
                inner[at(j, i, n)] = a_tan[at(i, j, lda)];
            }
        CORE(trsm)('L', uplo, up ? 'T' : 'N', 'N', n, n, 1, factor, n, inner, n);
        CORE(trsm)('R', uplo, up ? 'N' : 'T', 'N', n, n, 1, factor, n, inner, n);
        for (int j = 0; j < n; j++)
            for (int i = 0; i < n; i++)
                inner[at(i, j, n)] = i == j ? inner[at(i, j, n)] / 2 : IN_TRIANGLE(uplo, i, j) ? inner[at(i, j, n)] : 0;
        CORE(trmm)(up ? 'R' : 'L', uplo, 'N', 'N', n, n, 1, factor, n, inner, n);
        for (int j = 0; j < n; j++)
            for (int i = START(uplo, j); i < END(uplo, j, n); i++)
                a_tan[at(i, j, lda)] = inner[at(i, j, n)];
    }
    free(inner);
    free(factor);
}

REAL *AUGMENTED(potrf)(int uplo, int n, REAL *a, int lda, int *info, int active, int overwritten)
{
    CORE(potrf)(uplo, n, a, lda, info);
    if (n <= 0 || !ACTIVE(2))
        return 0;
    REAL *tape = malloc((1 + (OVERWRITTEN(2) ? (word)n * n : 0)) * sizeof *tape);
    tape[0] = *info;
    if (OVERWRITTEN(2))
        NAME(copy_matrix)(n, n, a, lda, tape + 1);
    return tape;
}

void REVERSE(potrf)(int uplo, int n, const REAL *a, REAL *a_adj, int lda, int *info, int *info_shadow, const REAL *tape, int active, int overwritten, int shared)
{
    if (!a_adj || n <= 0)
        return;
    if (tape[0] == 0)
        NAME(cholesky_reverse)(uplo, n, OVERWRITTEN(2) ? tape + 1 : a, OVERWRITTEN(2) ? n : lda, a_adj, lda);
    else
        for (int j = 0; j < n; j++)
            for (int i = START(uplo, j); i < END(uplo, j, n); i++)
                a_adj[at(i, j, lda)] = NAME(failed)(a_adj[at(i, j, lda)]);
}

// The parts of packed factors: the unit lower triangle without the diagonal, and the upper triangle.
INLINE REAL *NAME(part_of)(int lower, int n, const REAL *packed, int ld)
{
    REAL *part = NAME(block)(n, n);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            part[at(i, j, n)] = (i > j) == lower ? packed[at(i, j, ld)] : 0;
    return part;
}

// P A = L U. Parameters: 2 A, 4 pivots, 5 info. For a square matrix and M = L⁻¹ P A' U⁻¹: L' = L M below the
// diagonal, U' = M U with the rest. A tall matrix has more rows of L, a wide matrix more columns of U.
void TANGENT(getrf)(int m, int n, REAL *a, REAL *a_tan, int lda, int *pivots, int *pivots_shadow, int *info, int *info_shadow, int active)
{
    int count = m < n ? m : n, state;
    if (!a_tan || count <= 0)
        return;
    REAL *factors = NAME(saved)(m, n, a, lda);
    int *rows = malloc(count * sizeof *rows);
    CORE(getrf)(m, n, factors, m, rows, &state);
    if (state != 0) {
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                a_tan[at(i, j, lda)] = (REAL)__builtin_nan("");
    } else {
        for (int i = 0; i < count; i++)
            NAME(swap_rows)(i, rows[i] - 1, n, a_tan, lda);
        REAL *inner = NAME(saved)(count, count, a_tan, lda);
        CORE(trsm)('L', 'L', 'N', 'U', count, count, 1, factors, m, inner, count);
        CORE(trsm)('R', 'U', 'N', 'N', count, count, 1, factors, m, inner, count);
        REAL *lower = NAME(part_of)(1, count, inner, count), *upper = NAME(part_of)(0, count, inner, count);
        if (m > count) {
            // L₂' = (A₂' - L₂ U') U⁻¹ = A₂' U⁻¹ - L₂ M.
            CORE(trsm)('R', 'U', 'N', 'N', m - count, n, 1, factors, m, a_tan + count, lda);
            CORE(gemm)('N', 'N', m - count, n, n, -1, factors + count, m, upper, count, 1, a_tan + count, lda);
        }
        if (n > count) {
            // U₂' = L⁻¹ (A₂' - L' U₂) = L⁻¹ A₂' - M U₂.
            REAL *right = a_tan + at(0, count, lda);
            CORE(trsm)('L', 'L', 'N', 'U', m, n - count, 1, factors, m, right, lda);
            CORE(gemm)('N', 'N', m, n - count, m, -1, lower, count, factors + at(0, count, m), m, 1, right, lda);
        }
        CORE(trmm)('L', 'L', 'N', 'U', count, count, 1, factors, m, lower, count);
        CORE(trmm)('R', 'U', 'N', 'N', count, count, 1, factors, m, upper, count);
        for (int j = 0; j < count; j++)
            for (int i = 0; i < count; i++)
                a_tan[at(i, j, lda)] = i > j ? lower[at(i, j, count)] : upper[at(i, j, count)];
        free(upper);
        free(lower);
        free(inner);
    }
    free(rows);
    free(factors);
}

REAL *AUGMENTED(getrf)(int m, int n, REAL *a, int lda, int *pivots, int *info, int active, int overwritten)
{
    CORE(getrf)(m, n, a, lda, pivots, info);
    int count = m < n ? m : n;
    if (count <= 0 || !ACTIVE(2))
        return 0;
    REAL *tape = malloc((1 + (word)count + (OVERWRITTEN(2) ? (word)m * n : 0)) * sizeof *tape);
    tape[0] = *info;
    for (int i = 0; i < count; i++)
        tape[1 + i] = pivots[i];
    if (OVERWRITTEN(2))
        NAME(copy_matrix)(m, n, a, lda, tape + 1 + count);
    return tape;
}

void REVERSE(getrf)(int m, int n, const REAL *a, REAL *a_adj, int lda, const int *pivots, int *pivots_shadow, int *info, int *info_shadow, const REAL *tape, int active, int overwritten, int shared)
{
    int count = m < n ? m : n;
    if (!a_adj || count <= 0)
        return;
    if (tape[0] != 0) {
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++)
                a_adj[at(i, j, lda)] = NAME(failed)(a_adj[at(i, j, lda)]);
        return;
    }
    const REAL *factors = OVERWRITTEN(2) ? tape + 1 + count : a;
    int ld = OVERWRITTEN(2) ? m : lda;
    if (m > count) {
        CORE(trsm)('R', 'U', 'T', 'N', m - count, n, 1, factors, ld, a_adj + count, lda);
        REAL *product = NAME(block)(n, n);
        CORE(gemm)('T', 'N', n, n, m - count, -1, factors + count, ld, a_adj + count, lda, 0, product, n);
        NAME(add_triangle)('U', 0, 1, n, product, a_adj, lda, 0);
        free(product);
    }
    if (n > count) {
        REAL *right = a_adj + at(0, count, lda);
        CORE(trsm)('L', 'L', 'T', 'U', m, n - count, 1, factors, ld, right, lda);
        REAL *product = NAME(block)(m, m);
        CORE(gemm)('N', 'T', m, m, n - count, -1, right, lda, factors + at(0, count, ld), ld, 0, product, m);
        NAME(add_triangle)('L', 1, 1, m, product, a_adj, lda, 0);
        free(product);
    }
    REAL *lower = NAME(part_of)(1, count, a_adj, lda), *upper = NAME(part_of)(0, count, a_adj, lda);
    CORE(trmm)('L', 'L', 'T', 'U', count, count, 1, factors, ld, lower, count);
    CORE(trmm)('R', 'U', 'T', 'N', count, count, 1, factors, ld, upper, count);
    for (int j = 0; j < count; j++)
        for (int i = 0; i < count; i++)
            a_adj[at(i, j, lda)] = i > j ? lower[at(i, j, count)] : upper[at(i, j, count)];
    CORE(trsm)('L', 'L', 'T', 'U', count, count, 1, factors, ld, a_adj, lda);
    CORE(trsm)('R', 'U', 'T', 'N', count, count, 1, factors, ld, a_adj, lda);
    for (int i = count - 1; i >= 0; i--)
        NAME(swap_rows)(i, (int)tape[1 + i] - 1, n, a_adj, lda);
    free(upper);
    free(lower);
}

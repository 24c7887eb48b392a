// Derivatives of the core routines, as calls of core routines.
//
// Each routine has three rules. `tangent` runs before the primal and updates the tangents of the outputs.
// `augmented` runs the primal and returns a tape: copies of the operands that the reverse pass needs and the
// program may overwrite, or null. `reverse` adds to the adjoints of the inputs and replaces the adjoints of
// the outputs. Inactive pointers have a null shadow. `active` and `overwritten` are sets of parameters by
// index. `shared` tells that other runs may add to the same adjoints: such adds are atomic.
//
// The rules never test the value of an active number: derivatives of the rules remain right.
#define ACTIVE(index) (active >> (index) & 1)
#define OVERWRITTEN(index) (overwritten >> (index) & 1)
#define TANGENT(name) JOIN(CORE(name), _tangent)
#define AUGMENTED(name) JOIN(CORE(name), _augmented)
#define REVERSE(name) JOIN(CORE(name), _reverse)

INLINE REAL *NAME(block)(int m, int n) { return malloc((word)m * n * sizeof(REAL)); }

INLINE void NAME(copy_matrix)(int m, int n, const REAL *a, int lda, REAL *to)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            to[at(i, j, m)] = a[at(i, j, lda)];
}

INLINE REAL *NAME(saved)(int m, int n, const REAL *a, int lda)
{
    REAL *copy = NAME(block)(m, n);
    NAME(copy_matrix)(m, n, a, lda, copy);
    return copy;
}

// Copies two matrices to one block; a matrix without elements is absent.
INLINE REAL *NAME(saved_pair)(int m1, int n1, const REAL *a, int lda, int m2, int n2, const REAL *b, int ldb)
{
    word first_count = (word)m1 * n1, count = first_count + (word)m2 * n2;
    if (count == 0)
        return 0;
    REAL *copy = malloc(count * sizeof *copy);
    NAME(copy_matrix)(m1, n1, a, lda, copy);
    NAME(copy_matrix)(m2, n2, b, ldb, copy + first_count);
    return copy;
}

INLINE void NAME(add)(REAL *to, REAL value, int shared)
{
    if (shared) {
        __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
    } else {
        *to += value;
    }
}

// Adds a contiguous matrix to an adjoint.
INLINE void NAME(add_matrix)(int m, int n, const REAL *sum, REAL *to, int ld, int shared)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            NAME(add)(&to[at(i, j, ld)], sum[at(i, j, m)], shared);
}

// Adds a triangle of a contiguous matrix, with the diagonal times a factor, or without the diagonal.
INLINE void NAME(add_triangle)(int uplo, int skips_diagonal, REAL diagonal, int n, const REAL *sum, REAL *to, int ld, int shared)
{
    for (int j = 0; j < n; j++)
        for (int i = START(uplo, j); i < END(uplo, j, n); i++)
            if (i != j)
                NAME(add)(&to[at(i, j, ld)], sum[at(i, j, n)], shared);
            else if (!skips_diagonal)
                NAME(add)(&to[at(i, j, ld)], diagonal * sum[at(i, j, n)], shared);
}

// The product alpha op(A) op(B), added to an adjoint.
INLINE void NAME(add_product)(int ta, int tb, int m, int n, int k, REAL alpha, const REAL *a, int lda, const REAL *b, int ldb, REAL *to, int ld, int shared)
{
    if (shared) {
        REAL *sum = NAME(block)(m, n);
        CORE(gemm)(ta, tb, m, n, k, alpha, a, lda, b, ldb, 0, sum, m);
        NAME(add_matrix)(m, n, sum, to, ld, 1);
        free(sum);
    } else {
        CORE(gemm)(ta, tb, m, n, k, alpha, a, lda, b, ldb, 1, to, ld);
    }
}

INLINE REAL NAME(inner)(int m, int n, const REAL *a, int lda, const REAL *b, int ldb)
{
#pragma clang fp reassociate(on)
    REAL sum = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            sum += a[at(i, j, lda)] * b[at(i, j, ldb)];
    return sum;
}
INLINE REAL NAME(inner_triangle)(int uplo, int n, const REAL *a, int lda, const REAL *b, int ldb)
{
#pragma clang fp reassociate(on)
    REAL sum = 0;
    for (int j = 0; j < n; j++)
        for (int i = START(uplo, j); i < END(uplo, j, n); i++)
            sum += a[at(i, j, lda)] * b[at(i, j, ldb)];
    return sum;
}

// The derivative with respect to beta: the old output, without elements that BLAS does not read.
INLINE REAL NAME(read)(REAL beta, REAL c) { return beta == 0 && !NAME(is_finite)(c) ? 0 : c; }
INLINE REAL NAME(inner_read)(int m, int n, REAL beta, const REAL *c, int ldc, const REAL *adjoint, int ld)
{
    REAL sum = 0;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            sum += NAME(read)(beta, c[at(i, j, ldc)]) * adjoint[at(i, j, ld)];
    return sum;
}
INLINE REAL NAME(inner_read_triangle)(int uplo, int n, REAL beta, const REAL *c, int ldc, const REAL *adjoint, int ld)
{
    REAL sum = 0;
    for (int j = 0; j < n; j++)
        for (int i = START(uplo, j); i < END(uplo, j, n); i++)
            sum += NAME(read)(beta, c[at(i, j, ldc)]) * adjoint[at(i, j, ld)];
    return sum;
}

// C' := beta C' + beta' C.
INLINE void NAME(add_read)(int n, REAL beta, REAL beta_tan, const REAL *y, REAL *y_tan, int incy)
{
    y += first(n, incy);
    y_tan += first(n, incy);
    for (int i = 0; i < n; i++)
        y_tan[(long)i * incy] += beta_tan * NAME(read)(beta, y[(long)i * incy]);
}
INLINE void NAME(scale_tangent)(int m, int n, REAL beta, REAL beta_tan, int has_beta_tan, const REAL *c, REAL *c_tan, int ldc)
{
    for (int j = 0; j < n; j++) {
        CORE(scale)(m, beta, c_tan + at(0, j, ldc), 1);
        if (has_beta_tan)
            NAME(add_read)(m, beta, beta_tan, c + at(0, j, ldc), c_tan + at(0, j, ldc), 1);
    }
}
INLINE void NAME(scale_tangent_triangle)(int uplo, int n, REAL beta, REAL beta_tan, int has_beta_tan, const REAL *c, REAL *c_tan, int ldc)
{
    for (int j = 0; j < n; j++) {
        int start = START(uplo, j), count = END(uplo, j, n) - start;
        CORE(scale)(count, beta, c_tan + at(start, j, ldc), 1);
        if (has_beta_tan)
            NAME(add_read)(count, beta, beta_tan, c + at(start, j, ldc), c_tan + at(start, j, ldc), 1);
    }
}

// y := beta y. Parameters: 1 beta, 2 y.
void TANGENT(scale)(int n, REAL beta, REAL beta_tan, const REAL *y, REAL *y_tan, int incy, int active)
{
    if (!y_tan || n <= 0)
        return;
    CORE(scale)(n, beta, y_tan, incy);
    if (ACTIVE(1))
        NAME(add_read)(n, beta, beta_tan, y, y_tan, incy);
}
REAL *AUGMENTED(scale)(int n, REAL beta, REAL *y, int incy, int active, int overwritten)
{
    REAL *tape = 0;
    if (n > 0 && ACTIVE(1) && ACTIVE(2)) {
        const REAL *start = y + first(n, incy);
        tape = NAME(block)(n, 1);
        for (int i = 0; i < n; i++)
            tape[i] = start[(long)i * incy];
    }
    CORE(scale)(n, beta, y, incy);
    return tape;
}
void REVERSE(scale)(int n, REAL beta, REAL *beta_adj, const REAL *y, REAL *y_adj, int incy, const REAL *tape, int active, int overwritten, int shared)
{
    if (!y_adj || n <= 0)
        return;
    if (beta_adj) {
        REAL sum = 0;
        const REAL *start = y_adj + first(n, incy);
        for (int i = 0; i < n; i++)
            sum += NAME(read)(beta, tape[i]) * start[(long)i * incy];
        *beta_adj += sum;
    }
    CORE(scale)(n, beta, y_adj, incy);
}

#include "rules_vectors.h"
#include "rules_products.h"
#include "rules_triangular.h"

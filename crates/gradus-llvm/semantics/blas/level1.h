// Vector operations.

INLINE REAL NAME(dot_of)(int n, const REAL *x, int incx, const REAL *y, int incy)
{
#pragma clang fp reassociate(on)
    REAL sum = 0;
    x += first(n, incx);
    y += first(n, incy);
    for (int i = 0; i < n; i++)
        sum += x[(long)i * incx] * y[(long)i * incy];
    return sum;
}
REAL FORTRAN(dot)(const int *n, const REAL *x, const int *incx, const REAL *y, const int *incy)
{
    return NAME(dot_of)(*n, x, *incx, y, *incy);
}
REAL CBLAS(dot)(int n, const REAL *x, int incx, const REAL *y, int incy)
{
    return NAME(dot_of)(n, x, incx, y, incy);
}

INLINE int NAME(is_finite)(REAL x) { return x - x == 0; }

INLINE int NAME(are_finite)(int n, const REAL *x, int incx)
{
    int finite = 1;
    x += first(n, incx);
    for (int i = 0; i < n; i++)
        finite &= NAME(is_finite)(x[(long)i * incx]);
    return finite;
}

INLINE void NAME(axpy_of)(int n, REAL alpha, const REAL *x, int incx, REAL *y, int incy)
{
    if (alpha == 0 && !NAME(are_finite)(n, x, incx))
        return;
    x += first(n, incx);
    y += first(n, incy);
    for (int i = 0; i < n; i++)
        y[(long)i * incy] += alpha * x[(long)i * incx];
}
void FORTRAN(axpy)(const int *n, const REAL *alpha, const REAL *x, const int *incx, REAL *y, const int *incy)
{
    NAME(axpy_of)(*n, *alpha, x, *incx, y, *incy);
}
void CBLAS(axpy)(int n, REAL alpha, const REAL *x, int incx, REAL *y, int incy)
{
    NAME(axpy_of)(n, alpha, x, incx, y, incy);
}

// A stride that is not positive leaves the vector unchanged.
INLINE void NAME(scal_of)(int n, REAL alpha, REAL *x, int incx)
{
    if (incx > 0)
        for (int i = 0; i < n; i++)
            x[(long)i * incx] = alpha * x[(long)i * incx];
}
void FORTRAN(scal)(const int *n, const REAL *alpha, REAL *x, const int *incx)
{
    NAME(scal_of)(*n, *alpha, x, *incx);
}
void CBLAS(scal)(int n, REAL alpha, REAL *x, int incx) { NAME(scal_of)(n, alpha, x, incx); }

INLINE void NAME(copy_of)(int n, const REAL *x, int incx, REAL *y, int incy)
{
    x += first(n, incx);
    y += first(n, incy);
    for (int i = 0; i < n; i++)
        y[(long)i * incy] = x[(long)i * incx];
}
void FORTRAN(copy)(const int *n, const REAL *x, const int *incx, REAL *y, const int *incy)
{
    NAME(copy_of)(*n, x, *incx, y, *incy);
}
void CBLAS(copy)(int n, const REAL *x, int incx, REAL *y, int incy) { NAME(copy_of)(n, x, incx, y, incy); }

INLINE void NAME(swap_of)(int n, REAL *x, int incx, REAL *y, int incy)
{
    x += first(n, incx);
    y += first(n, incy);
    for (int i = 0; i < n; i++) {
        REAL old = x[(long)i * incx];
        x[(long)i * incx] = y[(long)i * incy];
        y[(long)i * incy] = old;
    }
}
void FORTRAN(swap)(const int *n, REAL *x, const int *incx, REAL *y, const int *incy)
{
    NAME(swap_of)(*n, x, *incx, y, *incy);
}
void CBLAS(swap)(int n, REAL *x, int incx, REAL *y, int incy) { NAME(swap_of)(n, x, incx, y, incy); }

INLINE REAL NAME(asum_of)(int n, const REAL *x, int incx)
{
#pragma clang fp reassociate(on)
    REAL sum = 0;
    if (incx > 0)
        for (int i = 0; i < n; i++)
            sum += ABS(x[(long)i * incx]);
    return sum;
}
REAL FORTRAN(asum)(const int *n, const REAL *x, const int *incx) { return NAME(asum_of)(*n, x, *incx); }
REAL CBLAS(asum)(int n, const REAL *x, int incx) { return NAME(asum_of)(n, x, incx); }

INLINE REAL NAME(norm_scaled)(int n, const REAL *x, int incx, REAL scale)
{
#pragma clang fp reassociate(on)
    REAL sum = 0;
    for (int i = 0; i < n; i++) {
        REAL part = x[(long)i * incx] * scale;
        sum += part * part;
    }
    return sum == 0 ? 0 : SQRT(sum) / scale;
}
// The Euclidean norm, with a power of two as scale if the squares overflow or underflow. The derivative of
// the norm at zero is zero. Libraries differ for strides that are not positive: the result is NaN.
INLINE REAL NAME(nrm2_of)(int n, const REAL *x, int incx)
{
    REAL largest = 0;
    x += first(n, incx);
    for (int i = 0; i < n; i++) {
        REAL size = ABS(x[(long)i * incx]);
        largest = size > largest ? size : largest;
    }
    REAL scale = largest > LARGE ? SHRINK : largest < SMALL ? GROW : 1;
    REAL norm = NAME(norm_scaled)(n, x, incx, scale);
    return incx > 0 ? norm : norm * (REAL)__builtin_nan("");
}
REAL FORTRAN(nrm2)(const int *n, const REAL *x, const int *incx) { return NAME(nrm2_of)(*n, x, *incx); }
REAL CBLAS(nrm2)(int n, const REAL *x, int incx) { return NAME(nrm2_of)(n, x, incx); }

INLINE void NAME(rot_of)(int n, REAL *x, int incx, REAL *y, int incy, REAL c, REAL s)
{
    x += first(n, incx);
    y += first(n, incy);
    for (int i = 0; i < n; i++) {
        REAL a = x[(long)i * incx], b = y[(long)i * incy];
        x[(long)i * incx] = c * a + s * b;
        y[(long)i * incy] = c * b - s * a;
    }
}
void FORTRAN(rot)(const int *n, REAL *x, const int *incx, REAL *y, const int *incy, const REAL *c, const REAL *s)
{
    NAME(rot_of)(*n, x, *incx, y, *incy, *c, *s);
}
void CBLAS(rot)(int n, REAL *x, int incx, REAL *y, int incy, REAL c, REAL s)
{
    NAME(rot_of)(n, x, incx, y, incy, c, s);
}

// The position of the first element of largest absolute value, counted from 1.
INLINE int NAME(iamax_of)(int n, const REAL *x, int incx)
{
    if (n < 1 || incx <= 0)
        return 0;
    int best = 0;
    for (int i = 1; i < n; i++)
        if (ABS(x[(long)i * incx]) > ABS(x[(long)best * incx]))
            best = i;
    return best + 1;
}
int BODY(JOIN(JOIN(i, NAME(amax)), _))(const int *n, const REAL *x, const int *incx)
{
    return NAME(iamax_of)(*n, x, *incx);
}
word BODY(JOIN(cblas_i, NAME(amax)))(int n, const REAL *x, int incx)
{
    int position = NAME(iamax_of)(n, x, incx);
    return position > 0 ? position - 1 : 0;
}

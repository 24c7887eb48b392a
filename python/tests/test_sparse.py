"""Sparse Jacobians and Hessians: equal to dense derivatives on many programs; patterns, colourings and refusals."""

import sys
from dataclasses import dataclass, field

import numpy as np
import pytest

import gradus
from gradus._native import color_columns, color_star

RNG = np.random.default_rng(7)


def dense(matrix):
    return np.asarray(matrix.todense())


@dataclass
class Case:
    """A program with a Jacobian or Hessian: the function, its signature, and the arguments at `n` unknowns."""

    text: str
    signature: str | None = None
    lang: str = "c"
    of: str = "jac"
    x: np.ndarray = field(default_factory=lambda: RNG.uniform(0.5, 2, 12))
    more: tuple = ()
    wrt: str | None = "x"
    # The most colours that the case may take.
    colours: int | None = None
    # The number of entries, where known by hand.
    entries: int | None = None
    flags: tuple = ()
    tolerance: float = 1e-12


INDICES = np.array([3, 0, 7, 7, 1, 11, 2, 5, 9, 4, 10, 0], "i4")
CASES = {
    # Jacobians: residuals with stencils.
    "diffusion": Case("""
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) {
        double left = i ? x[i - 1] : 0, right = i + 1 < n ? x[i + 1] : 0;
        y[i] = left - 2 * x[i] + right + x[i] * x[i] * x[i];
    }
}""", "y: out[n]", colours=3, entries=34),
    "periodic": Case("""
#include <math.h>
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) y[i] = sin(x[(i + 1) % n]) * x[i] - x[(i + n - 1) % n];
}""", "y: out[n]", colours=4, entries=36),
    "diagonal": Case("""
#include <math.h>
void f(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = exp(-x[i]) / (1 + x[i]); }
""", "y: out[n]", colours=1, entries=12),
    "arrow": Case("""
void f(const double *x, double *y, int n) {
    y[0] = 0;
    for (int i = 0; i < n; i++) y[0] += x[i] * x[i];
    for (int i = 1; i < n; i++) y[i] = x[i] * x[i] * x[i];
}""", "y: out[n]", colours=2, entries=23),
    "table": Case("""
void f(const double *x, const int *p, double *y, int n) {
    for (int i = 0; i < n; i++) y[i] = x[p[i]] * x[i];
}""", "p: [n], y: out[n]", more=(INDICES,), entries=23),
    "scatter": Case("""
void f(const double *x, const int *p, double *y, int n) {
    for (int i = 0; i < n; i++) y[i] = 0;
    for (int i = 0; i < n; i++) y[p[i]] += x[i] * x[i];
}""", "p: [n], y: out[n]", more=(INDICES,), entries=12, colours=2),
    "maximum": Case("""
#include <math.h>
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) y[i] = fmax(x[i], x[(i + 1) % n]) + fmin(x[i], x[(i + 2) % n]);
}""", "y: out[n]", entries=36),
    "in place": Case("""
void f(double *x, int n, double h) {
    double old[64];
    for (int i = 0; i < n; i++) old[i] = x[i];
    for (int i = 1; i + 1 < n; i++) x[i] += h * (old[i - 1] - 2 * old[i] + old[i + 1]);
}""", more=(0.1,), colours=3, entries=32),
    "sweep in place": Case("""
void f(double *x, int n) { for (int i = 1; i < n; i++) x[i] = 0.5 * x[i] * x[i - 1]; }
""", entries=78),
    "heap and copies": Case("""
#include <stdlib.h>
#include <string.h>
void f(const double *x, double *y, int n) {
    double *t = malloc(n * sizeof *t);
    memcpy(t, x, n * sizeof *t);
    for (int i = 0; i < n; i++) t[i] *= t[n - 1 - i];
    memmove(y, t, n * sizeof *t);
    free(t);
}""", "y: out[n]"),
    "several arrays": Case("""
void f(const double *x, const double *z, double *y, int n) {
    for (int i = 0; i < n; i++) y[i] = x[i] * z[n - 1 - i] + (i ? x[i - 1] * z[i] : 0);
}""", "z: [n], y: out[n]", more=(RNG.uniform(1, 2, 12),), colours=2),
    "fewer outputs": Case("""
void f(const double *x, double *y, int n) {
    for (int k = 0; k < 3; k++) {
        y[k] = 0;
        for (int i = 0; i < n; i++) y[k] += x[i] * x[(i + k) % n];
    }
}""", "y: out[3]", colours=3, entries=36),
    "matrix": Case("""
void f(const double *x, double *y, int rows, int cols) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j + 1 < cols; j++) y[i * cols + j] = x[i * cols + j + 1] * x[i * cols + j];
    for (int i = 0; i < rows; i++) y[i * cols + cols - 1] = x[i * cols];
}""", "x: [rows, cols], y: out[rows, cols]", x=RNG.uniform(1, 2, (3, 4)), colours=2),
    "single precision": Case("""
#include <math.h>
void f(const float *x, float *y, int n) { for (int i = 0; i + 1 < n; i++) y[i] = sqrtf(x[i] * x[i + 1]); y[n - 1] = x[0]; }
""", "y: out[n]", x=RNG.uniform(1, 2, 50).astype("f4"), colours=2, tolerance=1e-6),
    "mixed precision": Case("""
void f(const double *x, double *y, int n) { for (int i = 0; i < n; i++) { float t = x[i]; y[i] = t * x[(i + 1) % n]; } }
""", "y: out[n]", x=RNG.uniform(1, 2, 50), tolerance=1e-6, entries=100, colours=2),
    "long double": Case("""
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) { long double t = x[i]; y[i] = t * t + x[(i + 1) % n]; }
}""", "y: out[n]", colours=2, entries=24),
    "many inputs": Case("""
void f(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = x[i] * x[(i * 7 + 1) % n]; }
""", "y: out[n]", x=RNG.uniform(1, 2, 300), entries=600),
    "a C++ class": Case("""
#include <cmath>
#include <vector>
struct Cell { double u, v; double rate() const { return std::exp(u) * v; } };
extern "C" void f(const double *x, double *y, int n) {
    std::vector<Cell> cells(n / 2);
    for (int i = 0; i < n / 2; i++) cells[i] = {x[2 * i], x[2 * i + 1]};
    for (int i = 0; i < n / 2; i++) { y[2 * i] = cells[i].rate(); y[2 * i + 1] = cells[(i + 1) % (n / 2)].u; }
}""", "y: out[n]", "c++", colours=2, entries=18),
    "virtual calls": Case("""
struct Law { virtual double of(double a, double b) const = 0; virtual ~Law() {} };
struct Product : Law { double of(double a, double b) const override { return a * b; } };
struct Square : Law { double of(double a, double) const override { return a * a; } };
extern "C" void f(const double *x, double *y, int n) {
    Product p; Square s; const Law *laws[2] = {&p, &s};
    for (int i = 0; i < n; i++) y[i] = laws[i % 2]->of(x[i], x[(i + 3) % n]);
}""", "y: out[n]", "c++", entries=18),
    "a Fortran stencil": Case("""
subroutine f(x, y, n)
  integer, value :: n
  real(8), intent(in) :: x(n)
  real(8), intent(out) :: y(n)
  integer :: i
  y(1) = x(1); y(n) = x(n)
  do i = 2, n - 1
    y(i) = x(i-1) - 2 * x(i) + x(i+1) - exp(x(i))
  end do
end subroutine""", "y: out[n]", lang="fortran", colours=3, entries=32),
    "a Fortran array": Case("""
subroutine f(x)
  real(8), intent(inout) :: x(:, :)
  x(:, 2:) = x(:, 2:) * x(:, :size(x, 2) - 1)
end subroutine""", lang="fortran", x=np.asfortranarray(RNG.uniform(1, 2, (3, 5))), colours=2, entries=27),
    "BLAS": Case("""
void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *, const double *,
            const int *, const double *, double *, const int *);
void f(const double *x, const double *a, double *y, int n) {
    double one = 1, zero = 0; int step = 1, half = n / 2;
    for (int k = 0; k < 2; k++)
        dgemv_("N", &half, &half, &one, a, &half, x + k * half, &step, &zero, y + k * half, &step);
}""", "a: [36], y: out[n]", x=RNG.uniform(1, 2, 12), more=(RNG.uniform(1, 2, 36),), entries=72, colours=6, flags=("-lblas",)),
    "threads": Case("""
void f(const double *x, double *y, int n) {
#pragma omp parallel for
    for (int i = 0; i < n; i++) y[i] = x[i] * x[(i + 1) % n];
}""", "y: out[n]", entries=24, colours=2, flags=("-fopenmp",)),
    "a sum of vectors": Case("""
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n / 4; i++) { double s = 0; for (int k = 0; k < 4; k++) s += x[4 * i + k] * x[4 * i + k]; y[i] = s; }
}""", "y: out[3]", entries=12, colours=4, flags=("-O3", "-ffast-math", "-march=native")),
    "atomic updates": Case("""
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) y[i] = 0;
#pragma omp parallel for
    for (int i = 0; i < n; i++) {
#pragma omp atomic
        y[i / 3] += x[i] * x[i];
    }
}""", "y: out[n]", flags=("-fopenmp",), entries=12),
    "vector intrinsics": Case("""
#include <immintrin.h>
void f(const double *x, double *y, int n) {
    for (int i = 0; i + 4 <= n; i += 4) {
        __m256d a = _mm256_loadu_pd(x + i), b = _mm256_permute_pd(a, 5), z = _mm256_setzero_pd();
        __m256d c = _mm256_blendv_pd(a, b, _mm256_cmp_pd(a, b, _CMP_GT_OQ));
        __m256d d = _mm256_and_pd(_mm256_cmp_pd(a, z, _CMP_GT_OQ), a);
        _mm256_storeu_pd(y + i, _mm256_add_pd(_mm256_mul_pd(c, d), _mm256_hadd_pd(a, b)));
    }
}""", "y: out[n]", flags=("-O2", "-mavx2"), entries=24, colours=2),
    "masks": Case("""
#include <stdint.h>
#include <string.h>
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) {
        uint64_t bits; double kept;
        memcpy(&bits, &x[i], 8); bits &= -(uint64_t)(x[i] > 0); memcpy(&kept, &bits, 8);
        y[i] = kept * x[(i + 1) % n];
    }
}""", "y: out[n]", entries=24),
    "complex numbers": Case("""
#include <complex.h>
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i += 2) {
        double complex z = x[i] + I * x[i + 1];
        z = csqrt(z * z / (1 + z)); y[i] = creal(z); y[i + 1] = cabs(z);
    }
}""", "y: out[n]", entries=24, colours=2),
    "globals, and a select by an index": Case("""
static double g[64]; static double *p = g + 3; static struct { double a, b; int c; } q;
static void set(const double *x, int n) { for (int i = 0; i < n; i++) p[i] = x[i] * x[i]; q.a = x[0]; q.b = x[1]; q.c = 3; }
void f(const double *x, double *y, int n) {
    set(x, n);
    double a = q.a, b = q.b;
    for (int i = 0; i < n; i++) y[i] = g[i + 3] + (i == 2 ? a * b : 0);
}""", "y: out[n]", entries=14, colours=3),
    "unions": Case("""
union word { double d; long i; };
struct tagged { int kind; union word v; };
void f(const double *x, double *y, int n) {
    struct tagged a[64], b[64];
    for (int i = 0; i < n; i++) { a[i].kind = i % 2; if (i % 2) a[i].v.d = x[i]; else a[i].v.i = i; }
    for (int i = 0; i < n; i++) b[i] = a[n - 1 - i];
    for (int i = 0; i < n; i++) y[i] = b[i].kind ? b[i].v.d * x[0] : b[i].v.i * x[1];
}""", "y: out[n]", entries=18),
    "recursion": Case("""
__attribute__((noinline)) static double product(const double *x, int n) {
    return n == 1 ? x[0] * x[0] : product(x, n / 2) * product(x + n / 2, n - n / 2);
}
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) y[i] = i < n / 4 ? product(x + 4 * i, 4) : x[0];
}""", "y: out[n]", entries=21),
    "a CUDA kernel": Case("""
__global__ void pairs(const double *x, double *y, int n) {
    __shared__ double s[64];
    int i = threadIdx.x;
    s[i] = i < n ? x[i] * x[i] : 0;
    __syncthreads();
    if (i < n) y[i] = s[i] + (i + 1 < n ? s[i + 1] : 0);
}
extern "C" void f(const double *x, double *y, int n) {
    double *dx, *dy;
    cudaMalloc(&dx, n * 8); cudaMalloc(&dy, n * 8);
    cudaMemcpy(dx, x, n * 8, cudaMemcpyHostToDevice);
    pairs<<<1, 64>>>(dx, dy, n);
    cudaMemcpy(y, dy, n * 8, cudaMemcpyDeviceToHost);
    cudaFree(dx); cudaFree(dy);
}""", "y: out[n]", "cuda", entries=23, colours=2),
    "a LAPACK call": Case("""
void dpotrf_(const char *, const int *, double *, const int *, int *);
void f(const double *x, double *y, int n) {
    int m = 2, info;
    for (int k = 0; k < n / 4; k++) {
        for (int i = 0; i < 4; i++) y[4 * k + i] = x[4 * k + i] + (i % 3 == 0 ? 5 : 0);
        dpotrf_("L", &m, y + 4 * k, &m, &info);
    }
}""", "y: out[n]", flags=("-llapack", "-lblas"), entries=21, colours=3),
    # Hessians.
    "a Hessian of Newton's iterations": Case("""
#include <math.h>
double f(const double *x, int n) {
    double s = 0;
    for (int i = 0; i + 1 < n; i++) {
        double a = x[i], b = 2;
        for (int k = 0; fabs(b * b - a) > 1e-9 && k < 50; k++) b = 0.5 * (b + a / b);
        s += b * x[i + 1];
    }
    return s;
}""", of="hess", colours=3, entries=33, tolerance=1e-9),
    "a Hessian with branches": Case("""
double f(const double *x, int n) {
    double s = 0;
    for (int i = 0; i + 1 < n; i++) { double d = x[i + 1] - x[i]; s += d > 0 ? d * d : d * d * d * d; }
    return s;
}""", of="hess", colours=3, entries=34),
    "a Hessian on a grid": Case("""
double f(const double *x, int rows, int cols) {
    double s = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            double v = x[i * cols + j];
            s += v * v * v + (i ? v * x[(i - 1) * cols + j] : 0) + (j ? v * v * x[i * cols + j - 1] : 0);
        }
    return s;
}""", "x: [rows, cols]", of="hess", x=RNG.uniform(1, 2, (4, 5)), colours=6, entries=82),
    "a Hessian with BLAS": Case("""
double ddot_(const int *, const double *, const int *, const double *, const int *);
double f(const double *x, int n) {
    int one = 1, half = n / 2;
    double a = ddot_(&half, x, &one, x + half, &one);
    return a * a;
}""", of="hess", flags=("-lblas",), entries=144),
    "Rosenbrock's chain": Case("""
double f(const double *x, int n) {
    double s = 0;
    for (int i = 0; i + 1 < n; i++)
        s += 100 * (x[i + 1] - x[i] * x[i]) * (x[i + 1] - x[i] * x[i]) + (1 - x[i]) * (1 - x[i]);
    return s;
}""", of="hess", colours=3, entries=34),
    "clnlbeam": Case("""
#include <math.h>
double f(const double *x, int n) {
    int m = n / 2; const double *t = x, *u = x + m; double s = 0, h = 1.0 / m;
    for (int i = 0; i + 1 < m; i++)
        s += 0.5 * h * (u[i] * u[i] + u[i + 1] * u[i + 1]) + 175 * h * (cos(t[i]) + cos(t[i + 1]));
    return s;
}""", of="hess", colours=1, entries=12),
    "separable": Case("""
#include <math.h>
double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += exp(x[i]) * x[i]; return s; }
""", of="hess", colours=1, entries=12),
    "arrowhead": Case("""
double f(const double *x, int n) { double s = 0; for (int i = 1; i < n; i++) s += x[0] * x[i] * x[i]; return s; }
""", of="hess", colours=2, entries=33),
    "dense": Case("""
double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i]; return s * s * s; }
""", of="hess", colours=12, entries=144),
    "linear": Case("""
double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += i * x[i]; return s; }
""", of="hess", entries=0, colours=1),
    "a Hessian in single precision": Case("""
float f(const float *x, int n) { float s = 0; for (int i = 0; i + 1 < n; i++) s += x[i] * x[i] * x[i + 1]; return s; }
""", of="hess", x=RNG.uniform(1, 2, 30).astype("f4"), colours=3, tolerance=1e-5),
    "a Hessian of a Fortran function": Case("""
function f(x, n) result(s)
  integer, value :: n
  real(8), intent(in) :: x(n)
  real(8) :: s
  integer :: i
  s = 0
  do i = 2, n
    s = s + sqrt(1 + (x(i) - x(i-1))**2)
  end do
end function""", lang="fortran", of="hess", colours=3, entries=34),
    "a Hessian with a table": Case("""
#include <math.h>
double f(const double *x, const int *p, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) { double d = x[i] - x[p[i]]; s += log(1 + d * d); }
    return s;
}""", "p: [n]", of="hess", more=(INDICES,)),
    "a Hessian of a loop with scratch": Case("""
#include <stdlib.h>
double f(const double *x, int n) {
    double *t = calloc(n, sizeof *t), s = 0;
    for (int i = 0; i < n; i++) t[i / 2] += x[i] * x[i];
    for (int i = 0; i < n / 2; i++) s += t[i] * t[i];
    free(t);
    return s;
}""", of="hess", entries=24, colours=2),
}


def function(case):
    signatures = {"f": case.signature} if case.signature else None
    f = gradus.from_source(case.text, case.lang, flags=case.flags, signatures=signatures).f
    return f.wrt(case.wrt) if case.wrt else f


def matrix_of(f, case, x, *more):
    found = f.jac(x, *more) if case.of == "jac" else f.hess(x, *more)
    return np.reshape(found, (-1, x.size))


@pytest.mark.parametrize("name", CASES)
def test_equal_to_dense(name):
    case = CASES[name]
    f, arguments = function(case), (case.x, *case.more)
    found = (f.jac if case.of == "jac" else f.hess)(*arguments, sparse=True)
    wanted = matrix_of(f, case, *arguments)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(dense(found), wanted, rtol=case.tolerance, atol=case.tolerance * abs(wanted).max(initial=1))
    pattern = f.sparsity(*arguments, of=case.of)
    shown = np.zeros(wanted.shape, bool)
    shown[pattern.rows, pattern.indices] = True
    assert not (wanted[~shown] != 0).any(), "entries outside of the pattern"
    assert case.entries is None or pattern.nnz == case.entries, pattern
    assert case.colours is None or pattern.colours <= case.colours, pattern


BRUSSELATOR = """
void f(const double *x, double *y, int n, double alpha) {
    /* cells (i, j) with two species, periodic */
    double h = alpha * (n - 1) * (n - 1);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int up = (i + 1) % n, down = (i + n - 1) % n, left = (j + n - 1) % n, right = (j + 1) % n;
#define U(i, j) x[2 * ((i) * n + (j))]
#define V(i, j) x[2 * ((i) * n + (j)) + 1]
            double u = U(i, j), v = V(i, j);
            y[2 * (i * n + j)] = 1 + u * u * v - 4.4 * u + h * (U(up, j) + U(down, j) + U(i, left) + U(i, right) - 4 * u);
            y[2 * (i * n + j) + 1] = 3.4 * u - u * u * v + h * (V(up, j) + V(down, j) + V(i, left) + V(i, right) - 4 * v);
        }
}"""


def test_brusselator():
    n = 32
    f = gradus.from_source(BRUSSELATOR, signatures={"f": "x: [2*n*n], y: out[2*n*n]"}).f.wrt("x")
    x = RNG.uniform(0.5, 3, 2 * n * n)
    pattern = f.sparsity(x, n, 0.02)
    assert pattern.nnz == 6 * 2 * n * n and pattern.shape == (2048, 2048)
    assert pattern.colours <= 10, pattern
    found, v = f.jac(x, n, 0.02, sparse=pattern), RNG.normal(size=x.size)
    np.testing.assert_allclose(found @ v, f.jvp(x, n, 0.02, v), rtol=1e-10, atol=1e-8)
    small, x = 5, RNG.uniform(0.5, 3, 50)
    np.testing.assert_allclose(dense(f.jac(x, small, 0.02, sparse=True)), f.jac(x, small, 0.02), rtol=1e-13)


BRANCH = """
void f(const double *x, double *y, int n) {
    for (int i = 0; i < n; i++) {
        if (x[0] > 0) { for (int k = 0; k < i; k++) y[i] += x[k] * x[k]; }
        else { y[i] += 3 * x[n - 1 - i]; }
    }
}"""


def test_a_branch_changes_the_pattern():
    f = gradus.from_source(BRANCH, signatures={"f": "y: out[n]"}).f.wrt("x")
    x = RNG.uniform(1, 2, 6)
    assert f.pattern is None and f.colours is None
    pattern = f.sparsity(x)
    for point in (x, x * 2, -x):
        np.testing.assert_allclose(dense(f.jac(point, sparse=True)), f.jac(point), rtol=1e-13)
    np.testing.assert_allclose(dense(f.jac(x, sparse=pattern)), f.jac(x), rtol=1e-13)
    assert f.pattern is pattern and f.colours == pattern.colours
    with pytest.raises(gradus.PatternChanged, match=r"f\.jac: the sparsity pattern does not fit.*f\.sparsity"):
        f.jac(-x, sparse=pattern)


def test_an_index_array_changes_the_pattern():
    f = function(CASES["table"])
    x = CASES["table"].x
    for shift in range(3):
        p = ((np.arange(12) + shift) % 12).astype("i4")
        np.testing.assert_allclose(dense(f.jac(x, p, sparse=True)), f.jac(x, p), rtol=1e-13)


def test_a_matrix_shares_nothing_with_the_pattern():
    f = function(CASES["linear"])
    x = CASES["diffusion"].x
    g = function(CASES["diffusion"])
    pattern = g.sparsity(x)
    found = g.jac(x, sparse=pattern)
    found.data[::2] = 0
    found.eliminate_zeros()
    np.testing.assert_allclose(dense(g.jac(x, sparse=pattern)), g.jac(x), rtol=1e-13)
    assert f.hess(x, sparse=True).nnz == 0


def test_infinite_and_undefined_rows():
    f = gradus.from_source("#include <math.h>\nvoid f(const double *x, double *y, int n) "
                           "{ for (int i = 0; i < n; i++) y[i] = sqrt(x[i]) + (i ? x[i - 1] : 0); }",
                           signatures={"f": "y: out[n]"}).f
    x = np.array([1.0, 0.0, 2.0, -1.0])
    found = dense(f.jac(x, sparse=True))
    np.testing.assert_allclose(found[[0, 2]], f.jac(x)[[0, 2]], rtol=1e-13)
    assert np.isinf(found[1, 1]) and np.isnan(found[3, 3])


def test_a_hessian_changes_its_pattern():
    f = gradus.from_source("""
    double f(const double *x, int n) {
        double s = 0;
        for (int i = 0; i + 1 < n; i++) s += x[0] > 0 ? x[i] * x[i + 1] : x[i] * x[i];
        return s * s * 0.5 + (x[0] > 0 ? 0 : x[0] * x[n - 1]);
    }""").f
    x = RNG.uniform(1, 2, 5)
    pattern = f.sparsity(x, of="hess")
    np.testing.assert_allclose(dense(f.hess(x, sparse=pattern)), f.hess(x), atol=1e-12)
    np.testing.assert_allclose(dense(f.hess(-x, sparse=True)), f.hess(-x), atol=1e-12)
    diagonal = gradus.from_source("double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]"
                                  " * x[i]; return s; }").f.sparsity(x, of="hess")
    with pytest.raises(gradus.PatternChanged, match=r"f\.hess"):
        f.hess(x, sparse=diagonal)


def test_few_and_no_elements():
    f = function(CASES["diagonal"])
    for n in (0, 1, 2):
        x = np.linspace(1, 2, n)
        found = f.jac(x, sparse=True)
        assert found.shape == (n, n) and found.nnz == n
        assert f.sparsity(x).colours == min(n, 1)
        np.testing.assert_allclose(dense(found).diagonal(), [f.jvp(x, np.ones(n))[i] for i in range(n)])
    h = function(CASES["separable"])
    assert h.hess(np.zeros(0), sparse=True).shape == (0, 0)
    assert h.hess(np.ones(1), sparse=True).nnz == 1
    number = gradus.from_source("double f(double a) { return a * a * a; }").f
    assert dense(number.jac(2.0, sparse=True)) == [[12]] and dense(number.hess(2.0, sparse=True)) == [[12]]
    energy = function(CASES["Rosenbrock's chain"])
    x = CASES["Rosenbrock's chain"].x
    gradient = energy.jac(x, sparse=True)
    assert gradient.shape == (1, 12) and energy.sparsity(x).colours == 1
    np.testing.assert_allclose(dense(gradient)[0], energy.grad(x))


def test_refusals():
    both = gradus.from_source("double f(const double *x, double *y, int n) { double s = 0; for (int i = 0; i < n; i++) "
                              "{ y[i] = x[i]; s += x[i]; } return s; }", signatures={"f": "y: out[n]"}).f.wrt("x")
    with pytest.raises(gradus.SignatureError, match="several outputs"):
        both.jac(np.ones(3), sparse=True)
    f = function(CASES["diagonal"])
    pattern = f.sparsity(np.ones(3))
    with pytest.raises(ValueError, match=r"shape \(3, 3\), but the derivative has shape \(4, 4\)"):
        f.jac(np.ones(4), sparse=pattern)
    with pytest.raises(ValueError, match="of is"):
        f.sparsity(np.ones(3), of="grad")
    registered = gradus.from_source("""
    double g(double a) { return a * a; }
    double g_jvp(double a, double da) { return 2 * a * da; }
    void *__enzyme_register_derivative_g[2] = {(void *)g, (void *)g_jvp};
    void f(const double *x, double *y, int n) { for (int i = 0; i < n; i++) y[i] = g(x[i]); }
    """, signatures={"f": "y: out[n]"}).f.wrt("x")
    with pytest.raises(gradus.Refused, match="the dependencies of `g` are unknown"):
        registered.jac(np.ones(3), sparse=True)
    np.testing.assert_array_equal(registered.jac(np.ones(3)), 2 * np.eye(3))


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    f = function(CASES["diffusion"])
    x = CASES["diffusion"].x
    indptr, indices, data, shape = f.jac(x, sparse=True)
    found = np.zeros(shape)
    for row in range(shape[0]):
        found[row, indices[indptr[row] : indptr[row + 1]]] = data[indptr[row] : indptr[row + 1]]
    np.testing.assert_allclose(found, f.jac(x), rtol=1e-13)


def random_pattern(rows, columns, share):
    return RNG.random((rows, columns)) < share


def csr(pattern):
    counts = pattern.sum(axis=1)
    return np.concatenate([[0], np.cumsum(counts)]).astype("i8"), np.nonzero(pattern)[1].astype("i8")


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.3, 1.0])
def test_colourings_of_columns(share):
    for rows, columns in [(1, 1), (5, 9), (40, 30), (30, 40)]:
        pattern = random_pattern(rows, columns, share)
        colors = color_columns(*csr(pattern), columns)
        assert colors.min() == 0
        for color in range(colors.max() + 1):
            assert pattern[:, colors == color].sum(axis=1).max() <= 1, "two columns of a colour share a row"


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05, 0.1, 0.3, 1.0])
def test_star_colourings(share):
    for n in (1, 2, 9, 40):
        pattern = random_pattern(n, n, share)
        pattern |= pattern.T
        colors = color_star(*csr(pattern))
        near = pattern & ~np.eye(n, dtype=bool)
        rows, columns = np.nonzero(near)
        assert (colors[rows] != colors[columns]).all(), "neighbours of one colour"
        for a, b in zip(rows, columns):
            for c in np.flatnonzero(near[b]):
                for d in np.flatnonzero(near[c]):
                    if len({a, b, c, d}) == 4:
                        assert len({colors[a], colors[b], colors[c], colors[d]}) > 2, (a, b, c, d)
        # Each entry is alone in one of two products.
        for i, j in zip(rows, columns):
            alone = lambda i, j: np.count_nonzero(pattern[i] & (colors == colors[j])) == 1
            assert alone(i, j) or alone(j, i)


def test_colourings_of_malformed_patterns():
    starts, indices = np.array([0, 1], "i8"), np.array([3], "i8")
    for call in (lambda: color_columns(starts, indices, 3), lambda: color_star(starts, indices),
                 lambda: color_columns(np.array([0, 2], "i8"), indices, 9)):
        with pytest.raises(ValueError, match="not a CSR matrix"):
            call()


def test_least_squares_with_a_pattern():
    from scipy.optimize import least_squares

    f = function(CASES["diffusion"])
    solution = np.linspace(0, 1, 12)
    x, wanted = solution + 0.01, f(solution)
    found = least_squares(lambda x: f(x) - wanted, x, jac=lambda x: f.jac(x, sparse=True), tr_solver="lsmr", gtol=1e-12)
    np.testing.assert_allclose(found.x, solution, atol=1e-6)
    assert f.sparsity(x).matrix().nnz == 34

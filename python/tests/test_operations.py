"""First and second derivatives as functions of arrays alone, which `f.torch` and `f.tf` call."""

import numpy as np
import pytest

import gradus
from gradus._operations import Operations

X, Y = np.array([1.0, 4.0, 8.0]), np.array([2.0, -1.0, 0.5])
V, U, W = np.array([1.0, -2.0, 0.5]), np.array([0.3, 0.1, -1.0]), np.array([1.0, 3.0, -1.0])
PROGRAM = r"""
#include <math.h>
void waves(const double *x, const double *y, double *z, double a, int n) {
    for (int i = 0; i < n; i++) z[i] = a * a * sin(x[i]) * y[n - 1 - i];
}
int both(const double *x, double *y, double *sum, int n) {
    *sum = 0;
    for (int i = 0; i < n; i++) { y[i] = x[i] * x[i] * x[i]; *sum += y[i] * x[0]; }
    return n;
}
void advance(double *x, double h, int n) {
    for (int i = 0; i < n; i++) x[i] += h * sin(x[i]);
}
double scaled(const double *x, const double *y, double a, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += a * x[i] * x[i] * y[i];
    return s;
}
"""
STATED = {"waves": "z: out[n]", "both": "y: out[n], sum: out[]"}


@pytest.fixture(scope="module")
def program():
    """Functions in C."""
    return gradus.from_source(PROGRAM, signatures=STATED)


def near(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)


def test_an_output_array(program):
    f, a = Operations(program.waves), np.array(0.7)
    point, s, c, y = [X, Y, a], np.sin(X), np.cos(X), Y[::-1]
    near(f.value(point), [a * a * s * y])
    near(f.vjp(point, [W]), [W * a * a * c * y, (W * a * a * s)[::-1], np.sum(W * 2 * a * s * y)])
    tangents = [V, U, np.array(0.5)]
    along = a * a * (c * V * y + s * U[::-1]) + 2 * a * 0.5 * s * y
    near(f.jvp(point, tangents), [along])
    of_x = W * (a * a * (-s * V * y + c * U[::-1]) + 2 * a * 0.5 * c * y)
    of_y = (W * (a * a * c * V + 2 * a * 0.5 * s))[::-1]
    of_a = np.sum(W * (2 * 0.5 * s * y + 2 * a * (c * V * y + s * U[::-1])))
    near(f.second(point, [W], tangents), [of_x, of_y, of_a])
    other = [W, V, np.array(-1.0)]
    b = a * a * (-s * V * W * y + c * V * V[::-1] + c * W * U[::-1]) + 2 * 0.5 * -1.0 * s * y
    b += 2 * a * (0.5 * (c * W * y + s * V[::-1]) - (c * V * y + s * U[::-1]))
    near(f.twice(point, tangents, other), [b])
    near(f.twice(point, other, tangents), [b])


def test_an_array_that_changes_in_place(program):
    f, x, h = Operations(program.advance), X.copy(), np.array(0.1)
    near(f.value([x, h]), [X + h * np.sin(X)])
    near([x], [X])
    tangents = [V, np.array(2.0)]
    near(f.second([x, h], [W], tangents), [W * (-h * np.sin(X) * V + 2 * np.cos(X)), np.sum(W * np.cos(X) * V)])
    near(f.twice([x, h], tangents, [U, np.array(1.0)]), [-h * np.sin(X) * V * U + np.cos(X) * (V + 2 * U)])


def test_numbers_behind_pointers_and_integer_results(program):
    f = Operations(program.both)
    count, cubes, total = f.value([X])
    assert count == 3 and count.dtype == np.int32 and f.differentiable == [1, 2]
    near([cubes, total], [X**3, np.sum(X**3) * X[0]])
    e = np.eye(3)[0]
    gradient = 3 * X**2 * X[0] + np.sum(X**3) * e
    near(f.vjp([X], [W, np.array(2.0)]), [W * 3 * X**2 + 2 * gradient])
    hessian = np.diag(6 * X * X[0]) + np.outer(3 * X**2, e) + np.outer(e, 3 * X**2)
    near(f.second([X], [W, np.array(2.0)], [V]), [W * 6 * X * V + 2 * hessian @ V])
    near(f.twice([X], [V], [U]), [6 * X * V * U, U @ hessian @ V])


def test_a_result(program):
    f, a = Operations(program.scaled), np.array(2.0)
    tangents, others = [V, U, np.array(0.0)], [W, V, np.array(1.0)]
    wanted = 2 * a * np.sum(V * W * Y + X * V * V + X * W * U) + np.sum(2 * X * V * Y + X * X * U)
    near(f.twice([X, Y, a], tangents, others), [wanted])
    assert f.is_scalar and not Operations(program.both).is_scalar


def test_layouts(program):
    f, base = Operations(program.scaled), np.arange(6.0)
    near(f.value([base[::2], base[::-2], 2.0]), [2 * np.sum(base[::2] ** 2 * base[::-2])])


def test_arrays_in_fortran_order():
    """Arrays are in C order outside, with the indices of the program."""
    text = """
    subroutine scaled(a, b, factor) bind(c)
      double precision, intent(in) :: a(2, 3), factor
      double precision, intent(out) :: b(2, 3)
      integer :: i, j
      do j = 1, 3
        do i = 1, 2
          b(i, j) = factor * a(i, j) ** 2 * i
        end do
      end do
    end subroutine
    """
    f = Operations(gradus.from_source(text, "fortran").scaled.signature("b: out[2, 3]"))
    a, rows, factor = np.arange(6.0).reshape(2, 3), np.array([[1.0], [2.0]]), np.array(3.0)
    w = np.cos(a)
    found = f.value([a, factor])
    near(found, [3 * a**2 * rows])
    assert found[0].flags.c_contiguous
    near(f.vjp([a, factor], [w]), [w * 6 * a * rows, np.sum(w * a**2 * rows)])
    near(f.second([a, factor], [w], [a, np.array(2.0)]), [w * (6 * a + 4 * a) * rows, np.sum(w * 2 * a * a * rows)])


@pytest.mark.parametrize("text", ["void f(const double *x, int n) { }", "double f(int n) { return n; }"])
def test_functions_without_derivatives(text):
    with pytest.raises(gradus.Refused, match="GRD0019"):
        Operations(gradus.from_source(text).f)


def test_an_output_that_depends_on_other_arguments():
    text = """
    void f(const double *x, const double *y, double *p, double *q, int n) {
        for (int i = 0; i < n; i++) { p[i] = x[i] * x[i]; q[i] = 3 * y[i]; }
    }
    """
    f = Operations(gradus.from_source(text, signatures={"f": "p: out[n], q: out[n]"}).f.wrt("x"))
    near(f.vjp([X, Y], [W, W]), [2 * X * W])
    near(f.jvp([X, Y], [V]), [2 * X * V, np.zeros(3)])

"""`gradus.from_numba`: functions of `@numba.cfunc`."""

import ctypes
import math

import numpy as np
import pytest

import gradus

numba = pytest.importorskip("numba")

X = np.array([1.0, 4.0, 8.0])
compiled = lambda text, **more: numba.cfunc(text, error_model="numpy", **more)


@numba.njit(error_model="numpy")
def length(d):
    return math.sqrt(1 + d * d)


@compiled("float64(CPointer(float64), int32)")
def energy(x, n):
    v, s = numba.carray(x, n), 0.0
    for i in range(n - 1):
        s += length(v[i + 1] - v[i]) / (2 + v[i])
    return s


@compiled("void(CPointer(float64), CPointer(float64), float64, int64)")
def squares(x, y, a, n):
    v, w = numba.carray(x, n), numba.carray(y, n)
    for i in range(n):
        w[i] = a * v[i] * v[i]


@compiled("float64(CPointer(float64), CPointer(int32), uint32)")
def gather(x, p, n):
    s = 0.0
    for i in range(n):
        s += x[p[i]] * x[i]
    return s


@compiled("float32(CPointer(float32), CPointer(float32), int64)")
def single(a, b, n):
    s = numba.float32(0)
    for i in range(n):
        s += a[i] * b[i] * b[i]
    return s


@compiled("float64(CPointer(float64), int64, int64)")
def matrix(a, rows, cols):
    v, s = numba.carray(a, (rows, cols)), 0.0
    for i in range(rows):
        for j in range(cols):
            s += v[i, j] * v[i, j] * (i + 1)
    return s


@compiled("float64(float64, float64)")
def wavy(a, b):
    return math.sin(a) * math.exp(b) + math.atan2(a, b) + a**3 + np.tanh(b)


def test_values_are_numbas():
    f, pointer = gradus.from_numba(energy), ctypes.POINTER(ctypes.c_double)
    for n in (0, 1, 3, 50):
        x = np.linspace(0, 3, n)
        assert f(x) == energy.ctypes(x.ctypes.data_as(pointer), n)
    assert gradus.from_numba(wavy)(0.5, 2.0) == pytest.approx(wavy.ctypes(0.5, 2.0), rel=1e-15)


def test_derivatives():
    f = gradus.from_numba(energy)
    assert f.signature() == "energy(x: in f8[n], n: length)  -> f8".replace("  ", " ")
    assert f.check(X).is_right and f.check(np.linspace(0, 1, 100)).is_right
    d, e = np.diff(X), 2 + X[:-1]
    slope, shrink = d / np.sqrt(1 + d * d) / e, np.sqrt(1 + d * d) / e**2
    np.testing.assert_allclose(f.grad(X), np.append(0, slope) - np.append(slope + shrink, 0), rtol=1e-14)
    step = 1e-6 * np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(f.hess(X) @ step, (f.grad(X + step) - f.grad(X - step)) / 2, rtol=1e-5)
    assert gradus.from_numba(wavy).check(0.5, 2.0).is_right


def test_arrays_and_numbers():
    f = gradus.from_numba(squares, signature="y: out[n]")
    np.testing.assert_array_equal(f(X, 2.0), 2 * X**2)
    np.testing.assert_array_equal(f.wrt("x").jac(X, 2.0), np.diag(4 * X))
    f = gradus.from_numba(squares)
    y = np.zeros(3)
    assert f(X, y, 2.0) is None
    np.testing.assert_array_equal(y, 2 * X**2)
    p = np.array([2, 1, 0], "int32")
    np.testing.assert_array_equal(gradus.from_numba(gather).grad(X, p), [16, 8, 2])
    a, b = X.astype("f4"), np.array([1, 2, 3], "f4")
    of_a, of_b = gradus.from_numba(single).grad(a, b)
    assert of_a.dtype == np.float32
    np.testing.assert_allclose(of_b, 2 * a * b)
    A = np.arange(6.0).reshape(2, 3)
    f = gradus.from_numba(matrix, signature="a: [rows, cols]")
    np.testing.assert_allclose(f.grad(A), 2 * A * [[1], [2]])
    np.testing.assert_allclose(f.signature("a: [rows, cols]").grad(A), 2 * A * [[1], [2]])


def test_functions_that_may_raise_are_refused():
    @numba.cfunc("float64(float64, float64)")
    def quotient(a, b):
        return a / b

    @compiled("float64(float64)")
    def raises(a):
        if a < 0:
            raise ValueError
        return a

    @compiled("float64(CPointer(float64), int64)")
    def allocates(x, n):
        made = np.zeros(n)
        for i in range(n):
            made[i] = x[i] ** 2
        return made.sum()

    for function in (quotient, raises, allocates):
        with pytest.raises(gradus.SignatureError, match="may raise an exception"):
            gradus.from_numba(function)


@pytest.mark.parametrize("made, kind, said", [
    (lambda: length, TypeError, "`length` of type CPUDispatcher is not a function of @numba.cfunc"),
    (lambda: math.sin, TypeError, "`sin` of type builtin_function_or_method"),
    (lambda: compiled("float64(CPointer(complex128))")(lambda x: x[0].real), gradus.SignatureError, "complex128"),
    (lambda: compiled("complex128(float64)")(lambda x: 1j * x), gradus.SignatureError, "the result has Numba's type complex128"),
    (lambda: compiled("uint64(float64)")(lambda x: np.uint64(x)), gradus.SignatureError, "return a signed integer or a float"),
    (lambda: compiled("float64(voidptr)")(lambda x: 1.0), gradus.SignatureError, "`x` has Numba's type"),
])
def test_other_functions_are_refused(made, kind, said):
    with pytest.raises(kind, match=said):
        gradus.from_numba(made())

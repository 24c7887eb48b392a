"""Values and derivatives against formulas and finite differences."""

import numpy as np
import pytest

import gradus

X = np.array([1.0, 4.0, 8.0])
E = np.eye(3)


def energy_gradient(x):
    d = np.diff(x)
    s = d / np.sqrt(1 + d * d)
    return np.concatenate([[0], s]) - np.concatenate([s, [0]])


def test_gradient_and_value(c):
    assert c.energy(X) == pytest.approx(np.sqrt(10) + np.sqrt(17), rel=1e-15)
    np.testing.assert_allclose(c.energy.grad(X), energy_gradient(X), rtol=1e-14)
    value, gradient = c.energy.value_and_grad(X)
    assert value == c.energy(X)
    np.testing.assert_array_equal(gradient, c.energy.grad(X))


def test_jvp_and_vjp(c):
    v = np.array([1.0, -2.0, 0.5])
    assert c.energy.jvp(X, v) == pytest.approx(energy_gradient(X) @ v, rel=1e-13)
    np.testing.assert_allclose(c.energy.vjp(X, 3.0), 3 * energy_gradient(X), rtol=1e-14)


def test_hessian(c):
    d = np.diff(X)
    k = (1 + d * d) ** -1.5
    wanted = np.diag([k[0], k[0] + k[1], k[1]]) - np.diag(k, 1) - np.diag(k, -1)
    np.testing.assert_allclose(c.energy.hess(X), wanted, atol=1e-15)
    np.testing.assert_allclose(c.energy.hvp(X, E[1]), wanted[1], atol=1e-15)
    np.testing.assert_allclose(c.product.hess(X), [[0, 8, 4], [8, 0, 1], [4, 1, 0]], atol=1e-15)


def test_second_derivatives_of_numbers(c):
    cube = gradus.from_source("double cube(double a) { return a * a * a; }").cube
    assert cube.hess(2.0) == 12 and cube.hvp(2.0, 0.5) == 6
    assert c.wavy.wrt("a").hess(0.5, 2.0) == pytest.approx(-2 * np.sin(0.5))
    v = np.array([1.0, -1.0, 2.0])
    of_x, of_a = c.weighted.hvp(X, 2.0, 3, v, 0.5)
    np.testing.assert_allclose(of_x, 12 * X * v + 3 * X**2 * 0.5)
    assert of_a == pytest.approx(np.sum(3 * X**2 * v))


def test_several_arguments(c):
    gradient, of_a = c.weighted.grad(X, 2.0, 3)
    np.testing.assert_allclose(gradient, 6 * X**2)
    assert of_a == pytest.approx(np.sum(X**3))
    assert c.weighted.jvp(X, 2.0, 3, E[1], 1.0) == pytest.approx(6 * 16 + np.sum(X**3))
    np.testing.assert_allclose(c.weighted.wrt("x").grad(X, 2.0, 3), 6 * X**2)
    np.testing.assert_allclose(c.weighted.wrt("x").hess(X, 2.0, 3), np.diag(12 * X))
    assert c.wavy.grad(0.5, 2.0) == pytest.approx((2 * np.cos(0.5), np.sin(0.5)))


def test_outputs_in_memory(c):
    y = np.zeros(3)
    assert c.squares(X, y, 2.0) is None
    np.testing.assert_array_equal(y, 2 * X**2)
    f = c.squares.signature("y: out[n]")
    np.testing.assert_array_equal(f(X, 2.0), y)
    np.testing.assert_array_equal(f.jvp(X, 2.0, E[2], 0.0), [0, 0, 32])
    of_x, of_a = f.vjp(X, 2.0, np.ones(3))
    np.testing.assert_array_equal(of_x, 4 * X)
    assert of_a == np.sum(X**2)
    np.testing.assert_array_equal(f.wrt("x").jac(X, 2.0), np.diag(4 * X))
    assert c.squares.jvp(X, y, 2.0, E[2], np.ones(3), 0.0) == pytest.approx([0, 0, 32])
    of_x, of_y, of_a = c.squares.vjp(X, y, 2.0, np.ones(3))
    np.testing.assert_array_equal(of_y, np.zeros(3))


def test_arrays_that_change_in_place(c):
    x = X.copy()
    f = c.advance.wrt("x")
    np.testing.assert_allclose(f.jac(x, 0.1), np.diag(1 + 0.1 * np.cos(X)))
    np.testing.assert_array_equal(x, X, "derivatives leave the arguments unchanged")
    assert c.advance(x, 0.1) is None
    np.testing.assert_allclose(x, X + 0.1 * np.sin(X))
    w = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(f.vjp(X, 0.1, w), w * (1 + 0.1 * np.cos(X)))
    np.testing.assert_array_equal(w, [1, 2, 3], "cotangents stay unchanged")


def test_shapes_and_integers(c):
    A = np.arange(6.0).reshape(2, 3)
    of_matrix, of_x = c.matrix.grad(A, X)
    np.testing.assert_array_equal(of_matrix, np.tile(X**2, (2, 1)))
    np.testing.assert_allclose(of_x, 2 * X * A.sum(axis=0))
    p = np.array([2, 1, 0], dtype="int32")
    np.testing.assert_array_equal(c.gather.grad(X, p), [16, 8, 2])


def test_single_precision(c):
    a, b = X.astype("float32"), E[1].astype("float32")
    of_a, of_b = c.single.grad(a, b)
    assert of_a.dtype == of_b.dtype == np.float32
    np.testing.assert_array_equal(of_a, b)
    np.testing.assert_array_equal(of_b, [0, 8, 0])


@pytest.mark.parametrize("n", [0, 1, 2, 1000, 100_000])
def test_any_length(c, n):
    x = np.random.default_rng(n).normal(size=n)
    np.testing.assert_allclose(c.energy.grad(x), energy_gradient(x) if n else x, atol=1e-14)


def test_out_is_overwritten(c):
    out = np.full(3, 9.0)
    made = c.energy.grad(X, out=out)
    assert made is out
    np.testing.assert_allclose(out, energy_gradient(X))


def test_checks(c):
    assert c.energy.check(X).is_right
    assert c.weighted.check(X, 2.0, 3).is_right
    assert c.advance.check(X, 0.1).is_right
    assert c.squares.signature("y: out[n]").check(X, 2.0).is_right
    assert c.single.check(X.astype("f4"), X.astype("f4")).is_right


def test_a_wrong_derivative_fails_the_check():
    wrong = gradus.from_source(
        "#include <gradus.h>\n"
        "__attribute__((noinline)) double cube(double x) { return x * x * x; }\n"
        "double cube_tangent(double x, double v) { return 2.9 * x * x * v; }\n"
        "double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += cube(x[i]); return s; }\n"
        "void *__enzyme_register_derivative_cube[] = {(void *)cube, (void *)cube_tangent};\n"
    )
    with pytest.raises((gradus.Wrong, gradus.Refused)):
        wrong.f.check(X)


def test_a_check_that_tests_nothing_is_an_error(c):
    with pytest.raises(gradus.Error, match="nothing was tested"):
        c.energy.check(np.ones(3))


def test_threads(c):
    from concurrent.futures import ThreadPoolExecutor

    xs = [np.random.default_rng(k).normal(size=5000) for k in range(40)]
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(c.energy.grad, xs))
    for x, gradient in zip(xs, made):
        np.testing.assert_allclose(gradient, energy_gradient(x), atol=1e-14)


def test_scipy_minimises(c):
    from scipy.optimize import minimize

    program = gradus.from_source(
        "double rosen(const double *x, int n) { double s = 0; for (int i = 0; i + 1 < n; i++)"
        " s += 100 * (x[i+1] - x[i]*x[i]) * (x[i+1] - x[i]*x[i]) + (1 - x[i]) * (1 - x[i]); return s; }"
    )
    f = program.rosen
    found = minimize(f.value_and_grad, np.zeros(5), jac=True, hessp=f.hvp, method="Newton-CG", options={"xtol": 1e-10})
    np.testing.assert_allclose(found.x, np.ones(5), atol=1e-7)

"""`f.jax` and `f.scipy`: the frameworks' own checks."""

import os

import numpy as np
import pytest

import gradus
from gradus import _jax_direct

X = np.array([1.0, 4.0, 8.0])


@pytest.fixture(params=["ffi", "callback"])
def jax(request, monkeypatch):
    """JAX, with calls on each path."""
    made = pytest.importorskip("jax")
    made.config.update("jax_enable_x64", True)
    monkeypatch.setenv("GRADUS_JAX", request.param)
    return made


@pytest.fixture
def c(c):
    """The functions of `conftest.py` anew: a function keeps its `f.jax`, with the path of the first use."""
    return gradus.Program(c.source, c.stated)


def energy(x):
    import jax.numpy as jnp

    return jnp.sum(jnp.sqrt(1 + (x[1:] - x[:-1]) ** 2))


def test_jax_derivatives(c, jax):
    f, x = c.energy.jax, jax.numpy.asarray(X)
    v = jax.numpy.asarray([1.0, -2.0, 0.5])
    near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    near(f(x), energy(x))
    near(jax.grad(f)(x), jax.grad(energy)(x))
    near(jax.jit(jax.value_and_grad(f))(x)[1], jax.grad(energy)(x))
    near(jax.jvp(f, (x,), (v,))[1], jax.jvp(energy, (x,), (v,))[1])
    near(jax.vjp(f, x)[1](2.0)[0], jax.vjp(energy, x)[1](2.0)[0])
    near(jax.hessian(f)(x), jax.hessian(energy)(x))
    near(jax.jvp(jax.grad(f), (x,), (v,))[1], jax.jvp(jax.grad(energy), (x,), (v,))[1])
    xs = jax.numpy.stack([x, 2 * x, v])
    near(jax.vmap(f)(xs), jax.vmap(energy)(xs))
    near(jax.jit(jax.vmap(jax.grad(f)))(xs), jax.vmap(jax.grad(energy))(xs))
    near(jax.linearize(f, x)[1](v), jax.linearize(energy, x)[1](v))


def test_jax_second_derivatives_in_all_modes(c, jax):
    f, x = c.energy.jax, jax.numpy.asarray(X)
    near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    wanted = jax.hessian(energy)(x)
    for first in (jax.jacfwd, jax.jacrev):
        for second in (jax.jacfwd, jax.jacrev):
            near(second(first(f))(x), wanted)
            near(jax.jit(second(first(f)))(x), wanted)
    xs = jax.numpy.stack([x, 2 * x])
    near(jax.vmap(jax.jacrev(jax.grad(f)))(xs), jax.vmap(jax.hessian(energy))(xs))
    near(jax.linear_transpose(jax.linearize(f, x)[1], x)(2.0)[0], 2 * jax.grad(energy)(x))
    with pytest.raises(NotImplementedError, match="third derivatives are not supported"):
        jax.jacfwd(jax.hessian(f))(x)


def test_jax_arrays_as_outputs(c, jax):
    jnp, x, v = jax.numpy, jax.numpy.asarray(X), jax.numpy.asarray([1.0, -2.0, 0.5])
    near = lambda a, b: jax.tree_util.tree_map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13), a, b)
    squares = c.squares.signature("y: out[n]").jax
    pairs = [
        (lambda x, a: squares(x, a), lambda x, a: a * x * x),
        (lambda x, a: c.advance.jax(x, a), lambda x, h: x + h * jnp.sin(x)),
        (lambda x, a: c.advance.jax(squares(x, a), a), lambda x, a: a * x * x + a * jnp.sin(a * x * x)),
    ]
    for f, same in pairs:
        for take in (
            lambda f: f(x, 0.7),
            lambda f: jax.jacfwd(f, (0, 1))(x, 0.7),
            lambda f: jax.jacrev(f, (0, 1))(x, 0.7),
            lambda f: jax.jit(jax.jacfwd(jax.jacrev(f)))(x, 0.7),
            lambda f: jax.jacrev(jax.jacrev(f, (0, 1)), (0, 1))(x, 0.7),
            lambda f: jax.jacrev(jax.jacfwd(f, (0, 1)), (0, 1))(x, 0.7),
            lambda f: jax.jacfwd(jax.jacfwd(f, (0, 1)), (0, 1))(x, 0.7),
            lambda f: jax.vmap(jax.jacrev(f), (0, None))(jnp.stack([x, v]), 0.7),
            lambda f: jax.vmap(f, (None, 0), 1)(x, v),
        ):
            near(take(f), take(same))
    near(x, X)


def test_jax_integers_and_several_outputs(jax):
    program = gradus.from_source("""
    int both(const double *x, const int *p, double *y, double *sum, int n, int k) {
        *sum = 0;
        for (int i = 0; i < n; i++) { y[i] = x[p[i]] * x[i] * k; *sum += y[i] * x[0]; }
        return n;
    }
    void pad(const double *x, double *y, int n, int k) { for (int i = 0; i < n + k; i++) y[i] = i < n ? x[i] * x[i] : 0; }
    """, signatures={"both": "x: [n], p: [n], y: out[n], sum: out[]", "pad": "x: [n], y: out[n+k]"})
    x, p = jax.numpy.asarray(X), jax.numpy.asarray([2, 1, 0], "int32")
    same = lambda x: (x[p] * x * 3, jax.numpy.sum(x[p] * x * 3) * x[0])
    near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12)
    count, *found = program.both.jax(x, p, 3)
    assert count == 3 and count.dtype == "int32"
    for take in (lambda f: f(x), lambda f: jax.jacrev(f)(x), lambda f: jax.jacfwd(f)(x), lambda f: jax.jit(jax.jacrev(f))(x)):
        jax.tree_util.tree_map(near, take(lambda x: tuple(program.both.jax(x, p, 3)[1:])), take(same))
    near(jax.jit(program.pad.jax, static_argnums=1)(x, 2), np.append(X**2, [0, 0]))
    with pytest.raises(TypeError, match="static_argnums"):
        jax.jit(program.pad.jax)(x, 2)
    with pytest.raises(TypeError, match="`k` is not an integer"):
        program.pad.jax(x, 2.5)
    with pytest.raises(OverflowError, match="does not fit into `k`"):
        program.pad.jax(x, 2**40)


def test_jax_refuses_derivatives_of_arguments_that_are_not_chosen(c, jax):
    f, x = c.weighted.wrt("x").jax, jax.numpy.asarray(X)
    np.testing.assert_allclose(jax.grad(f)(x, 2.0, 3), 6 * X**2)
    for take in (lambda: jax.grad(f, 1)(x, 2.0, 3), lambda: jax.jvp(lambda a: f(x, a, 3), (2.0,), (1.0,))):
        with pytest.raises(TypeError, match="`a` requires a derivative"):
            take()


def test_jax_single_precision(c, jax):
    a, b = (jax.numpy.asarray(v, "float32") for v in (X, [1, 2, 3]))
    of_a, of_b = jax.grad(c.single.jax, (0, 1))(a, b)
    assert of_a.dtype == of_b.dtype == "float32"
    np.testing.assert_allclose(of_b, 2 * a * b)
    np.testing.assert_allclose(jax.hessian(c.single.jax, 1)(a, b), np.diag(2 * a))


def test_jax_checks_gradients(c, jax):
    from jax.test_util import check_grads

    check_grads(c.energy.jax, (jax.numpy.asarray(X),), order=2, modes=["fwd", "rev"])
    check_grads(c.advance.jax, (jax.numpy.asarray(X), 0.1), order=2, modes=["fwd", "rev"])
    check_grads(c.wavy.jax, (0.5, 2.0), order=1, modes=["fwd", "rev"])


def test_jax_in_a_larger_function(c, jax):
    both = lambda x, a: a * c.weighted.jax(jax.numpy.sin(x), a, 2) ** 2
    same = lambda x, a: a * (a * jax.numpy.sum(jax.numpy.sin(x) ** 2)) ** 2
    found = jax.grad(both, argnums=(0, 1))(jax.numpy.asarray(X), 1.5)
    wanted = jax.grad(same, argnums=(0, 1))(jax.numpy.asarray(X), 1.5)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_jax_refuses_the_unsupported(c, jax):
    with pytest.raises(gradus.SignatureError, match="several numbers by value"):
        jax.hessian(c.wavy.jax)(0.5, 2.0)
    with pytest.raises(TypeError, match="float32, but the function takes float64"):
        c.energy.jax(jax.numpy.ones(3, "float32"))
    with pytest.raises(TypeError, match="pass x by position"):
        c.energy.jax()
    jax.config.update("jax_enable_x64", False)
    try:
        program = gradus.from_source("double half(const double *x, int n) { return x[0] / 2; }")
        with pytest.raises(gradus.SignatureError, match="jax_enable_x64"):
            program.half.jax
    finally:
        jax.config.update("jax_enable_x64", True)


def test_jax_path(c, jax, monkeypatch):
    assert c.energy.jax.path == os.environ["GRADUS_JAX"]
    text = str(jax.make_jaxpr(c.energy.jax)(X)) + jax.jit(c.energy.jax).lower(X).as_text()
    assert ("gradus_jax_call" in text) == (c.energy.jax.path == "ffi")
    assert ("callback" in text) == (c.energy.jax.path == "callback")
    monkeypatch.setenv("GRADUS_JAX", "other")
    with pytest.raises(ValueError, match="neither `ffi` nor `callback`"):
        c.product.jax


def test_jax_without_clang(c, jax, monkeypatch):
    monkeypatch.delenv("GRADUS_JAX")
    assert _jax_direct._handler("false") is None
    monkeypatch.setattr(_jax_direct, "_clang", lambda: None)
    assert c.product.jax.path == "callback"
    np.testing.assert_allclose(jax.grad(c.product.jax)(jax.numpy.asarray(X)), [32, 8, 4])
    monkeypatch.setenv("GRADUS_JAX", "ffi")
    with pytest.raises(RuntimeError, match="there is no clang"):
        c.energy.jax


def test_jax_traced_integers(jax):
    program = gradus.from_source("""
    double power(const double *x, int n, short k) { double s = 0; for (int i = 0; i < n; i++) s += k * x[i] * x[i]; return s; }
    double pairs(const double *x, int k) { double s = 0; for (int i = 0; i < 2 * k; i++) s += x[i] * x[i]; return s; }
    """, signatures={"power": "x: [n]", "pairs": "x: [2*k]"})
    x = jax.numpy.asarray(X[:2])
    power, pairs = (jax.jit(jax.grad(f)) for f in (program.power.jax, program.pairs.jax))
    for k in (-3, 7):
        np.testing.assert_allclose(power(x, k), 2 * k * X[:2])
    np.testing.assert_allclose(pairs(x, 1), 2 * X[:2])
    for take in (lambda: power(x, 2**15), lambda: power(x, -(2**15) - 1), lambda: pairs(x, 2), lambda: pairs(x, 0)):
        with pytest.raises(Exception, match="fit|length"):
            jax.block_until_ready(take())


def test_jax_tests_guessed_lengths(jax):
    program = gradus.from_source("""
    double beyond(const double *x, int n) { double s = 0; for (int i = 0; i < 4096 * n; i++) s += x[i] * x[i]; return s; }
    double within(const double *x, const int *p, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[p[i]] * x[i]; return s; }
    """)
    x, p = jax.numpy.asarray(X), jax.numpy.asarray([2, 1, 0], "int32")
    with pytest.raises(Exception, match="accesses memory beyond its arrays"):
        jax.block_until_ready(jax.jit(jax.grad(program.beyond.jax))(x))
    np.testing.assert_allclose(jax.jit(jax.grad(program.within.jax))(x, p), [16, 8, 2])


def test_jax_fortran(tmp_path, jax):
    file = tmp_path / "model.f90"
    file.write_text("""
    subroutine rows(a, x, y, s, m, n) bind(c)
      use iso_c_binding
      integer(c_int), value :: m, n
      real(c_double), intent(in) :: a(m, n), x(n)
      real(c_double), intent(inout) :: y(m, n)
      real(c_double), intent(inout) :: s
      integer :: i, j
      do j = 1, n
        do i = 1, m
          y(i, j) = y(i, j) * a(i, j) * x(j)
          s = s + i * a(i, j)**2
        end do
      end do
    end subroutine
    subroutine shaped(a, b)
      real(8), intent(in) :: a(:, :)
      real(8), intent(inout) :: b(:, :)
      b = b * a(2, 1) + a**2
    end subroutine
    """)
    jnp, program = jax.numpy, gradus.load(file, signatures={"rows": "a: [m, n], x: [n], y: [m, n]"})
    a, x, y = jnp.asarray([[1.0, 2, 3], [4, 5, 6]]), jnp.asarray([0.5, -1, 2]), jnp.asarray([[7.0, 8, 9], [1, 3, 2]])
    rows = lambda a, x, y: (y * a * x, 2.5 + jnp.sum(jnp.asarray([[1.0], [2]]) * a**2))
    pairs = [
        (lambda a, x, y: tuple(program.rows.jax(a, x, y, 2.5)), rows),
        (lambda a, x, y: program.shaped.jax(a, y), lambda a, x, y: y * a[1, 0] + a**2),
    ]
    near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    for f, same in pairs:
        for take in (
            lambda f: f(a, x, y),
            lambda f: jax.jit(jax.jacfwd(f, (0, 2)))(a, x, y),
            lambda f: jax.jacrev(f, (0, 2))(a, x, y),
            lambda f: jax.vmap(f, (0, None, None))(jnp.stack([a, 2 * a]), x, y),
        ):
            jax.tree_util.tree_map(near, take(f), take(same))
    f, same = pairs[0]
    second = lambda f: jax.jit(jax.jacfwd(jax.jacrev(f, (0, 2)), (0, 2)))(a, x, y)
    jax.tree_util.tree_map(near, second(f), second(same))


ROSEN = """
double rosen(const double *x, int n) {
    double s = 0;
    for (int i = 0; i + 1 < n; i++)
        s += 100 * (x[i+1] - x[i]*x[i]) * (x[i+1] - x[i]*x[i]) + (1 - x[i]) * (1 - x[i]);
    return s;
}
void residual(const double *p, const double *t, const double *y, double *r, int n) {
    for (int i = 0; i < n; i++) r[i] = p[0] + p[1] * t[i] * t[i] - y[i];
}
"""


@pytest.mark.parametrize("method", ["L-BFGS-B", "Newton-CG", "trust-ncg", "BFGS"])
def test_scipy_minimizes(method):
    f = gradus.from_source(ROSEN).rosen
    found = f.scipy.minimize(np.zeros(6), method=method, tol=1e-10)
    np.testing.assert_allclose(found.x, np.ones(6), atol=1e-4)


def test_scipy_fits():
    stated = {"residual": "p: [2], t: [n], y: [n], r: out[n]"}
    f = gradus.from_source(ROSEN, signatures=stated).residual.wrt("p")
    t = np.linspace(0, 1, 20)
    found = f.scipy.least_squares([0.0, 0.0], args=(t, 3 + 2 * t**2))
    np.testing.assert_allclose(found.x, [3, 2], rtol=1e-8)


def test_scipy_needs_one_active_parameter(c):
    with pytest.raises(gradus.SignatureError, match="choose one with f.wrt"):
        c.weighted.scipy

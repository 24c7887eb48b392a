"""`f.jax` and `f.scipy`: the frameworks' own checks."""

import numpy as np
import pytest

import gradus

X = np.array([1.0, 4.0, 8.0])


@pytest.fixture(scope="module")
def jax():
    made = pytest.importorskip("jax")
    made.config.update("jax_enable_x64", True)
    return made


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


def test_jax_checks_gradients(c, jax):
    from jax.test_util import check_grads

    check_grads(c.energy.jax, (jax.numpy.asarray(X),), order=1, modes=["fwd", "rev"])
    check_grads(c.wavy.jax, (0.5, 2.0), order=1, modes=["fwd", "rev"])


def test_jax_in_a_larger_function(c, jax):
    both = lambda x, a: a * c.weighted.jax(jax.numpy.sin(x), a, 2) ** 2
    same = lambda x, a: a * (a * jax.numpy.sum(jax.numpy.sin(x) ** 2)) ** 2
    found = jax.grad(both, argnums=(0, 1))(jax.numpy.asarray(X), 1.5)
    wanted = jax.grad(same, argnums=(0, 1))(jax.numpy.asarray(X), 1.5)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_jax_refuses_the_unsupported(c, jax):
    with pytest.raises(gradus.SignatureError, match="float result"):
        c.squares.jax
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

"""`f.tf`: TensorFlow's gradients, against the same functions in TensorFlow's operations."""

import os

import numpy as np
import pytest

import gradus

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

PROGRAM = r"""
#include <math.h>
double energy(const double *x, int n) {
    double sum = 0;
    for (int i = 0; i + 1 < n; i++) sum += sqrt(1 + (x[i + 1] - x[i]) * (x[i + 1] - x[i]));
    return sum;
}
double weighted(const double *x, double a, int n, int power) {
    double s = 0;
    for (int i = 0; i < n; i++) s += a * pow(x[i], power);
    return s;
}
void waves(const double *x, const double *y, double *z, double a, int n) {
    for (int i = 0; i < n; i++) z[i] = a * sin(x[i]) * y[n - 1 - i];
}
void advance(double *x, double h, int n) {
    for (int i = 0; i < n; i++) x[i] += h * sin(x[i]);
}
int both(const double *x, double *y, double *sum, int n) {
    *sum = 0;
    for (int i = 0; i < n; i++) { y[i] = x[i] * x[i] * x[i]; *sum += y[i] * x[0]; }
    return n;
}
float single(const float *a, const float *b, int n) {
    float s = 0;
    for (int i = 0; i < n; i++) s += a[i] * b[i] * b[i];
    return s;
}
double gather(const double *x, const int *p, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[p[i]] * x[i] * x[i];
    return s;
}
double wavy(double a, double b) { return sin(a) * b; }
"""
STATED = {"waves": "z: out[n]", "both": "y: out[n], sum: out[]"}


@pytest.fixture(scope="module")
def c():
    """Functions in C."""
    return gradus.from_source(PROGRAM, signatures=STATED)


def energy(x):
    d = x[1:] - x[:-1]
    return tf.reduce_sum(tf.sqrt(1 + d * d))


def waves(x, y, a):
    return a * tf.sin(x) * tf.reverse(y, [0])


def both(x):
    return x**3, tf.reduce_sum(x**3) * x[0]


X, V = (tf.constant(v, tf.float64) for v in ([1.0, 4.0, 8.0], [1.0, -2.0, 0.5]))
A = tf.constant(0.7, tf.float64)


def near(found, wanted):
    found, wanted = tf.nest.flatten(found), tf.nest.flatten(wanted)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12, atol=1e-13)


@pytest.fixture
def cases(c):
    """Functions with the same in TensorFlow, and arguments."""
    return [
        (c.energy.tf, energy, (X,)),
        (lambda x, a: c.weighted.tf(x, a, 3), lambda x, a: a * tf.reduce_sum(x**3), (X, A)),
        (c.waves.tf, waves, (X, V, A)),
        (c.advance.tf, lambda x, h: x + h * tf.sin(x), (X, A)),
        (lambda x: c.both.tf(x)[1:], both, (X,)),
    ]


def weigh(outputs):
    """Returns a number that depends on all elements of outputs."""
    parts = [tf.reshape(o, [-1]) for o in tf.nest.flatten(outputs)]
    return tf.reduce_sum(tf.concat([tf.sin(p) * tf.linspace(tf.constant(1.0, p.dtype), 2, tf.size(p)) for p in parts], 0))


def gradient(f, args):
    with tf.GradientTape() as tape:
        tape.watch(args)
        value = weigh(f(*args))
    return tape.gradient(value, args)


def hessian_product(f, args):
    with tf.GradientTape() as tape:
        tape.watch(args)
        along = weigh(gradient(f, args))
    return tape.gradient(along, args)


def forward(f, args):
    tangents = [tf.reshape(tf.linspace(tf.constant(0.3, a.dtype), 1.1, tf.size(a)), a.shape) for a in args]
    with tf.autodiff.ForwardAccumulator(list(args), tangents) as accumulator:
        outputs = f(*args)
    return [accumulator.jvp(o) for o in tf.nest.flatten(outputs)]


def forward_over_reverse(f, args):
    tangents = [tf.reshape(tf.linspace(tf.constant(0.3, a.dtype), 1.1, tf.size(a)), a.shape) for a in args]
    with tf.autodiff.ForwardAccumulator(list(args), tangents) as accumulator:
        slopes = gradient(f, args)
    return [accumulator.jvp(s) for s in slopes]


@pytest.mark.parametrize("take, compiled", [(take, compiled) for take in (lambda f, args: f(*args), gradient, hessian_product, forward, forward_over_reverse)
                                            for compiled in (False, True) if not (compiled and "forward" in take.__name__)])
def test_derivatives(cases, take, compiled):
    for f, same, args in cases:
        run = tf.function(lambda *args: take(f, args)) if compiled else lambda *args: take(f, args)
        near(run(*args), take(same, args))


def test_forward_mode_is_never_a_silent_zero(cases):
    for f, _, args in cases:
        assert all(tangent is not None and np.max(np.abs(tangent)) > 1e-3 for tangent in forward(f, args))


@pytest.mark.parametrize("take", [forward, forward_over_reverse])
def test_forward_mode_in_a_graph_is_right_or_refused(cases, take):
    for f, same, args in cases:
        with pytest.raises(NotImplementedError, match="ForwardAccumulator does not work inside of tf.function"):
            tf.function(lambda *args: take(f, args))(*args)
        for around in (lambda g: g, lambda g: tf.function(lambda *args: g(*args) * 1)):
            graph = around(tf.function(lambda *args: weigh(f(*args))))
            try:
                found = take(graph, args)
            except (NotImplementedError, TypeError) as error:
                # TypeError: TensorFlow 2.21 cannot build the graph, and cannot raise its own exception.
                assert "ForwardAccumulator does not work" in str(error) or "InternalError" in str(error)
            else:
                near(found, take(lambda *args: weigh(same(*args)), args))


def test_unknown_shapes(c):
    spec = tf.TensorSpec([None], tf.float64)
    for f, same in ((c.energy.tf, energy), (lambda x: c.waves.tf(x, x, 0.5), lambda x: waves(x, x, 0.5))):
        run = tf.function(lambda x: (f(x), *gradient(f, (x,))), input_signature=[spec])
        for x in (X, tf.linspace(tf.constant(0.0, tf.float64), 1, 7)):
            near(run(x), (same(x), *gradient(same, (x,))))
    assert tf.function(lambda x: c.waves.tf(x, x, 0.5)).get_concrete_function(spec).output_shapes.as_list() == [None]
    assert tf.function(lambda x: c.waves.tf(x, x, 0.5)).get_concrete_function(X).output_shapes.as_list() == [3]


@pytest.mark.parametrize("pfor", [False, True])
def test_jacobians(c, pfor):
    def jacobian(f):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            value = f(X)
        return tape.jacobian(value, X, experimental_use_pfor=pfor)

    near(jacobian(lambda x: c.waves.tf(x, V, A)), jacobian(lambda x: waves(x, V, A)))


def test_variables_and_numpy(c):
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        value = c.waves.tf(x, V.numpy(), 0.5)
    near(tape.gradient(value, x), 0.5 * tf.cos(X) * tf.reverse(V, [0]))


def test_types(c):
    a, b = (tf.cast(t, tf.float32) for t in (X, V))
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        value = c.single.tf(a, b)
    of_a, of_b = tape.gradient(value, [a, b])
    assert value.dtype == of_a.dtype == tf.float32
    np.testing.assert_allclose(of_b, 2 * a * b)
    p = tf.constant([2, 1, 0], tf.int32)
    same = lambda x: tf.reduce_sum(tf.gather(x, p) * x * x)
    near(gradient(lambda x: c.gather.tf(x, p), (X,)), gradient(same, (X,)))
    count = c.both.tf(X)[0]
    assert count.dtype == tf.int32 and int(count) == 3
    empty = tf.zeros([0], tf.float64)
    assert gradient(c.energy.tf, (empty,))[0].shape == (0,)


def test_a_chosen_argument(c):
    f = c.weighted.wrt("x").tf
    near(gradient(lambda x: f(x, A, 3), (X,)), gradient(lambda x: A * tf.reduce_sum(x**3), (X,)))
    for run in (lambda: gradient(lambda a: f(X, a, 3), (A,)), lambda: gradient(lambda x, a: f(x, a, 3), (X, A))):
        with pytest.raises(NotImplementedError, match="`a` requires a derivative"):
            run()


def test_refused_derivatives(c):
    near(gradient(lambda a: c.wavy.tf(a, 2.0), (A,)), gradient(lambda a: 2 * tf.sin(a), (A,)))
    near(forward(lambda a: c.wavy.tf(a, 2.0), (A,)), forward(lambda a: 2 * tf.sin(a), (A,)))
    with pytest.raises(gradus.SignatureError, match="several numbers by value"):
        hessian_product(lambda a: c.wavy.tf(a, 2.0), (A,))
    with tf.GradientTape() as tape:
        tape.watch(X)
        product = weigh(hessian_product(c.energy.tf, (X,)))
    with pytest.raises(NotImplementedError, match="third derivatives are not supported"):
        tape.gradient(product, X)


def test_xla_is_refused(c):
    with pytest.raises(tf.errors.InvalidArgumentError, match="PyFunc"):
        tf.function(c.energy.tf, jit_compile=True)(X)


@pytest.mark.parametrize("call, kind, said", [
    (lambda f: f.energy.tf(tf.cast(X, tf.float32)), TypeError, r"float32, but the function takes float64; pass tf.cast\(x"),
    (lambda f: f.energy.tf(tf.constant([1, 2])), TypeError, "int32, but"),
    (lambda f: f.energy.tf([1.0, 2.0]), TypeError, "not a tensor but a list"),
    (lambda f: f.energy.tf(tf.ones([2, 2], tf.float64)), ValueError, "`x` has 2 dimensions, 1 are expected"),
    (lambda f: f.energy.tf(), TypeError, r"0 of 1 arguments are given; call energy.tf\(x\)"),
    (lambda f: f.weighted.tf(X, A, A), TypeError, "`power` is not an integer but a EagerTensor"),
    (lambda f: f.waves.tf(X, V[:2], A), ValueError, "`y` has length 2 in dimension 0, but the function expects 3"),
    (lambda f: tf.function(f.waves.tf)(X, V[:2], A), tf.errors.InvalidArgumentError, "`y` has length 2 in dimension 0"),
])
def test_wrong_arguments(c, call, kind, said):
    with pytest.raises(kind, match=said):
        call(c)

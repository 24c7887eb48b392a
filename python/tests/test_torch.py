"""`f.torch`: PyTorch's own checks, against the same functions in PyTorch's operations."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gradus

torch = pytest.importorskip("torch")

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
double matrix(const double *A, const double *x, int rows, int cols) {
    double s = 0;
    for (int i = 0; i < rows; i++) for (int j = 0; j < cols; j++) s += A[i * cols + j] * x[j] * x[j];
    return s;
}
double gather(const double *x, const int *p, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[p[i]] * x[i] * x[i];
    return s;
}
double wavy(double a, double b) { return sin(a) * b; }
"""
STATED = {
    "waves": "z: out[n]", "matrix": "A: [rows, cols], x: [cols]", "both": "y: out[n], sum: out[]",
}


@pytest.fixture(scope="module")
def c():
    """Functions in C."""
    return gradus.from_source(PROGRAM, signatures=STATED)


def energy(x):
    d = x[1:] - x[:-1]
    return torch.sqrt(1 + d * d).sum()


def waves(x, y, a):
    return a * torch.sin(x) * y.flip(0)


def both(x):
    cubes = x**3
    return cubes, (cubes * x[0]).sum()


def vector(*values, dtype=torch.float64, grad=False):
    return torch.tensor(values, dtype=dtype, requires_grad=grad)


X = vector(1.0, 4.0, 8.0)
V = vector(1.0, -2.0, 0.5)
XS = torch.stack([X, 2 * X, V])


def near(found, wanted):
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.fixture
def cases(c):
    """Functions with the same in PyTorch, and arguments."""
    a = torch.tensor(0.7, dtype=torch.float64)
    return [
        (c.energy.torch, energy, (X,)),
        (lambda x, a: c.weighted.torch(x, a, 3), lambda x, a: a * (x**3).sum(), (X, a)),
        (c.waves.torch, waves, (X, V, a)),
        (c.advance.torch, lambda x, h: x + h * torch.sin(x), (X, a)),
        (lambda x: c.both.torch(x)[1:], both, (X,)),
        (c.matrix.torch, lambda A, x: (A * x * x).sum(), (XS, V)),
    ]


def test_values_and_gradients(cases):
    for f, same, args in cases:
        given, other = ([t.clone().requires_grad_() for t in args] for _ in range(2))
        found, wanted = f(*given), same(*other)
        near(found, wanted)
        sums = [sum((o * torch.linspace(1, 2, o.numel(), dtype=o.dtype).view(o.shape)).sum() for o in outputs)
                for outputs in ((found, wanted) if isinstance(found, tuple) else ((found,), (wanted,)))]
        near(torch.autograd.grad(sums[0], given), torch.autograd.grad(sums[1], other))


def test_gradcheck_and_gradgradcheck(cases):
    for f, _, args in cases:
        given = [t.clone().requires_grad_() for t in args]
        assert torch.autograd.gradcheck(f, given, check_forward_ad=True, check_batched_grad=True)
        assert torch.autograd.gradgradcheck(f, given, check_fwd_over_rev=True, check_rev_over_rev=True)


def test_gradcheck_of_batched_forward_mode(c):
    assert torch.autograd.gradcheck(c.energy.torch, [X.clone().requires_grad_()], check_forward_ad=True,
                                    check_batched_forward_grad=True)


def test_the_jvp_of_torch_func_is_never_a_silent_zero(cases):
    for f, same, args in cases:
        tangents = tuple(torch.linspace(0.3, 1.1, t.numel(), dtype=t.dtype).view(t.shape) for t in args)
        found, wanted = torch.func.jvp(f, args, tangents), torch.func.jvp(same, args, tangents)
        near(found, wanted)
        assert all(bool(t.abs().max() > 1e-3) for t in torch.utils._pytree.tree_leaves(found[1]))
        with torch.autograd.forward_ad.dual_level():
            duals = [torch.autograd.forward_ad.make_dual(t, v) for t, v in zip(args, tangents)]
            for output, along in zip(*map(torch.utils._pytree.tree_leaves, (f(*duals), wanted[1]))):
                near(torch.autograd.forward_ad.unpack_dual(output).tangent, along)


def dual(f, x, v):
    """Returns the tangent of forward mode without `torch.func`."""
    with torch.autograd.forward_ad.dual_level():
        return torch.autograd.forward_ad.unpack_dual(f(torch.autograd.forward_ad.make_dual(x, v))).tangent


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("along", [lambda f, x, v: torch.func.jvp(f, (x,), (v,))[1], dual], ids=["func", "dual"])
def test_a_compiled_jvp_is_right_or_refused(c, along, fullgraph):
    f, wanted = c.energy.torch, torch.func.jvp(energy, (X,), (V,))[1]
    compile = lambda f: torch.compile(f, backend="aot_eager", fullgraph=fullgraph)
    inner = compile(lambda x: f(x) * 1)
    for call in (compile(lambda x, v: along(f, x, v)), lambda x, v: along(inner, x, v)):
        torch._dynamo.reset()
        near(inner(X), energy(X))
        try:
            found = call(X, V)
        except torch._dynamo.exc.Unsupported:
            assert fullgraph
        else:
            near(found, wanted)


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.hessian, lambda f: lambda x: torch.func.vmap(f)(x[None])])
def test_compiled_transforms_are_right_or_refused(c, transform, fullgraph):
    torch._dynamo.reset()
    f, wanted = c.energy.torch, transform(energy)(X)
    try:
        found = torch.compile(lambda x: transform(f)(x), backend="aot_eager", fullgraph=fullgraph)(X)
    except torch._dynamo.exc.Unsupported:
        assert fullgraph
    else:
        near(found, wanted)


def test_torch_func(c):
    f, func = c.energy.torch, torch.func
    for call in (
        lambda f: func.grad(f)(X),
        lambda f: func.grad_and_value(f)(X),
        lambda f: func.vjp(f, X)[1](torch.tensor(2.0, dtype=torch.float64)),
        lambda f: func.jacrev(f)(X),
        lambda f: func.jacfwd(f)(X),
        lambda f: func.hessian(f)(X),
        lambda f: func.jacrev(func.grad(f))(X),
        lambda f: func.jacfwd(func.jacfwd(f))(X),
        lambda f: func.jacrev(func.jacfwd(f))(X),
        lambda f: func.jvp(func.grad(f), (X,), (V,))[1],
        lambda f: func.linearize(f, X)[1](V),
        lambda f: func.vmap(f)(XS),
        lambda f: func.vmap(func.vmap(f))(torch.stack([XS, 2 * XS])),
        lambda f: func.vmap(func.grad(f))(XS),
        lambda f: func.vmap(func.hessian(f))(XS),
        lambda f: func.grad(lambda x: func.vmap(f)(x).sum())(XS),
        lambda f: torch.autograd.functional.hessian(f, X),
        lambda f: torch.autograd.functional.hvp(f, X, V),
        lambda f: torch.autograd.functional.jvp(f, X, V),
    ):
        near(call(f), call(energy))


def test_torch_func_of_several_arguments_and_outputs(c):
    func, a = torch.func, torch.tensor(0.7, dtype=torch.float64)
    args = (X, V, a)
    for call in (
        lambda f: func.jacrev(f, argnums=(0, 1, 2))(*args),
        lambda f: func.jacfwd(f, argnums=(0, 1, 2))(*args),
        lambda f: func.jacfwd(func.jacrev(f, argnums=(0, 1, 2)), argnums=(0, 1, 2))(*args),
        lambda f: func.jacfwd(func.jacfwd(f, argnums=(0, 2)), argnums=(0, 2))(*args),
        lambda f: func.jacrev(func.jacfwd(f))(*args),
        lambda f: func.vmap(f, in_dims=(0, None, None))(XS, V, a),
        lambda f: func.vmap(f, in_dims=(1, 0, None), out_dims=1)(XS, XS, a),
        lambda f: func.vmap(f, in_dims=(None, None, 0))(X, V, X),
        lambda f: func.jvp(f, args, (V, torch.zeros_like(V), a)),
    ):
        near(call(c.waves.torch), call(waves))
    near(func.jacrev(lambda x: c.both.torch(x)[1:])(X), func.jacrev(both)(X))
    near(func.jacrev(c.wavy.torch, argnums=1)(a, a), torch.sin(a))


def test_integer_outputs_have_no_derivative(c):
    count, cubes, _ = c.both.torch(X.clone().requires_grad_())
    assert int(count) == 3 and count.dtype == torch.int32 and not count.requires_grad and cubes.requires_grad


def test_opcheck(c):
    a = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    x, v = X.clone().requires_grad_(), V.clone().requires_grad_()
    for f, point, cotangents, tangents in (
        (c.energy.torch, (x,), (torch.tensor(2.0, dtype=torch.float64, requires_grad=True),), (v,)),
        (c.waves.torch, (x, v, a), (x,), (v, x, a)),
    ):
        torch.library.opcheck(f.operators["value"], point)
        torch.library.opcheck(f.operators["vjp"], (*point, *cotangents))
        torch.library.opcheck(f.operators["jvp"], (*point, *tangents))
        fixed = [t.detach() for t in point]
        torch.library.opcheck(f.operators["second"], (*fixed, *cotangents, *tangents))
        torch.library.opcheck(f.operators["twice"], (*fixed, *tangents, *tangents))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_functions(c, backend):
    several, weighted = c.waves.torch, c.weighted.torch
    for f, same in ((c.energy.torch, energy), (lambda x: several(x, V, 0.5).sum(), lambda x: waves(x, V, 0.5).sum()),
                    (lambda x: weighted(x, 2.0, 3), lambda x: 2.0 * (x**3).sum())):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: f(x * 2) + x.sum(), fullgraph=True, backend=backend)
        for start in (X, torch.linspace(0, 1, 7, dtype=torch.float64), torch.linspace(0, 1, 9, dtype=torch.float64)):
            if f is not c.energy.torch and start is not X:
                continue
            x, y = start.clone().requires_grad_(), start.clone().requires_grad_()
            found, wanted = compiled(x), same(y * 2) + y.sum()
            near(found, wanted)
            near(torch.autograd.grad(found, x), torch.autograd.grad(wanted, y))


def test_single_precision(c):
    a, b = (t.float().requires_grad_() for t in (X, V))
    value = c.single.torch(a, b)
    assert value.dtype == torch.float32
    of_a, of_b = torch.autograd.grad(value, (a, b))
    torch.testing.assert_close(of_a, b.detach() ** 2)
    torch.testing.assert_close(of_b, 2 * (a * b).detach())
    torch.testing.assert_close(torch.func.hessian(c.single.torch, argnums=1)(a, b), torch.diag(2 * a.detach()))


def test_memory_layouts(c):
    base = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)
    for x in (base[:, 1], base.t()[1], base[0].flip(0), torch.ones((), dtype=torch.float64).expand(4)):
        near(c.energy.torch(x), energy(x))
        near(torch.func.grad(c.energy.torch)(x), torch.func.grad(energy)(x))
    near(c.matrix.torch(base.t(), base[:, 0]), (base.t() * base[:, 0] ** 2).sum())
    imaginary = torch.complex(X, 2 * X).conj().imag
    assert imaginary.is_neg()
    near(c.energy.torch(imaginary), energy(-2 * X))


def test_arguments_stay_unchanged(c):
    x = X.clone().requires_grad_()
    y = c.advance.torch(x, 0.1)
    near(x, X)
    assert y.data_ptr() != x.data_ptr()
    w = V.clone()
    y.backward(w)
    near(w, V)
    near(x.grad, V * (1 + 0.1 * torch.cos(X)))


def test_empty_tensors(c):
    x = torch.zeros(0, dtype=torch.float64, requires_grad=True)
    value = c.energy.torch(x)
    assert float(value) == 0 and torch.autograd.grad(value, x)[0].shape == (0,)
    assert torch.func.vmap(torch.func.grad(c.energy.torch))(torch.zeros(0, 5, dtype=torch.float64)).shape == (0, 5)
    assert torch.func.vmap(lambda x: c.waves.torch(x, V, 1.0))(torch.zeros(0, 3, dtype=torch.float64)).shape == (0, 3)


def test_tensors_without_gradient(c):
    assert not c.energy.torch(X).requires_grad
    with torch.no_grad():
        assert not c.energy.torch(X.clone().requires_grad_()).requires_grad
    v = V.clone().requires_grad_()
    near(torch.autograd.grad(c.waves.torch(X, v, 1.0).sum(), v), (torch.sin(X).flip(0),))


def test_integers(c):
    p = torch.tensor([2, 1, 0], dtype=torch.int32)
    same = lambda x: (x[p.long()] * x * x).sum()
    near(torch.func.grad(c.gather.torch)(X, p), torch.func.grad(same)(X))
    ps = torch.stack([p, p.flip(0)])
    near(torch.func.vmap(c.gather.torch, in_dims=(None, 0))(X, ps)[0], same(X))
    with pytest.raises(TypeError, match="int64, but the function takes torch.int32"):
        c.gather.torch(X, p.long())


def test_a_chosen_argument(c):
    f = c.weighted.wrt("x").torch
    a = torch.tensor(2.0, dtype=torch.float64)
    near(torch.func.grad(f)(X, a, 3), 6 * X**2)
    with pytest.raises(ValueError, match=r"`a` requires a derivative, but .* pass a.detach\(\)"):
        f(X, a.clone().requires_grad_(), 3)
    for call in (lambda: torch.func.grad(f, argnums=1)(X, a, 3), lambda: torch.func.jvp(lambda a: f(X, a, 3), (a,), (a,))):
        with pytest.raises((RuntimeError, ValueError), match="`a` requires a derivative"):
            call()


def test_threads(c):
    def work(k):
        x = torch.linspace(0, k, 5000, dtype=torch.float64, requires_grad=True)
        first, = torch.autograd.grad(c.energy.torch(x), x, create_graph=True)
        return first, torch.autograd.grad((first * first).sum(), x)[0], torch.func.grad(energy)(x)

    with ThreadPoolExecutor(4) as pool:
        for first, second, wanted in pool.map(work, range(1, 25)):
            near(first, wanted)
            assert bool(second.isfinite().all()) and bool(second.abs().max() > 0)


def test_refused_second_derivatives(c):
    a = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    slope, = torch.autograd.grad(c.wavy.torch(a, 2.0), a, create_graph=True)
    near(slope, 2 * torch.cos(a))
    with pytest.raises(gradus.SignatureError, match="several numbers by value"):
        slope.backward()
    near(torch.autograd.functional.hessian(lambda a: c.wavy.wrt("a").torch(a, 2.0), a), -2 * torch.sin(a.detach()))


def test_third_derivatives_are_refused(c):
    x = X.clone().requires_grad_()
    first, = torch.autograd.grad(c.energy.torch(x), x, create_graph=True)
    second, = torch.autograd.grad((first * V).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="third derivatives are not supported"):
        second.sum().backward()
    with pytest.raises(RuntimeError, match="third derivatives are not supported"):
        torch.func.jacfwd(torch.func.hessian(c.energy.torch))(X)


@pytest.mark.parametrize("call, kind, said", [
    (lambda f: f.energy.torch(X.float()), TypeError, r"torch.float32, but the function takes torch.float64; pass x.to\("),
    (lambda f: f.energy.torch(X.long()), TypeError, "torch.int64, but"),
    (lambda f: f.energy.torch(X.to(torch.complex128)), TypeError, "torch.complex128, but"),
    (lambda f: f.energy.torch(X.to("meta")), TypeError, r"on the device meta, but the function runs on the CPU; pass x.cpu\("),
    (lambda f: f.energy.torch(X.to_sparse()), TypeError, r"layout torch.sparse_coo; pass x.to_dense"),
    (lambda f: f.energy.torch(XS), ValueError, "`x` has 2 dimensions, 1 are expected"),
    (lambda f: f.energy.torch(X[0]), ValueError, "`x` has 0 dimensions, 1 are expected"),
    (lambda f: f.energy.torch(X.numpy()), TypeError, "not a tensor but a ndarray; pass torch.as_tensor"),
    (lambda f: f.energy.torch([1.0]), TypeError, "not a tensor but a list"),
    (lambda f: f.energy.torch(), TypeError, r"0 of 1 arguments are given; call energy.torch\(x\)"),
    (lambda f: f.weighted.torch(X, 2.0, 3.5), TypeError, "`power` is not an integer but a float; pass a Python int"),
    (lambda f: f.weighted.torch(X, 2.0, torch.tensor(3)), TypeError, "`power` is not an integer but a Tensor"),
    (lambda f: f.weighted.torch(X, 2.0, 2**40), OverflowError, "`power` of type int32"),
    (lambda f: f.weighted.torch(X, "a", 3), TypeError, "`a` is not a tensor but a str"),
    (lambda f: f.weighted.torch(X, X, 3), ValueError, "`a` has 1 dimensions, 0 are expected"),
    (lambda f: f.waves.torch(X, V[:2], 1.0), ValueError, "`y` has length 2 in dimension 0, but the function expects 3"),
])
def test_wrong_arguments(c, call, kind, said):
    with pytest.raises(kind, match=said):
        call(c)


def test_training_through_a_module(c):
    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.start = torch.nn.Parameter(torch.tensor([3.0, -2.0, 0.5], dtype=torch.float64))

        def forward(self):
            return c.energy.torch(self.start)

    layer = Layer()
    optimizer = torch.optim.LBFGS(layer.parameters(), line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = layer()
        loss.backward()
        return loss

    for _ in range(5):
        optimizer.step(closure)
    assert float(layer()) == pytest.approx(2, abs=1e-9)
    np.testing.assert_allclose(np.ptp(layer.start.detach().numpy()), 0, atol=1e-4)

"""Errors and forms of calls: every wrong argument is an exception that names the argument."""

import json

import numpy as np
import pytest

import gradus

X = np.array([1.0, 4.0, 8.0])


def read_only():
    y = np.zeros(3)
    y.flags.writeable = False
    return y


def unaligned():
    return np.frombuffer(b"\0" * 25, dtype="u1")[1:].view("f8")


CALLS = [
    (lambda c: c.energy(X.astype("f4")), TypeError, 'float32, but the function takes float64; pass x.astype\\("float64"\\)'),
    (lambda c: c.energy(X.astype(">f8")), TypeError, ">f8"),
    (lambda c: c.energy(np.arange(3)), TypeError, "int64"),
    (lambda c: c.energy(X.astype(complex)), TypeError, "complex128"),
    (lambda c: c.energy([1.0, 2.0]), TypeError, 'not an array but a list; pass numpy.asarray'),
    (lambda c: c.energy(None), TypeError, "NoneType"),
    (lambda c: c.energy(np.ones(6)[::2]), ValueError, "not contiguous; pass numpy.ascontiguousarray"),
    (lambda c: c.energy(X[::-1]), ValueError, "not contiguous"),
    (lambda c: c.energy(np.ones((2, 2))), ValueError, "2 dimensions, 1 are expected"),
    (lambda c: c.energy(unaligned()), ValueError, "not aligned"),
    (lambda c: c.energy(), TypeError, r"0 of 1 arguments are given; call energy\(x\)"),
    (lambda c: c.energy(X, X), TypeError, "2 of 1 arguments"),
    (lambda c: c.energy(X, x=X), TypeError, "given twice"),
    (lambda c: c.energy(X, m=3), TypeError, "no argument is named `m`"),
    (lambda c: c.energy(X, n=4), ValueError, r"has length 3 in dimension 0, but the function expects 4 \(from n; f.signature"),
    (lambda c: c.energy(X, n=2.5), TypeError, "`n` is not an integer"),
    (lambda c: c.energy(X, n=2**31), OverflowError, "does not fit into `n` of type int32"),
    (lambda c: c.weighted(X, "a", 2), TypeError, "`a` is not a number"),
    (lambda c: c.weighted(X, 1.0, 2.0), TypeError, "`power` is not an integer"),
    (lambda c: c.weighted(X, 1.0, 2**40), OverflowError, "`power` of type int32"),
    (lambda c: c.weighted(X, 1.0, 2**70), TypeError, "`power` is not an integer of 64 bits"),
    (lambda c: c.energy.jvp(X, np.ones(2)), ValueError, "`v` has"),
    (lambda c: c.energy.jvp(X), TypeError, "1 of 2 arguments"),
    (lambda c: c.squares(X, read_only(), 1.0), ValueError, "`y` is read-only, but the function writes"),
    (lambda c: c.squares(X, np.zeros(2), 1.0), ValueError, "`y` has length 2"),
    (lambda c: c.energy.grad(X, out=X), ValueError, "`out` shares memory"),
    (lambda c: c.energy.grad(X, out=np.zeros(4)), ValueError, "`out` has shape"),
    (lambda c: c.energy.grad(X, out=np.zeros(3, "f4")), TypeError, "`out` has elements of type float32"),
    (lambda c: c.energy.grad(X, out=read_only()), ValueError, "`out` is read-only"),
    (lambda c: c.energy.grad(X, out=[0, 0, 0]), TypeError, "`out` is not a NumPy array"),
    (lambda c: c.weighted.grad(X, 1.0, 2, out=(X, X)), TypeError, "`out` has 2 arrays, but the call has 1"),
    (lambda c: c.energy(X, out=X), TypeError, "the call has 0 output arrays"),
    (lambda c: c.matrix(np.ones((2, 2)), X), ValueError, "`x` has length 3"),
    (lambda c: c.gather(X, np.arange(3)), TypeError, "int64, but the function takes int32"),
    (lambda c: c.squares.grad(X, X, 1.0), gradus.SignatureError, "returns no float"),
    (lambda c: c.weighted.hess(X, 1.0, 2), gradus.SignatureError, "choose one with f.wrt"),
    (lambda c: c.wavy.hvp, gradus.SignatureError, "several numbers by value"),
]


@pytest.mark.parametrize("call, kind, said", CALLS)
def test_wrong_arguments(c, call, kind, said):
    with pytest.raises(kind, match=said):
        call(c)


def test_unknown_lengths_are_refused():
    program = gradus.from_source("double product(const double *x) { return x[0] * x[1]; }"
                                 "double both(const double *x, int n, int m) { return x[0] * n * m; }"
                                 "double steps(const double *x, int steps) { return x[0] * steps; }")
    for function in (program.product, program.both.signature("x: [n]"), program.steps):
        assert isinstance(function, gradus.Function) is (function is not program.product and function is not program.steps)
    with pytest.raises(gradus.SignatureError, match=r'f = f.signature\("x: \[n\]"\)'):
        program.product(X)
    with pytest.raises(gradus.SignatureError, match="length of x is unknown"):
        program.product.grad
    assert program.product.signature("x: [3]")(X) == 4.0
    assert program.steps.signature("x: [1]")(X[:1], 3) == 3.0


@pytest.mark.parametrize("text, said", [
    ("x: [k]", "the length `k` is not understood"),
    ("y: [n]", "has no argument `y`; the arguments are x, n"),
    ("x [n]", "is not understood"),
    ("x: f4[n]", "`x` is f8 in the source"),
    ("x: out[n]", "not written by the function"),
    ("x: [n/2]", "the length `n/2` is not understood"),
    ("n: [3]", "`n` is a number, not an array"),
])
def test_wrong_signatures(c, text, said):
    with pytest.raises(gradus.SignatureError, match=said):
        c.energy.signature(text)


def test_lengths_may_be_computed(c):
    f = c.matrix.signature("A: [rows * cols], x: [cols]")
    assert f(np.ones(6), X, 2) == 2 * np.sum(X**2)
    with pytest.raises(ValueError, match="expects 6"):
        f(np.ones(5), X, 2)


def test_the_form_is_shown(c):
    assert repr(c.energy) == "<gradus function energy(x: in f8[n], n: length) -> f8>"
    assert c.squares.signature() == "squares(x: in f8[n], y: inout f8[n], a: in f8, n: length)"


def test_the_report_is_the_document_of_the_compiler(c, tmp_path):
    report = c.energy.report()
    modes = {derivative["mode"] for derivative in report["derivatives"]}
    assert report["format"] == "gradus-report" and modes == {"vjp", "jvp"}
    reverse = next(d for d in report["derivatives"] if d["mode"] == "vjp")
    assert reverse["function"] == "energy" and reverse["tape"]["bytes"] == 0
    assert "energy" in str(report) and "tape: 0 bytes" in str(report)
    page = report.html(tmp_path / "energy.html").read_text(encoding="utf-8")
    start, end = page.index('id="gradus-report">') + len('id="gradus-report">'), page.rindex("</script>")
    assert json.loads(page[start:end]) == report


class Foreign:
    """An array of another library, known by DLPack only."""

    __module__ = "numpy.foreign"

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **words):
        return self.array.__dlpack__(**words)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack_without_copies(c):
    y = np.zeros(3)
    c.squares(Foreign(X.copy()), Foreign(y), 2.0)
    np.testing.assert_array_equal(y, 2 * X**2)
    assert isinstance(c.energy.grad(Foreign(X.copy())), np.ndarray)


def test_fuzzed_calls_never_end_the_interpreter(c):
    random = np.random.default_rng(5)
    pool = [X, X[::2], X.astype("f4"), 1, 2.5, None, "x", [], (), 2**80, -1, np.float64(2), np.ones((2, 3)), np.ones(0),
            np.array(3.0), X.astype(object), np.array(["a"]), b"xx", {}, c, float("nan"), True, np.int32(4), range(3)]
    functions = [c.energy, c.energy.grad, c.energy.jvp, c.weighted.vjp, c.squares, c.squares.jvp, c.matrix.grad, c.wavy]
    errors = 0
    for _ in range(3000):
        function = functions[random.integers(len(functions))]
        args = [pool[random.integers(len(pool))] for _ in range(random.integers(5))]
        try:
            function(*args, **({"out": pool[random.integers(len(pool))]} if random.random() < 0.2 else {}))
        except (TypeError, ValueError, OverflowError):
            errors += 1
    assert 1000 < errors < 3000

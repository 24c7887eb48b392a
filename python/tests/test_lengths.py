"""Guessed lengths are tested in a child process at the first call."""

import subprocess

import numpy as np
import pytest

import gradus

SPRING = """
double spring(const double *x, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i] + x[n + i] * x[n + i];
    return s;
}
void beyond(double *x, int n) { x[n] = 1; }
double head(const double *x, int n) { return n > 0 ? x[0] * x[n - 1] : 0; }
"""


@pytest.fixture
def children(monkeypatch):
    """Counts child processes of the interpreter."""
    made, run = [], subprocess.run
    count = lambda words, **more: made.append(words) or run(words, **more)
    monkeypatch.setattr("gradus._probe.subprocess.run", count)
    return made


def test_reads_beyond_a_guessed_length_are_refused():
    f = gradus.from_source(SPRING).spring
    x = np.arange(4.0)
    for call in (f, f.grad, f.value_and_grad):
        with pytest.raises(gradus.SignatureError, match=r"lengths are x: \[n\], which is a guess"):
            call(x)
    with pytest.raises(gradus.SignatureError):
        f.hvp(x, x)
    f = f.signature("x: [2*n]")
    np.testing.assert_array_equal(f.grad(x, 2), 2 * x)
    assert f.check(x, 2).is_right


def test_writes_beyond_a_guessed_length_are_refused():
    f = gradus.from_source(SPRING).beyond
    with pytest.raises(gradus.SignatureError, match="which is a guess"):
        f(np.ones(3))


def test_a_right_guess_is_tested_once(children):
    source = SPRING + "/* once */"
    f = gradus.from_source(source).head
    for _ in range(3):
        assert f(np.array([3.0, 5.0])) == 15
    np.testing.assert_array_equal(f.grad(np.array([3.0, 5.0])), [5, 3])
    assert gradus.from_source(source).head.jvp(np.ones(2), np.ones(2)) == 2
    assert len([words for words in children if "_probe" in str(words)]) == 1


def test_the_first_call_changes_arrays_once():
    f = gradus.from_source("void advance(double *x, int n) { for (int i = 0; i < n; i++) x[i] += 1; }").advance
    x = np.zeros(1000)
    f(x)
    np.testing.assert_array_equal(x, np.ones(1000))


def test_wrong_arguments_are_refused_by_the_call():
    f = gradus.from_source(SPRING + "/* wrong */").head
    with pytest.raises(TypeError, match="not an array but a list"):
        f([1.0])
    assert f(x=np.ones(2)) == 1

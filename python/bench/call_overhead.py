"""Measures the time of one call on 10 numbers, next to NumPy's calls in the same run. The least of several runs counts."""

from timeit import repeat

import numpy as np

import gradus

SOURCE = "double f(const double *x, int n) { double s = 0; for (int i = 0; i < n; i++) s += x[i] * x[i]; return s; }"


def main() -> None:
    """Prints a table: nanoseconds per call."""
    f = gradus.from_source(SOURCE).f
    x, out = np.ones(10), np.zeros(10)
    rows = {
        "f(x)": lambda: f(x),
        "f.grad(x)": lambda: f.grad(x),
        "f.grad(x, out=out)": lambda: f.grad(x, out=out),
        "f.value_and_grad(x)": lambda: f.value_and_grad(x),
        "np.dot(x, x)": lambda: np.dot(x, x),
        "np.sqrt(x)": lambda: np.sqrt(x),
        "np.zeros(10)": lambda: np.zeros(10),
        "nothing": lambda: None,
    }
    count = 20_000
    times = {name: min(repeat(call, number=count, repeat=25)) / count * 1e9 for name, call in rows.items()}
    base = times["nothing"]
    for name, nanoseconds in times.items():
        print(f"{name:<22}{nanoseconds - base:8.0f} ns")


if __name__ == "__main__":
    main()

"""Fits the parameters of an ODE in C to noisy data: the Jacobian comes from the C code."""

from pathlib import Path

import numpy as np

import gradus

STEPS, H = 20, 0.01
SIGNATURE = "p: [4], data: [n], r: out[n]"


def main() -> None:
    """Prints the parameters that made the data, and those found."""
    source = Path(__file__).with_name("oscillator.c")
    residual = gradus.load(source, signatures={"residual": SIGNATURE}).residual.wrt("p")
    true = np.array([4.0, 0.3, 1.0, 0.0])
    data = residual(true, np.zeros(60), STEPS, H)
    data += 0.01 * np.random.default_rng(1).normal(size=data.size)
    start = np.array([3.0, 0.1, 0.5, 0.5])
    print(residual.check(start, data, STEPS, H))
    found = residual.scipy.least_squares(start, args=(data, STEPS, H))
    print("true ", true)
    print("found", found.x.round(3), "in", found.njev, "Jacobians")
    assert np.allclose(found.x, true, atol=0.02)


if __name__ == "__main__":
    main()

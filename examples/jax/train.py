"""Trains parameters in JAX through a model in Fortran: `jit` and `grad` of a loss that calls the compiled function."""

from pathlib import Path

import jax
import numpy as np

import gradus

jax.config.update("jax_enable_x64", True)
STEPS, H = 10, 0.05


def population(p: np.ndarray, n: int) -> np.ndarray:
    """Returns the data of the model at the parameters `p`."""
    u, found = p[2], []
    for _ in range(n):
        for _ in range(STEPS):
            u += H * p[0] * u * (1 - u / p[1])
        found.append(u)
    return np.array(found)


def main() -> None:
    """Prints the parameters that made the data, and those that gradient descent finds."""
    misfit = gradus.load(Path(__file__).with_name("growth.f90")).misfit.wrt("p")
    true = np.array([0.8, 2.0, 0.1])
    data = population(true, 20)
    print(misfit.check(np.array([1.0, 1.5, 0.2]), data, STEPS, H))

    def loss(logarithms):
        # The parameters are positive.
        return misfit.jax(jax.numpy.exp(logarithms), data, STEPS, H)

    step = jax.jit(jax.value_and_grad(loss))
    at, moment, square = jax.numpy.log(jax.numpy.array([1.0, 1.5, 0.2])), 0.0, 0.0
    for i in range(1, 2001):
        value, gradient = step(at)
        moment, square = 0.9 * moment + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        at -= 0.02 * (moment / (1 - 0.9**i)) / (jax.numpy.sqrt(square / (1 - 0.99**i)) + 1e-12)
    print("true ", true)
    print("found", np.exp(at).round(3), "loss", float(value))
    assert np.allclose(np.exp(at), true, rtol=1e-2)


if __name__ == "__main__":
    main()

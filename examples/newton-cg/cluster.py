"""Minimises the energy of a cluster of atoms by Newton-CG: gradients and Hessian-vector products of C code."""

from pathlib import Path

import numpy as np

import gradus

ATOMS = 13
# The lowest energy of 13 atoms: an icosahedron (Hoare and Pal, 1971).
LOWEST = -44.326801


def icosahedron() -> np.ndarray:
    """Returns the coordinates of an icosahedron with its centre."""
    golden = (1 + 5**0.5) / 2
    corners = [(0, a, b * golden) for a in (-1, 1) for b in (-1, 1)]
    shell = [np.roll(corner, shift) for corner in corners for shift in range(3)]
    return np.array([np.zeros(3), *shell]) * 0.55


def main() -> None:
    """Starts from a disturbed icosahedron, and prints the energy found."""
    source = Path(__file__).with_name("cluster.c")
    energy = gradus.load(source, signatures={"energy": "x: [3*n]"}).energy
    start = (icosahedron() + 0.05 * np.random.default_rng(1).normal(size=(ATOMS, 3))).ravel()
    print(energy.check(start, ATOMS))
    found = energy.scipy.minimize(start, args=(ATOMS,), method="Newton-CG", options={"xtol": 1e-10})
    print(f"energy {found.fun:.6f} in {found.nit} steps, {found.nhev} Hessian products")
    assert abs(found.fun - LOWEST) < 1e-5


if __name__ == "__main__":
    main()

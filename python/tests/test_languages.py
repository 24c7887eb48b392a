"""Rust, CUDA and OpenMP programs."""

import shutil

import numpy as np
import pytest

import gradus

X = np.array([1.0, 4.0, 8.0])

RUST = """
#[unsafe(no_mangle)]
pub extern "C" fn energy(x: *const f64, n: usize) -> f64 {
    let x = unsafe { std::slice::from_raw_parts(x, n) };
    x.windows(2).map(|w| (1.0 + (w[1] - w[0]).powi(2)).sqrt()).sum()
}
"""

CUDA = """
__global__ void cube(const double *x, double *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i] * x[i];
}
extern "C" double total(const double *x, int n) {
    double *dx, *dy, *y = new double[n], s = 0;
    cudaMalloc(&dx, n * 8);
    cudaMalloc(&dy, n * 8);
    cudaMemcpy(dx, x, n * 8, cudaMemcpyHostToDevice);
    cube<<<(n + 63) / 64, 64>>>(dx, dy, n);
    cudaMemcpy(y, dy, n * 8, cudaMemcpyDeviceToHost);
    for (int i = 0; i < n; i++) s += y[i];
    delete[] y;
    cudaFree(dx);
    cudaFree(dy);
    return s;
}
"""

OPENMP = """
double squares(const double *x, int n) {
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    return s;
}
"""


@pytest.mark.skipif(shutil.which("rustc") is None, reason="rustc compiles the source")
def test_rust(c):
    f = gradus.from_source(RUST, "rust").energy
    np.testing.assert_allclose(f.grad(X), c.energy.grad(X), rtol=1e-14)
    assert f.check(X).is_right


def test_cuda():
    f = gradus.from_source(CUDA, "cuda").total
    np.testing.assert_allclose(f.grad(X), 3 * X**2)
    assert f.check(X).is_right


def test_openmp():
    f = gradus.from_source(OPENMP, flags=["-fopenmp"]).squares
    x = np.random.default_rng(3).normal(size=100_000)
    np.testing.assert_allclose(f.grad(x), 2 * x)
    assert f.check(x).is_right

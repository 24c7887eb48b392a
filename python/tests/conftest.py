"""Fixtures of the tests: an own cache for the session."""

import os

import pytest

import gradus


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """Keeps the tests' results apart from the user's cache."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def c():
    """Functions in C."""
    return gradus.from_source(PROGRAM, signatures={"matrix": "A: [rows, cols], x: [cols]", "product": "x: [3]"})


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
void squares(const double *x, double *y, double a, int n) {
    for (int i = 0; i < n; i++) y[i] = a * x[i] * x[i];
}
void advance(double *x, int n, double h) {
    for (int i = 0; i < n; i++) x[i] += h * sin(x[i]);
}
float single(const float *a, const float *b, unsigned n) {
    float s = 0;
    for (unsigned i = 0; i < n; i++) s += a[i] * b[i] * b[i];
    return s;
}
double matrix(const double *A, const double *x, int rows, int cols) {
    double s = 0;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) s += A[i * cols + j] * x[j] * x[j];
    return s;
}
double product(const double *x) { return x[0] * x[1] * x[2]; }
double gather(const double *x, const int *p, int n) {
    double s = 0;
    for (int i = 0; i < n; i++) s += x[p[i]] * x[i];
    return s;
}
double wavy(double a, double b) { return sin(a) * b; }
long whole(const double *x, long n) { return n; }
"""

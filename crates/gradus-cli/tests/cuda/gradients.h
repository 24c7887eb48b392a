/* Derivatives compared: reverse mode with the gradient of a plain version of the function, with forward mode, and with
   differences. */
#pragma once
#include "check.h"
#include <gradus.h>

constexpr int N = 300, B = 64;
typedef double (*function)(const double *x, int n);

static double sum(const double *y, int n)
{
    double all = 0;
    for (int i = 0; i < n; i++) all += y[i] * y[i];
    return all;
}

/* A copy on the device. */
static double *on_device(const double *x, int n)
{
    double *device;
    cudaMalloc(&device, n * sizeof(double));
    cudaMemcpy(device, x, n * sizeof(double), cudaMemcpyHostToDevice);
    return device;
}
/* What is on the device, which gives it up. */
static void take_back(double *y, double *device, int n)
{
    cudaMemcpy(y, device, n * sizeof(double), cudaMemcpyDeviceToHost);
    cudaFree(device);
}

template <function f> static void gradient(const double *x, double *adj, int n)
{
    for (int i = 0; i < n; i++) adj[i] = 0;
    gradus_vjp(f, gradus_dup, x, adj, gradus_const, n);
}
template <function f> static double slope(const double *x, const double *v, int n)
{
    return gradus_jvp_double(f, gradus_dup, x, v, gradus_const, n);
}

static inline void agree(double found, double expected, double within, const char *name)
{
    if (!(std::fabs(found - expected) <= within * (1 + std::fabs(expected)))) {
        printf("wrong: %s: %.9g instead of %.9g\n", name, found, expected);
        wrong++;
    }
}

/* `step` is that of the differences. */
template <function f, function plain>
static void compare(const char *name, double within = 1e-6, double step = 1e-6)
{
    std::vector<double> x(N), v(N), adj(N), beside(N), moved(N);
    for (int i = 0; i < N; i++) x[i] = 0.3 + 0.5 * cos(0.7 * i), v[i] = sin(1.3 * i);
    agree(f(x.data(), N), plain(x.data(), N), within, name);
    gradient<f>(x.data(), adj.data(), N);
    gradient<plain>(x.data(), beside.data(), N);
    double along = 0;
    for (int i = 0; i < N; i++) {
        agree(adj[i], beside[i], within, name);
        along += adj[i] * v[i];
    }
    agree(slope<f>(x.data(), v.data(), N), along, within, name);
    double ends[2];
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < N; i++) moved[i] = x[i] + (side ? step : -step) * v[i];
        ends[side] = f(moved.data(), N);
    }
    agree((ends[1] - ends[0]) / (2 * step), along, within, name);
    expect(along != 0, name);
}

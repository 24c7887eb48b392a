// The gradient of tasks that take vectors along by value.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <gradus.h>
#include <vector>
static double f(const double *x, double *y, int n) {
#pragma omp parallel
#pragma omp single
  for (int i = 0; i + 4 <= n; i += 4) {
    std::vector<double> v(x + i, x + i + 4);
#pragma omp task
    {
      double s = 0;
      for (double a : v) s += a * a;
      y[i] = std::sin(s) * v[0];
    }
  }
  double s = 0;
  for (int i = 0; i < n; i++) s += y[i] * (i + 1);
  return s;
}
int main() {
  const int n = 64;
  std::vector<double> x(n), y(n), to(n), dx(n), dy(n), dot(n), zero(n);
  for (int i = 0; i < n; i++) x[i] = 0.3 + 0.01 * i, to[i] = std::cos(i);
  gradus_vjp(f, gradus_dup, x.data(), dx.data(), gradus_dup, y.data(), dy.data(), n);
  double along = gradus_jvp_double(f, gradus_dup, x.data(), to.data(), gradus_dup, y.data(), dot.data(), n);
  double reverse = 0, h = 1e-5, ahead[2];
  for (int i = 0; i < n; i++) reverse += dx[i] * to[i];
  for (int side = 0; side < 2; side++) {
    for (int i = 0; i < n; i++) zero[i] = x[i] + (side ? -h : h) * to[i];
    ahead[side] = f(zero.data(), y.data(), n);
  }
  double difference = (ahead[0] - ahead[1]) / (2 * h);
  std::printf("%.9g %d %d\n", reverse, std::fabs(along - reverse) < 1e-10 * std::fabs(along),
              std::fabs(difference - reverse) < 1e-6 * std::fabs(reverse));
}

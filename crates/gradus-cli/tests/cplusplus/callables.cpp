// `std::function`: what it calls lies in it or behind it, holds numbers, references or a structure with memory of its
// own, and is copied.
#include "check.h"
#include <functional>
#include <vector>

using Right = std::function<std::vector<double>(double, const std::vector<double> &)>;

struct Oscillator {
  double stiff;
  int which;
  std::vector<double> damped;
  std::vector<double> operator()(double, const std::vector<double> &y) const {
    return {y[1], -stiff * stiff * y[0] - damped[which] * y[1]};
  }
};

static double integral(const std::function<double(double)> &of, double from, double to) {
  double sum = 0;
  for (int i = 0; i < 20; i++)
    sum += of(from + (to - from) * (i + 0.5) / 20);
  return sum * (to - from) / 20;
}

static std::vector<double> steps(Right right, std::vector<double> y, double step, int count) {
  for (int s = 0; s < count; s++) {
    std::vector<double> slope = right(0, y), middle(y.size());
    for (std::size_t i = 0; i < y.size(); i++)
      middle[i] = y[i] + step / 2 * slope[i];
    slope = right(step / 2, middle);
    for (std::size_t i = 0; i < y.size(); i++)
      y[i] += step * slope[i];
  }
  return y;
}

static double value(const double *x, int) {
  double a = x[0], b = x[1];
  double sum = integral([a](double t) { return t * t * a; }, x[2], x[3]);
  sum += integral([&](double t) { return std::sin(t * a) + b; }, 0, x[4]);
  sum += integral([=](double t) { return std::exp(-t * a) * b * x[5]; }, 0, x[4]);
  std::vector<double> end = steps(Oscillator{x[0], 1, {x[1], x[2]}}, {x[3], x[4]}, 0.01, 30);
  return sum + end[0] * end[1];
}

JUDGE(value)

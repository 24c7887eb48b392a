// Searches that fail, and throw what carries no derivative, beside a graph of objects that hold each other.
#include "check.h"
#include <cmath>
#include <memory>
#include <vector>

struct Failed {
  int step;
  long tries;
};
struct Node {
  double w;
  std::vector<std::shared_ptr<Node>> kids;
  double at(double x) const {
    double s = w * x;
    for (auto &kid : kids) s += std::tanh(kid->at(x + w));
    return s;
  }
};
static double search(const std::vector<double> &x, double from, int step) {
  for (int k = 0;; k++) {
    double a = from / (k + 1);
    if (a * x[0] < 0.4) return a;
    if (step % 2 && k > step) throw Failed{step, k};
    if (k > 4) throw k;
  }
}
static double objective(const double *x, int n) {
  std::vector<double> y(x, x + n);
  double s = 0;
  int failed = 0;
  for (int step = 0; step < 5; step++) {
    try {
      s += search(y, y[step % n] + step, step) * y[1];
    } catch (const Failed &what) {
      failed += what.step + 1;
    } catch (int k) {
      failed += 100 * k;
    }
  }
  auto root = std::make_shared<Node>();
  root->w = x[0];
  for (int i = 1; i < n; i++) {
    auto kid = std::make_shared<Node>();
    kid->w = x[i];
    root->kids.push_back(kid);
  }
  return s + failed * y[2] + root->at(y[0]);
}

JUDGE(objective)

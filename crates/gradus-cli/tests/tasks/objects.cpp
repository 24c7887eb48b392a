// Tasks that take objects along by value, counted: each copy is destroyed behind its task, whoever runs that and when.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>
static std::atomic<long> live{0}, copies{0};
struct Counted {
  double at;
  explicit Counted(double at) : at(at) { live++; }
  Counted(const Counted &o) : at(o.at) {
    live++;
    copies++;
  }
  ~Counted() { live--; }
};
struct Ended {
  int at;
  ~Ended() { live -= at; }
};
struct Two {
  std::vector<double> v;
  Counted c;
  Two(int n, double x) : v(n, x), c(x) {}
};
static double sum(const std::vector<double> &v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}
static double tree(std::vector<double> v) {
  if (v.size() < 2) return sum(v);
  std::vector<double> left(v.begin(), v.begin() + v.size() / 2), right(v.begin() + v.size() / 2, v.end());
  double a = 0, b = 0;
#pragma omp task shared(a) if (v.size() > 8)
  a = tree(left);
#pragma omp task shared(b) firstprivate(right) final(v.size() < 6)
  b = tree(right);
#pragma omp taskwait
  return a + b;
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 64;
  std::vector<double> out(n), again(n), big(1000);
  double t = 0;
  for (int i = 0; i < 1000; i++) big[i] = i * 0.5;
  Ended ended{0};
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < n; i++) {
      std::vector<int> v(i, i);
      Counted c(i);
      std::string s(i % 40 + 1, 'a' + i % 26);
      auto p = std::make_shared<double>(i);
      Two two(i % 7, i);
#pragma omp task
      {
        double x = 0;
        for (int k : v) x += k;
        out[i] = x + c.at + s.size() + s[0] + *p + sum(two.v) + two.c.at;
      }
#pragma omp task firstprivate(c) if (i % 3 == 0)
      again[i] = c.at * 2;
      live += 5;
#pragma omp task firstprivate(ended)
      ended.at = 5;
    }
#pragma omp taskwait
    t = tree(big);
  }
  std::printf("%g %g %ld %d\n", sum(out) + sum(again), t, live.load(), copies.load() > 0);
}

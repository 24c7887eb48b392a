// The functions of gradus/parallel.h that take lambdas, and cilk_spawn before calls of any result.
#include <gradus/cilk.h>
#include <cstdio>
#include <string>
#include <vector>

static long tree(long n) {
  if (n < 2) return 1;
  long a = 0, b = 0;
  gr::join([&] { a = tree(n - 1); }, [&] { b = tree(n - 2); });
  return a + b + 1;
}

static std::string digits(int from, int to) {
  if (to - from == 1) return std::to_string(from % 10);
  std::string left, right;
  int middle = (from + to) / 2;
  left = cilk_spawn digits(from, middle);
  right = digits(middle, to);
  cilk_sync;
  return left + right;
}

int main() {
  std::printf("%ld\n", tree(18));
  std::vector<double> x(5000);
  gr::for_each(0L, (long)x.size(), [&](long i) { x[i] = 0.25 * (i % 17); });
  std::printf("%.15g\n", gr::sum(0, 5000, 1.5, [&](int i) { return x[i] * 2; }));
  std::printf("%s\n", digits(0, 100).c_str());
}

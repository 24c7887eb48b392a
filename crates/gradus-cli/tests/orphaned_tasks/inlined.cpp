// A region receives an object whose call operator shares a loop, through always-inlined functions.
#include <cstdio>
#define TAKEN inline __attribute__((always_inline))

template <class Body> TAKEN void share(int n, Body &&body) {
#pragma omp for nowait
  for (int i = 0; i < n; i++) body(i);
#pragma omp barrier
}
template <class Body> TAKEN void once(Body &&body) {
#pragma omp single
  body();
}
struct Sum {
  long *all, own = 0;
  explicit Sum(long *to) : all(to) {}
  Sum(const Sum &other) : all(other.all) {}
  ~Sum() {
#pragma omp critical(sums)
    *all += own;
  }
};
template <class Body> TAKEN void region(Body &&body) {
#pragma omp parallel
  {
    auto own = body;
    own();
  }
}
template <int N> struct Level {
  template <class Body> static TAKEN void run(Body &&body) { Level<N - 1>::run(body); }
};
template <> struct Level<0> {
  template <class Body> static TAKEN void run(Body &&body) { share(1000, body); }
};

int main() {
  long total = 0, singles = 0, deep = 0;
  {
    Sum sum(&total);
    region([=]() mutable { share(1000, [&](int i) { sum.own += i; }); });
  }
  long *s = &singles, *d = &deep;
  region([=]() { once([=] { ++*s; }); });
  region([=]() { Level<3>::run([=](int) { __atomic_fetch_add(d, 1, __ATOMIC_RELAXED); }); });
  std::printf("%ld %ld %ld\n", total, singles, deep);
}

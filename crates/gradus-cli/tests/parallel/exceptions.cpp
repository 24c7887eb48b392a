// Exceptions that leave tasks and iterations: they arrive where the tasks are waited for, and not before
// these have ended. Prints the same serially.
#include <gradus/parallel.h>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

static std::atomic<long> at_work{0}, alive{0};

// What an exception carries: each must die once.
struct Found : std::runtime_error {
  long place;
  explicit Found(long place) : std::runtime_error("found"), place(place) { alive++; }
  Found(const Found &other) : std::runtime_error(other), place(other.place) { alive++; }
  ~Found() override { alive--; }
};

__attribute__((noinline)) static long leaf(long n, long sought, double *cells) {
  double x = n;
  at_work++;
  for (int k = 0; k < 2000; k++) x = x * 0.75 + 1;
  cells[n] += x;
  at_work--;
  if (n == sought) throw Found(n);
  return n * n;
}

// Tasks inside of tasks; `cells` is the caller's and goes when the exception passes there.
static long walk(long lo, long hi, long sought, double *cells) {
  if (hi - lo == 1) return leaf(lo, sought, cells);
  long x, y;
  gr_spawn x = walk(lo, (lo + hi) / 2, sought, cells);
  y = walk((lo + hi) / 2, hi, sought, cells);
  gr_sync();
  return x + y;
}

// The code between spawn and sync is what throws.
static long meanwhile(long sought, double *cells) {
  long x, y;
  gr_spawn x = walk(0, 16, -1, cells);
  y = leaf(20, sought, cells);
  gr_sync();
  return x + y;
}

static void loop(long n, long sought, double *cells) {
  gr_for (long i = 0; i < n; i++) leaf(i, sought, cells);
}

static long total(long n, long sought, double *cells) {
  long all = 0;
  gr_for (long i = 0; i < n; i++) all += leaf(i, sought, cells);
  return all;
}

// A loop inside of a task, and one after the other.
static long both(long sought, double *cells) {
  long x;
  gr_spawn x = total(40, sought, cells);
  loop(20, -1, cells + 40);
  gr_sync();
  return x;
}

// Handlers of its own.
static long tolerant(long sought, double *cells) {
  long x = 0, y = 0;
  try {
    gr_spawn x = walk(0, 32, sought, cells);
    y = walk(32, 64, sought, cells);
    gr_sync();
  } catch (const Found &found) {
    return -found.place;
  }
  return x + y;
}

// Handled in the function whose variables its tasks write.
static void put(long &to, long n, long sought, double *cells) { to = leaf(n, sought, cells); }
__attribute__((noinline)) static long handled(long sought, double *cells) {
  long s = 0, t = 0;
  try {
    gr_scope {
      gr_spawn put(s, 13, sought, cells);
      gr_spawn put(t, 20, -1, cells);
    }
  } catch (const Found &found) {
    s = found.place * 100;
    t = 0;
  }
  return s + t;
}

template <typename Work>
static void attempt(const char *name, Work work) {
  for (int again = 0; again < 20; again++) {
    std::string said;
    {
      std::unique_ptr<double[]> cells(new double[128]());
      try {
        said = std::to_string(work(cells.get()));
      } catch (const Found &found) {
        said = "found " + std::to_string(found.place);
      }
    }
    said += at_work ? ", at work" : "";
    said += alive ? ", alive" : "";
    said += std::uncaught_exceptions() ? ", in flight" : "";
    if (again == 0 || said.find(',') != std::string::npos) printf("%s: %s\n", name, said.c_str());
  }
}

int main() {
  for (long sought : {-1L, 0L, 13L, 31L}) {
    attempt("walk", [=](double *cells) { return walk(0, 32, sought, cells); });
    attempt("loop", [=](double *cells) { return loop(32, sought, cells), 0L; });
    attempt("total", [=](double *cells) { return total(32, sought, cells); });
    attempt("handled", [=](double *cells) { return handled(sought, cells); });
    attempt("both", [=](double *cells) { return both(sought, cells); });
    attempt("tolerant", [=](double *cells) { return tolerant(sought, cells); });
    attempt("join", [=](double *cells) {
      long x = 0, y = 0;
      gr::join([&] { x = walk(0, 8, sought, cells); }, [&] { y = walk(8, 32, sought, cells); });
      return x + y;
    });
    attempt("sum", [=](double *cells) {
      return gr::sum(0L, 32L, 0L, [=](long i) { return leaf(i, sought, cells); });
    });
  }
  for (long sought : {-1L, 20L}) attempt("meanwhile", [=](double *cells) { return meanwhile(sought, cells); });
}

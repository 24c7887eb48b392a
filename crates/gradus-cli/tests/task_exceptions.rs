//! OpenMP tasks in C++, with many calls that may throw. Calls that may throw do not prevent raising: an
//! exception must be caught in the throwing task, and an uncaught exception ends the program.

use crate::support::{accepts, folder, shell, succeeds, text, write};
use std::path::Path;
use std::process::{Command, Output};

const LEVELS: [&str; 3] = ["-O1", "-O2", "-O3"];

fn run(at: &Path, program: &str, workers: &str, forced: &str) -> Command {
    let mut command = Command::new(at.join(program));
    command.env("OMP_NUM_THREADS", workers);
    command.env("GRADUS_FORCE_FORK", forced);
    command
}

/// Tasks that call throwing functions, hold objects with destructors, and catch exceptions.
const TASKS: &str = r#"
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
struct Noted {
  long &ended;
  explicit Noted(long &ended) : ended(ended) {}
  ~Noted() { ended++; }
};
__attribute__((noinline)) static long leaf(const std::vector<long> &of, long at) {
  return of.at(at) * 2;
}
static long tree(const std::vector<long> &of, long lo, long hi) {
  if (hi - lo < 2) return leaf(of, lo);
  long left, right, mid = (lo + hi) / 2;
#pragma omp task shared(of, left)
  left = tree(of, lo, mid);
  right = tree(of, mid, hi);
#pragma omp taskwait
  return left + right;
}
template <typename T, typename Work> static void halves(T *x, long n, Work work) {
  if (n < 4) {
    std::vector<T> own(x, x + n);
    for (long i = 0; i < n; i++) x[i] = work(own.at(i));
    return;
  }
#pragma omp task
  halves(x, n / 2, work);
#pragma omp task
  halves(x + n / 2, n - n / 2, work);
#pragma omp taskwait
}
static long tolerant(const std::vector<long> &of, long n) {
  std::vector<long> got(n), ended(n);
  for (long i = 0; i < n; i++) {
#pragma omp task shared(of, got, ended)
    {
      Noted noted(ended[i]);
      std::string name(40, 'a' + i % 26);
      try {
        got[i] = leaf(of, i * 3) + long(name.size());
      } catch (const std::out_of_range &) {
        try {
          Noted again(ended[i]);
          throw;
        } catch (const std::exception &e) {
          got[i] = -long(name.size());
        }
      }
    }
  }
#pragma omp taskwait
  long sum = 0;
  for (long i = 0; i < n; i++) sum += got[i] * (i + 1) + ended[i];
  return sum;
}
int main() {
  std::vector<long> of(100);
  for (long i = 0; i < 100; i++) of[i] = i * i % 37;
  std::vector<double> x(50, 1.5);
  std::map<long, long> sums;
  long a = 0, b = 0;
#pragma omp parallel
#pragma omp single
  {
    a = tree(of, 0, 100);
    b = tolerant(of, 60);
    const auto twice = [](double v) { return 2 * v; };
    halves(x.data(), 50, twice);
#pragma omp taskloop
    for (long i = 0; i < 20; i++) {
      const long value = leaf(of, i);
#pragma omp critical
      sums[i % 3] += value;
    }
  }
  double all = 0;
  for (double v : x) all += v;
  std::printf("%ld %ld %g %ld %ld %ld\n", a, b, all, sums[0], sums[1], sums[2]);
}
"#;

#[test]
fn throwing_tasks_are_raised() {
    let at = folder("task_exceptions");
    write(&at, "it.cpp", TASKS);
    shell(&at, "clang++-22 -O1 it.cpp -o serial");
    let wanted = text(&succeeds(&mut run(&at, "serial", "1", "0")).stdout);
    for level in LEVELS {
        let said = accepts(
            &at,
            &format!("c++ {level} -fopenmp --par-report it.cpp -o it"),
        );
        let kept = ["runs serially", "not raised"];
        assert!(!kept.iter().any(|word| said.contains(word)), "{said}");
        for (workers, forced) in [("1", "0"), ("2", "0"), ("4", "1")] {
            let told = text(&succeeds(&mut run(&at, "it", workers, forced)).stdout);
            assert_eq!(told, wanted, "{level}, {workers} workers, forced: {forced}");
        }
    }
}

/// Each side waits, with a timeout, until the other has started.
#[test]
fn throwing_tasks_run_concurrently() {
    let at = folder("thrown_at_once");
    let source = r#"
#include <atomic>
#include <chrono>
#include <cstdio>
#include <vector>
static std::atomic<int> begun{0};
using Clock = std::chrono::steady_clock;
__attribute__((noinline)) static int meet(int place) {
  std::vector<int> own(place + 2, 1);
  begun++;
  const auto latest = Clock::now() + std::chrono::minutes(1);
  while (begun < 2 && Clock::now() < latest) {}
  return begun < 2 ? 100 : own.at(place);
}
static int both() {
  int a = 0, b = 0;
#pragma omp task shared(a)
  a = meet(0);
  b = meet(1);
#pragma omp taskwait
  return a + b;
}
int main() {
  int met = 0;
#pragma omp parallel
#pragma omp single
  met = both();
  std::printf("%d\n", met);
}
"#;
    write(&at, "it.cpp", source);
    for level in LEVELS {
        accepts(&at, &format!("c++ {level} -fopenmp it.cpp -o it"));
        let told = text(&succeeds(&mut run(&at, "it", "2", "1")).stdout);
        assert_eq!(told, "2\n", "{level}");
    }
}

#[test]
fn uncaught_exception_terminates() {
    let at = folder("thrown_out");
    let source = r#"
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>
__attribute__((noinline)) static void leaf(int k) {
  std::vector<int> own(k + 1);
  if (own.size() == 6) throw k;
}
int main(int, char **given) {
  std::set_terminate([] { std::_Exit(3); });
  try {
    switch (given[1][0]) {
    case '0':
#pragma omp parallel
#pragma omp single
      for (int i = 0; i < 8; i++) {
#pragma omp task
        leaf(i);
      }
      break;
    case '1':
#pragma omp parallel
#pragma omp single
      {
#pragma omp task
        { leaf(2); leaf(5); }
#pragma omp task
        leaf(3);
#pragma omp taskwait
      }
      break;
    case '2':
#pragma omp parallel
#pragma omp single
      {
#pragma omp taskloop
        for (int i = 0; i < 8; i++) leaf(i);
      }
      break;
    case '3':
#pragma omp parallel for
      for (int i = 0; i < 8; i++) leaf(i);
      break;
    case '4':
#pragma omp parallel sections
      {
#pragma omp section
        leaf(5);
#pragma omp section
        leaf(1);
      }
      break;
    }
  } catch (int k) {
    std::printf("outside %d\n", k);
  }
}
"#;
    write(&at, "it.cpp", source);
    for level in LEVELS {
        accepts(&at, &format!("c++ {level} -fopenmp it.cpp -o it"));
        for (place, workers) in "01234".chars().flat_map(|p| [(p, "1"), (p, "2")]) {
            let output: Output = run(&at, "it", workers, "1")
                .arg(place.to_string())
                .output()
                .expect("it starts");
            let told = (output.status.code(), text(&output.stdout));
            assert_eq!(
                told,
                (Some(3), String::new()),
                "{level}, {place}, {workers}"
            );
        }
    }
}

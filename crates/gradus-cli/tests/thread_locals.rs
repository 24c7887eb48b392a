//! Per-thread values that the C library declares constant: the address of `errno`, and the thread's
//! identity. Each thread must query separately.

use crate::support::{accepts, folder, succeeds, text, write};
use std::process::Command;

const SOURCE: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>
#include <gradus/parallel.h>
enum { COUNT = 20000 };
static const char *texts[COUNT];
static pthread_t who[COUNT];

static int is_too_large(const char *text) {
  errno = 0;
  strtol(text, 0, 10);
  return errno == ERANGE;
}

static int loops(int n) {
  int bad = 0;
#pragma omp parallel for reduction(+ : bad)
  for (int i = 0; i < n; i++) {
    errno = 0;
    long read = strtol(texts[i], 0, 10);
    if (errno == ERANGE) bad++;
    else if (read != 17) bad += n;
  }
  return bad;
}

static int marked(int n) {
  static int large[COUNT];
  gr_for (int i = 0; i < n; i++) {
    errno = 0;
    strtol(texts[i], 0, 10);
    large[i] = errno == ERANGE;
  }
  int bad = 0;
  for (int i = 0; i < n; i++) bad += large[i];
  return bad;
}

static int tasks(int n) {
  int wrong = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i + 1 < n; i += 2) {
    int one = 0, other = 0;
#pragma omp task shared(one)
    one = is_too_large(texts[i]);
    other = is_too_large(texts[i + 1]);
#pragma omp taskwait
    wrong += one || !other;
  }
  return wrong;
}

static int threads(int n) {
  int same = 1;
#pragma omp parallel for schedule(static) num_threads(2)
  for (int i = 0; i < n; i++) {
    double s = i;
    for (int k = 0; k < 1000; k++) s = s * 0.5 + k;
    who[i] = s < 0 ? 0 : pthread_self();
  }
  for (int i = 1; i < n; i++) same &= pthread_equal(who[i], who[0]) != 0;
  return same;
}

int main(void) {
  for (int i = 0; i < COUNT; i++) texts[i] = i % 2 ? "99999999999999999999999" : "17";
  int same = 1;
  for (int turn = 0; same && turn < 50; turn++) same = threads(COUNT);
  printf("%d %d %d %d\n", loops(COUNT), marked(COUNT), tasks(COUNT), same);
}
"#;

/// Thread-local variables: used directly, by functions of another file, and through functions that return
/// the address, partly declared `const`.
const VARIABLES: &str = r#"
#include <stdio.h>
#include <gradus/parallel.h>
enum { COUNT = 5000 };
extern _Thread_local int shared;
int next(void);
int *constant(void) __attribute__((const));
static _Thread_local int own;
__attribute__((noinline)) static int *place(void) { return &own; }
static char wrong[4][COUNT];
int main(void) {
  int sums[4] = {0};
  gr_for (int i = 0; i < COUNT; i++) {
    shared = i;
    wrong[0][i] = next() != i + 1;
    *place() = i;
    wrong[1][i] = next() != i + 2 || *place() != i;
    *constant() = i;
    wrong[2][i] = next() != i + 1;
  }
  for (int i = 0; i < COUNT; i++) {
    shared = i;
    gr_spawn {
      shared = 7 * i;
      wrong[3][i] = next() != 7 * i + 1 || *constant() != 7 * i + 1;
    }
  }
  gr_sync();
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < COUNT; i++) sums[k] += wrong[k][i];
  printf("%d %d %d %d\n", sums[0], sums[1], sums[2], sums[3]);
}
"#;
const NEXT: &str = "_Thread_local int shared;
int next(void) { return ++shared; }
int *constant(void) { return &shared; }
";

#[test]
fn thread_local_variables() {
    let at = folder("own_variables");
    write(&at, "own.c", VARIABLES);
    write(&at, "next.c", NEXT);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(&at, &format!("cc {level} own.c next.c -o own"));
        for _ in 0..3 {
            let mut command = Command::new(at.join("own"));
            command.env("GRADUS_NUM_THREADS", "4");
            command.env("GRADUS_FORCE_FORK", "1");
            let told = text(&succeeds(&mut command).stdout);
            assert_eq!(told, "0 0 0 0\n", "{level}");
        }
    }
}

/// LLVM's own passes see the parallel intrinsics before recompilation.
#[test]
fn thread_locals_through_intrinsics() {
    let at = folder("own_variables_words");
    write(&at, "own.c", VARIABLES);
    write(&at, "next.c", NEXT);
    accepts(
        &at,
        "cc -O2 -c -emit-llvm --par-target=intrinsics own.c -o own.bc",
    );
    let mut passes = Command::new("opt-22");
    passes.args(["-passes=default<O2>", "own.bc", "-o", "passed.bc"]);
    succeeds(passes.current_dir(&at));
    accepts(&at, "cc -O2 passed.bc next.c -o own");
    for _ in 0..3 {
        let mut command = Command::new(at.join("own"));
        command.env("GRADUS_NUM_THREADS", "4");
        command.env("GRADUS_FORCE_FORK", "1");
        let told = text(&succeeds(&mut command).stdout);
        assert_eq!(told, "0 0 0 0\n");
    }
}

#[test]
fn errno_and_thread_id_per_thread() {
    let at = folder("thread_locals");
    write(&at, "own.c", SOURCE);
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        accepts(&at, &format!("cc -fopenmp {level} own.c -o own -lm"));
        let mut command = Command::new(at.join("own"));
        command.env("GRADUS_NUM_THREADS", "2");
        let told = text(&succeeds(&mut command).stdout);
        assert_eq!(told, "10000 10000 0 0\n", "{level}");
    }
}

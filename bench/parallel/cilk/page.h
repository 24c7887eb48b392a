/* What the programs share: words for tasks, a clock, numbers that look random, and the smallest time of some
 * runs.
 *
 *     TASKS;                 what SYNC waits for: in front of a function's first task
 *     SPAWN(call);           a task
 *     SPAWN_INTO(x, call);   a task that leaves what the call gives in a local variable
 *     SPAWN_BLOCK({ ... });  a task with copies of the local variables
 *     SYNC;
 *     LOOP(i, lo, hi, { ... });
 *
 * They stand for Cilk's words as gradus/cilk.h has them; with OPENMP_TASKS for OpenMP's tasks, with ONE_TBB
 * for oneTBB's. */
#pragma once
#if defined(ONE_TBB)
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#elif !defined(OPENMP_TASKS)
#include <gradus/cilk.h>
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../clocks.h"

#if defined(ONE_TBB)
#define TASKS tbb::task_group tasks_
#define SPAWN(...) tasks_.run([=] { __VA_ARGS__; })
#define SPAWN_INTO(x, ...) tasks_.run([=, &x] { x = __VA_ARGS__; })
#define SPAWN_BLOCK(...) tasks_.run([=] __VA_ARGS__)
#define SYNC tasks_.wait()
#define LOOP(i, lo, hi, ...) tbb::parallel_for((long)(lo), (long)(hi), [=](long i) __VA_ARGS__)
#define RUN(...) arena().execute([&] { __VA_ARGS__; })
static tbb::task_arena &arena() {
  static tbb::task_arena made(atoi(getenv("OMP_NUM_THREADS")));
  return made;
}
#elif defined(OPENMP_TASKS)
#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#define TASKS ((void)0)
#define SPAWN(...) PRAGMA(omp task) __VA_ARGS__
#define SPAWN_INTO(x, ...) PRAGMA(omp task shared(x)) x = __VA_ARGS__
#define SPAWN_BLOCK(...) PRAGMA(omp task) __VA_ARGS__
#define SYNC PRAGMA(omp taskwait)
#define LOOP(i, lo, hi, ...) PRAGMA(omp taskloop) for (long i = lo; i < hi; i++) __VA_ARGS__
#define RUN(...) PRAGMA(omp parallel) PRAGMA(omp single) { __VA_ARGS__; }
#else
#define TASKS ((void)0)
#define SPAWN(...) cilk_spawn __VA_ARGS__
#define SPAWN_INTO(x, ...) x = cilk_spawn __VA_ARGS__
#define SPAWN_BLOCK(...) gr_spawn __VA_ARGS__
#define SYNC cilk_sync
#define LOOP(i, lo, hi, ...) cilk_for (long i = lo; i < hi; i++) __VA_ARGS__
#define RUN(...) __VA_ARGS__
#endif

static double chance(void) {
  static unsigned long long state = 88172645463325252ull;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (state >> 11) * 0x1p-53;
}

static double *numbers(long n) {
  double *x = (double *)malloc(n * sizeof *x);
  for (long i = 0; i < n; i++) x[i] = chance() - 0.5;
  return x;
}

/* Sets up, runs, and prints the name, the smallest time and the smallest processor time of three runs. */
#define BENCH(name, setup, run) do { \
  double best = 1e30, least = 1e30; \
  for (int k_ = 0; k_ < 3; k_++) { \
    setup; \
    double c_ = worked(), t_ = passed(); \
    RUN(run); \
    t_ = passed() - t_; \
    c_ = worked() - c_; \
    if (t_ < best) best = t_; \
    if (c_ < least) least = c_; \
  } \
  printf("%s %.3f us %.3f us\n", name, best * 1e6, least * 1e6); \
} while (0)

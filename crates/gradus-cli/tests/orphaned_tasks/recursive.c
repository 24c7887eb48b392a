// Always-inline functions that call themselves, directly and from their own tasks: the calls remain.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 102, TEAM = 8, DEPTH = 2, TIMES = 20 };
#define RECURSIVE static inline __attribute__((always_inline))
#define ADD(count) __atomic_fetch_add(&(count), 1, __ATOMIC_RELAXED)
static int met[N], once, own[TEAM], walked[TEAM];

// Work of the calling team.
RECURSIVE void share(int *tasks, int depth) {
  for (int i = 0; i < 4; i++) {
#pragma omp task firstprivate(tasks)
    ADD(*tasks);
  }
#pragma omp taskwait
#pragma omp for
  for (int i = 0; i < N; i++) ADD(met[i]);
#pragma omp single
  ADD(once);
  if (depth) share(tasks, depth - 1);
}

// Tasks only: 2^(depth + 1) - 1 in all.
RECURSIVE void walk(int *count, int depth) {
#pragma omp task firstprivate(count, depth)
  {
    ADD(*count);
    if (depth) walk(count, depth - 1);
  }
#pragma omp taskwait
  if (depth) walk(count, depth - 1);
}

#ifdef DERIVATIVE
double __enzyme_autodiff(void *, ...);
double square(double x) { return x * x; }
#endif

int main(int argc, char **argv) {
  (void)argc;
  int team = atoi(argv[1]), wrong = 0;
  for (int time = 0; time < TIMES; time++) {
#pragma omp parallel num_threads(team)
    share(&own[omp_get_thread_num()], DEPTH);
#pragma omp parallel num_threads(team)
    walk(&walked[omp_get_thread_num()], DEPTH);
    // Outside of all regions; this also gives the thread a number of the OpenMP library.
    share(&own[0], DEPTH);
    walk(&walked[0], DEPTH);
  }
  for (int i = 0; i < N; i++) wrong += met[i] != 2 * TIMES * (DEPTH + 1);
  wrong += once != 2 * TIMES * (DEPTH + 1);
  for (int rank = 0; rank < team; rank++) {
    int times = rank ? TIMES : 2 * TIMES;
    wrong += own[rank] != 4 * times * (DEPTH + 1);
    wrong += walked[rank] != times * ((2 << DEPTH) - 1);
  }
#ifdef DERIVATIVE
  wrong += __enzyme_autodiff((void *)square, 3.0) != 6;
#endif
  printf("%d\n", wrong);
}

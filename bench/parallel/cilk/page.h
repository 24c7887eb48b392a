/* What the programs share: a clock, numbers that look random, and the smallest time of some runs. */
#pragma once
#include <gradus/cilk.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(int clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static double chance(void) {
  static unsigned long long state = 88172645463325252ull;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (state >> 11) * 0x1p-53;
}

static double *numbers(long n) {
  double *x = malloc(n * sizeof *x);
  for (long i = 0; i < n; i++) x[i] = chance() - 0.5;
  return x;
}

/* Sets up, runs, and prints the name, the smallest time and the smallest processor time of three runs. */
#define BENCH(name, setup, run) do { \
  double best = 1e30, least = 1e30; \
  for (int k_ = 0; k_ < 3; k_++) { \
    setup; \
    double t_ = now(CLOCK_MONOTONIC), c_ = now(CLOCK_PROCESS_CPUTIME_ID); \
    run; \
    c_ = now(CLOCK_PROCESS_CPUTIME_ID) - c_; \
    t_ = now(CLOCK_MONOTONIC) - t_; \
    if (t_ < best) best = t_; \
    if (c_ < least) least = c_; \
  } \
  printf("%s %.3f us %.3f us\n", name, best, least); \
} while (0)

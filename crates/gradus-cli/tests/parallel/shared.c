/* Every way to share memory without a race; with RACE one more that is one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4000 };
static double x[N], y[N], sum, most;
static long count, left[64], one;
static unsigned long marks[N / 64 + 1];

static double work(double v) {
  for (int k = 0; k < 60; k++) v = sin(v) + 0.5;
  return v;
}

static long tree(const double *v, long n) {
  if (n < 20) {
    long found = 0;
    for (long i = 0; i < n; i++) found += work(v[i]) > 0.9;
    return found;
  }
  long a, b;
#pragma omp task shared(a)
  a = tree(v, n / 2);
  b = tree(v + n / 2, n - n / 2);
#pragma omp taskwait
  return a + b;
}

static void loops(void) {
#pragma omp parallel for
  for (long i = 0; i < N; i++) x[i] = work(i * 0.001);
#pragma omp parallel for reduction(+ : sum) reduction(max : most) schedule(dynamic, 16)
  for (long i = 0; i < N; i++) {
    y[i] = x[i] + work(x[N - 1 - i]);
    sum += y[i] > 0;
    if (y[i] > most) most = y[i];
  }
  /* Iterations of a chunk are one thread's: they may share a word. */
#pragma omp parallel for schedule(dynamic, 64)
  for (long i = 0; i < N; i++) marks[i / 64] |= (unsigned long)(work(y[i]) > 0.5) << (i % 64);
#pragma omp parallel for
  for (long i = 0; i < N; i++) {
    if (work(y[i]) > 0.5) {
#pragma omp atomic
      count++;
    }
#ifdef RACE
    y[i / 2] += x[i];
#endif
  }
}

static void team(void) {
#pragma omp parallel num_threads(4)
  {
    long mine = 0;
#pragma omp for nowait
    for (long i = 0; i < N; i++) mine += work(x[i]) > 0.7;
#pragma omp critical
    left[0] += mine;
#pragma omp barrier
#pragma omp single
    one += left[0];
#pragma omp for schedule(static, 7)
    for (long i = 0; i < N; i++) y[i] = work(x[i]) + (one > 0);
#pragma omp for schedule(guided)
    for (long i = 0; i < N; i++) x[N - 1 - i] = work(y[i]);
  }
}

int main(void) {
  long found = 0;
  for (int round = 0; round < 40; round++) {
    loops();
    team();
#pragma omp parallel
#pragma omp single
    found += tree(x, N);
  }
  printf("%g %ld %ld %ld\n", sum, count > 0, one > 0, found > 0);
}

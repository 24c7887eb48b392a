// Regions of ours of every kind, beside calls of one that stays with OpenMP's library: from the outside,
// from a loop, from a task. Prints what was wrong, and how many threads there are.
#include <dirent.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 4000 };
long kept(long n), threads_here(void);
static long a[N];

static void expect(int ok, const char *what) {
  if (!ok) { printf("wrong: %s\n", what); exit(1); }
}

static long fib(int n) {
  if (n < 2) return n;
  long x, y;
  #pragma omp task shared(x) if (n > 4)
  x = fib(n - 1);
  y = fib(n - 2);
  #pragma omp taskwait
  return x + y;
}

static void loops(void) {
  long sum = 0;
  #pragma omp parallel for
  for (long i = 0; i < N; i++) a[i] = i;
  #pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < N; i++) sum += a[i] * a[i] % 7;
  long right = 0;
  for (long i = 0; i < N; i++) right += i * i % 7;
  expect(sum == right, "a sum");
}

static void nested(void) {
  #pragma omp parallel for
  for (long i = 0; i < 40; i++) {
    #pragma omp parallel for
    for (long j = 0; j < N / 40; j++) a[i * (N / 40) + j] += 1;
  }
  for (long i = 0; i < N; i++) expect(a[i] == i + 1, "nested loops");
}

static void tasks(void) {
  long f = 0;
  #pragma omp parallel
  #pragma omp single
  f = fib(18);
  expect(f == 2584, "tasks");
  long sum = 0, of_kept = kept(50);
  #pragma omp parallel
  #pragma omp single
  for (int i = 0; i < 20; i++) {
    #pragma omp task
    {
      long own = kept(50) == of_kept;
      #pragma omp atomic
      sum += own;
    }
  }
  expect(sum == 20, "a region that stays, in tasks");
}

static void team(void) {
  int most = omp_get_max_threads(), bad = 0, seen[64] = {0};
  #pragma omp parallel
  {
    int me = omp_get_thread_num();
    if (me >= most || omp_get_num_threads() > most || omp_get_level() != 1) {
      #pragma omp atomic
      bad++;
    }
    seen[me]++;
    #pragma omp barrier
    #pragma omp for schedule(dynamic)
    for (long i = 0; i < N; i++) a[i] = 2 * i;
    #pragma omp for reduction(+ : bad)
    for (long i = 0; i < N; i++) bad += a[i] != 2 * i;
  }
  expect(!bad, "a team");
  for (int t = 0; t < most && t < 64; t++) expect(seen[t] == 1, "ranks of a team");
}

static void calls(void) {
  long of_kept = kept(50), wrong = 0;
  #pragma omp parallel for reduction(+ : wrong)
  for (long i = 0; i < 64; i++) wrong += kept(50) != of_kept;
  expect(!wrong, "a region that stays, in a loop");
  long most = 0;
  #pragma omp parallel for reduction(max : most)
  for (int i = 0; i < 4; i++) {
    long threads = threads_here();
    if (threads > most) most = threads;
  }
  expect(most == 1, "one thread for a region inside of a small loop");
  // An equal number of each thread's own.
  double *sums = calloc(16 * (omp_get_max_threads() + 1), sizeof *sums), sum = 0;
  #pragma omp parallel for
  for (long i = 0; i < N; i++) sums[16 * omp_get_thread_num()] += i;
  for (int t = 0; t < omp_get_max_threads(); t++) sum += sums[16 * t];
  expect(sum == N * (N - 1) / 2.0, "sums by thread number");
  free(sums);
}

static int threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
  closedir(tasks);
  return count;
}

int main(void) {
  long first = kept(60);
  for (int round = 0; round < 2; round++) {
    loops();
    expect(kept(60) == first, "a region that stays");
    nested();
    tasks();
    team();
    calls();
  }
  printf("%d threads\n", threads());
}

// Programs that stop and go: each way ends, says "ok", and leaves no worker awake. More workers than the machine has
// processors must not matter, nor whether every loop forks.
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 4096 };
static double a[N];
static double cpu(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void small(double s) {
#pragma omp parallel for
  for (int i = 0; i < N; i++) a[i] = sin(a[i] + s);
}
static double sum(void) {
  double r = 0;
#pragma omp parallel for reduction(+ : r)
  for (int i = 0; i < N; i++) r += a[i];
  return r;
}
static void pauses(void) {
  for (int k = 0; k < 400; k++) { small(k); if (k % 8 == 0) usleep(k % 3 ? 300 : 3000); }
}
static int idle(void) {
  for (int k = 0; k < 50; k++) small(k);
  usleep(20000);
  double before = cpu();
  usleep(500000);
  double used = cpu() - before;
  if (used > 0.1) printf("%.3f s of the processor while it sleeps\n", used);
  return used <= 0.1;
}
static int nested(void) {
  long n = 0;
#pragma omp parallel for reduction(+ : n)
  for (int i = 0; i < 16; i++) {
#pragma omp parallel for reduction(+ : n)
    for (int j = 0; j < 16; j++) {
#pragma omp parallel for reduction(+ : n)
      for (int k = 0; k < 16; k++) n += i ^ j ^ k;
    }
  }
  return n == 8 * 16 * 16 * 16 - 4096 / 2;
}
static long fib(int n) {
  long x, y;
  if (n < 2) return n;
#pragma omp task shared(x)
  x = fib(n - 1);
#pragma omp task shared(y)
  y = fib(n - 2);
#pragma omp taskwait
  return x + y;
}
static int tasks(void) {
  long all = 0;
#pragma omp parallel for reduction(+ : all)
  for (int i = 0; i < 12; i++) {
    long x = 0, y = 0;
#pragma omp task shared(x)
    x = fib(10);
#pragma omp task shared(y)
    y = fib(9);
#pragma omp taskwait
    all += x + y;
  }
  long one = 0;
#pragma omp parallel
#pragma omp single
  one = fib(16);
  return all == 12 * (55 + 34) && one == 987;
}
static void *other(void *p) {
  double *r = p;
  for (int k = 0; k < 200; k++) {
    double s = 0;
#pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < 1000; i++) s += i;
    if (s != 499500) *r = 1;
    if (k % 50 == 0) usleep(500);
  }
  return 0;
}
static int guest(void) {
  pthread_t t[2]; double wrong[2] = {0, 0};
  for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, other, &wrong[i]);
  for (int k = 0; k < 200; k++) small(k);
  for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
  return wrong[0] == 0 && wrong[1] == 0;
}
static int sizes(void) {
  int ok = 1;
  for (int k = 0; k < 60; k++) {
    int want = 1 + k % 6, got = 0;
    omp_set_num_threads(want);
#pragma omp parallel
    {
#pragma omp single
      got = omp_get_num_threads();
#pragma omp barrier
    }
    small(k);
    ok &= got == want;
  }
  return ok;
}
static int team(void) {
  int ranks = 0, met = 1;
#pragma omp parallel
  {
#pragma omp atomic
    ranks++;
#pragma omp barrier
#pragma omp critical
    met &= ranks == omp_get_num_threads();
  }
  return met ? ranks : 0;
}
static int forks(void) {
  for (int k = 0; k < 20; k++) small(k);
  if (!team()) return 0;
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    for (int k = 0; k < 20; k++) small(k);
    omp_set_num_threads(3);
    small(1);
    int whole = sum() == sum() && team() > 0;
    _exit(!whole);
  }
  small(1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0 && team();
}
static int barriers(void) {
  int ok = 1;
#pragma omp parallel
  {
    static int count;
    for (int k = 0; k < 300; k++) {
#pragma omp atomic
      count++;
#pragma omp barrier
#pragma omp single
      { ok &= count == omp_get_num_threads(); count = 0; }
    }
  }
  return ok;
}
/* Threads, more than there are processors, each of which waits for its turn under a lock. */
static int turns(void) {
  int turn = 0;
#pragma omp parallel num_threads(5)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
    for (int i = 0; i < 2000; i++)
      for (int done = 0; !done;) {
#pragma omp critical
        if (turn == me) { turn = (me + 1) % all; done = 1; }
      }
  }
  return turn == 0;
}
__attribute__((noinline)) static int look(const int *come) {
  int far;
#pragma omp atomic read acquire
  far = *come;
  return far;
}
/* Each row of a plate goes as far as the row above it has come. */
static int wavefront(void) {
  enum { ROWS = 48, COLUMNS = 4000 };
  static double plate[ROWS + 1][COLUMNS + 1];
  static int come[ROWS + 1];
  for (int j = 0; j <= COLUMNS; j++) plate[0][j] = 1 + j % 3;
  double last = 0;
  for (int round = 0; round < 6; round++) {
    memset(come, 0, sizeof come);
    come[0] = COLUMNS;
#define ROW for (int i = 1; i <= ROWS; i++) for (int j = 1; j <= COLUMNS; j++) { \
      if (round % 3) while (look(&come[i - 1]) < j) ; \
      else for (int above = 0; above < j;) { _Pragma("omp atomic read acquire") above = come[i - 1]; } \
      plate[i][j] = 0.5 * plate[i - 1][j] + 0.25 * plate[i][j - 1]; \
      _Pragma("omp atomic write release") come[i] = j; }
    if (round % 2) {
#pragma omp parallel for schedule(dynamic, 1)
      ROW
    } else {
#pragma omp parallel for
      ROW
    }
    if (round && plate[ROWS][COLUMNS] != last) return 0;
    last = plate[ROWS][COLUMNS];
  }
  return last > 0;
}
int main(int argc, char **argv) {
  const char *way = argv[1];
  int ok = 1;
  if (!strcmp(way, "pauses")) pauses(), ok = idle();
  else if (!strcmp(way, "idle")) ok = idle();
  else if (!strcmp(way, "nested")) ok = nested() && idle();
  else if (!strcmp(way, "tasks")) ok = tasks() && idle();
  else if (!strcmp(way, "guest")) ok = guest() && idle();
  else if (!strcmp(way, "sizes")) ok = sizes() && idle();
  else if (!strcmp(way, "forks")) ok = forks();
  else if (!strcmp(way, "barriers")) ok = barriers() && idle();
  else if (!strcmp(way, "turns")) ok = turns() && idle();
  else if (!strcmp(way, "wavefront")) ok = wavefront() && idle();
  else if (!strcmp(way, "exits")) {
    puts("ok"); fflush(stdout);
#pragma omp parallel for
    for (int i = 0; i < N; i++) { a[i] = sin(a[i]); if (i == N / 2) exit(7); }
  } else if (!strcmp(way, "exits_in_team")) {
    puts("ok"); fflush(stdout);
#pragma omp parallel
    {
#pragma omp barrier
      if (omp_get_thread_num() == omp_get_num_threads() - 1) exit(7);
#pragma omp barrier
    }
  } else if (!strcmp(way, "returns")) for (int k = 0; k < 100; k++) small(k);
  puts(ok ? "ok" : "WRONG");
  return !ok;
}

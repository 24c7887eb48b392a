// Locks and signals by atomic words: in place and in functions that are given the word's address, in loops, tasks and
// teams; and threads that wait for each other by critical regions.
#include <stdio.h>
static inline void take(int *l) {
  while (__atomic_exchange_n(l, 1, __ATOMIC_ACQUIRE));
}
static inline void give(int *l) { __atomic_store_n(l, 0, __ATOMIC_RELEASE); }
static int get(int *f) { return __atomic_load_n(f, __ATOMIC_ACQUIRE); }
static int look(int *f) { return __atomic_load_n(f, __ATOMIC_RELAXED); }
static void set(int *f, int v) { __atomic_store_n(f, v, __ATOMIC_RELEASE); }
static long everywhere;

static void loop(int n) {
  int l = 0;
  long own = 7;
  everywhere = 7;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    take(&l); own += 1; everywhere += 1; give(&l);
    take(&l); own += i; everywhere += i; give(&l);
  }
  printf("%ld %ld\n", own, everywhere);
}
static void tasks(int n) {
  int l = 0;
  long own = 0;
#pragma omp parallel
#pragma omp single
  for (int t = 0; t < 20; t++)
#pragma omp task
    for (int k = 0; k < n / 20; k++) {
      take(&l); own += k; give(&l);
      take(&l); own -= 1; give(&l);
    }
  printf("%ld\n", own);
}
static void team(int n, int threads) {
  int l = 0, own = 0;
#pragma omp parallel num_threads(threads)
  for (int q = 0; q < n; q++) {
    while (__atomic_exchange_n(&l, 1, __ATOMIC_SEQ_CST));
    own += 1;
    __atomic_store_n(&l, 0, __ATOMIC_SEQ_CST);
    take(&l); own += 1; give(&l);
  }
  printf("%d\n", own);
}
static void signals(void) {
  int f = 0, data = 0, r = -1, a = 0, b = 0;
#pragma omp parallel sections num_threads(2)
  {
#pragma omp section
    { data = 1; __atomic_store_n(&f, 1, __ATOMIC_SEQ_CST); while (__atomic_load_n(&f, __ATOMIC_SEQ_CST) != 2); r = data; }
#pragma omp section
    { while (__atomic_load_n(&f, __ATOMIC_SEQ_CST) != 1); data += 41; __atomic_store_n(&f, 2, __ATOMIC_SEQ_CST); }
  }
#pragma omp parallel sections num_threads(2)
  {
#pragma omp section
    for (int i = 1; i <= 10; i++) { set(&a, i); while (get(&b) != i) {} }
#pragma omp section
    for (int i = 1; i <= 10; i++) { while (look(&a) != i) {} set(&b, i); }
  }
  printf("%d %d %d %d\n", data, r, a, b);
}
static void turns(void) {
  int turn = 0, x = 0, r = 0;
  long sum = 1;
#pragma omp parallel for num_threads(3) schedule(static, 1)
  for (int id = 0; id < 3; id++)
    for (int i = 0; i < 5; i++) {
      int done = 0;
      while (!done) {
#pragma omp critical
        if (turn % 3 == id) { sum = (sum * 3 + id + i) % 10007; turn++; done = 1; }
      }
    }
#pragma omp parallel sections num_threads(2)
  {
#pragma omp section
    {
      int t;
      do {
#pragma omp critical
        t = x;
      } while (t != 1);
      r = 42;
    }
#pragma omp section
    {
#pragma omp critical
      x = 1;
    }
  }
  printf("%d %ld %d\n", turn, sum, r);
}
int main(int argc, char **argv) {
  (void)argv;
  loop(20000);
  tasks(20000);
  team(10000, argc > 5 ? 5 : 2);
  signals();
  turns();
}

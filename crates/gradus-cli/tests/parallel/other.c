#include <omp.h>
int number(void) { return omp_get_thread_num(); }
int count(void) { return omp_get_num_threads(); }
int most(void) { return omp_get_max_threads(); }
int inside(void) { return omp_in_parallel(); }
void scatter(double *sums, long i) {
  volatile double *mine = &sums[16 * omp_get_thread_num()];
  double old = *mine;
  for (volatile int k = 0; k < 50; k++) ;
  *mine = old + i;
}
void shared(int *a, long n) {
  #pragma omp for nowait
  for (long i = 0; i < n; i++) a[i] += i;
  #pragma omp barrier
}
void dynamic(int *a, long n) {
  #pragma omp for schedule(dynamic, 7)
  for (int i = 0; i < n; i++) a[i] += i;
}
int combined(const int *a, long n) {
  static int s;
  #pragma omp single
  s = 0;
  #pragma omp for schedule(guided) reduction(+ : s)
  for (long i = n - 1; i >= 0; i--) s += a[i];
  return s;
}
void once(int *calls, int *told) {
  int mine = 0;
  #pragma omp single copyprivate(mine)
  { mine = 42; ++*calls; }
  if (mine != 42) {
    #pragma omp atomic
    ++*told;
  }
  #pragma omp sections
  {
    #pragma omp section
    if (mine != 42) *told = 1;
    #pragma omp section
    if (mine != 42) *told = 2;
  }
  #pragma omp masked
  if (omp_get_thread_num() != 0) *told = 3;
}
void ordered_in(int *a, long n, int *next) {
  #pragma omp for ordered schedule(dynamic)
  for (long i = 0; i < n; i++) {
    #pragma omp ordered
    if (*next == i) ++*next;
  }
}
void add_locked(long *s) {
  #pragma omp critical(adds)
  ++*s;
}
void slices(int *a, long n) {
  int t = omp_get_thread_num(), all = omp_get_num_threads();
  for (long i = n * t / all; i < n * (t + 1) / all; i++) a[i]++;
}
void nested(int *a, long n) {
  #pragma omp parallel
  {
    int t = omp_get_thread_num(), all = omp_get_num_threads();
    for (long i = n * t / all; i < n * (t + 1) / all; i++) a[i]++;
  }
}
static int leaf(void) { return omp_get_thread_num() < omp_get_max_threads(); }
long tasks(int depth) {
  if (depth == 0) return leaf();
  long x, y;
  #pragma omp task shared(x)
  x = tasks(depth - 1);
  y = tasks(depth - 1);
  #pragma omp taskwait
  return x + y;
}

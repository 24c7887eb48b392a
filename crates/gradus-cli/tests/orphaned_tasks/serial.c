// Prints how many steps ran on another thread, how many out of order, and the most threads that were there.
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_t first;
static int strange, started, order, wrong, most;
static void step(int i) {
  if (!pthread_equal(first, pthread_self())) __atomic_add_fetch(&strange, 1, __ATOMIC_RELAXED);
  if (order != i) wrong++;
  order = i + 1;
  int n = omp_get_num_threads();
  if (n > most) most = n;
}
__attribute__((noinline)) void pair(int i) {
  #pragma omp task
  { usleep(2000); step(i); }
  #pragma omp task
  { step(i + 1); }
  #pragma omp taskwait
}
__attribute__((noinline)) void nested(int i) {
  #pragma omp task
  {
    #pragma omp task
    step(i);
    pair(i + 1);
    #pragma omp taskwait
  }
  step(i + 3);
  pair(i + 4);
  #pragma omp taskwait
}
__attribute__((noinline)) void looped(int n) {
  for (int i = 0; i < n; i++) {
    #pragma omp task firstprivate(i)
    { if (i % 3 == 0) usleep(500); step(i); }
  }
  #pragma omp taskwait
}
__attribute__((noinline)) void taskloop(int n) {
  #pragma omp taskloop grainsize(3)
  for (int i = 0; i < n; i++) { if (i % 3 == 0) usleep(500); step(i); }
}
__attribute__((noinline)) void group(int i) {
  #pragma omp taskgroup
  {
    #pragma omp task if(i >= 0)
    { usleep(1000); step(i); }
    #pragma omp task final(i < 0)
    { pair(i + 1); }
    step(i + 3);
  }
}
int main(void) {
  first = pthread_self();
  pair(0);
  order = 0; nested(0);
  order = 0; looped(20);
  order = 0; taskloop(20);
  order = 0; group(0);
  printf("%d %d %d\n", strange, wrong, most);
}

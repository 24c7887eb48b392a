#include <unistd.h>
int arrived;
static void arrive(void) {
  __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
  for (int k = 0; k < 2000 && __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < 2; k++) usleep(1000);
  if (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < 2) __atomic_add_fetch(&arrived, 100, __ATOMIC_SEQ_CST);
}
void meet(void) {
#pragma omp task
  arrive();
#pragma omp task
  arrive();
#pragma omp taskwait
}
void meet_in_loop(int n) {
  for (int i = 0; i < n; i++) {
#pragma omp task
    arrive();
  }
#pragma omp taskwait
}

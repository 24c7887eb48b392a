/* A region inside of a region has one thread, also where the outer one is but code that one thread runs for all; and one
 * with a false `if` has one thread, which its tasks are the work of. */
#include <omp.h>
#include <stdio.h>
#include <unistd.h>

static int count, changed;

static void later(int *p) {
  int before = *p;
  usleep(200);
  *p = before + 1;
}

__attribute__((noinline)) static void inner(void) {
#pragma omp parallel
  {
#pragma omp atomic
    count += omp_get_num_threads();
  }
}

__attribute__((noinline)) static void tasks(int *p, int n) {
  for (int i = 0; i < n; i++) {
#pragma omp task
    later(p);
  }
#pragma omp taskwait
}

int main(void) {
#pragma omp parallel num_threads(2)
#pragma omp single
  {
#pragma omp parallel
    count += omp_get_num_threads();
  }
  printf("single %d\n", count);
  count = 0;
#pragma omp parallel
#pragma omp single
  {
#pragma omp parallel num_threads(4)
    for (int i = 0; i < 5; i++) later(&changed);
  }
  printf("asked %d\n", changed);
  changed = 0;
#pragma omp parallel sections
  {
#pragma omp section
    {
#pragma omp parallel num_threads(3)
      count += omp_get_num_threads();
    }
  }
  printf("sections %d\n", count);
  count = 0;
#pragma omp parallel
#pragma omp single
  inner();
  printf("called %d\n", count);
  count = 0;
#pragma omp parallel if (0)
  tasks(&changed, 10);
  printf("if %d\n", changed);
  return 0;
}

// Regions with `if` and `num_threads` clauses, followed by a region that states another number.
#include <omp.h>
#include <stdio.h>

__attribute__((noinline)) static void sizes(int c) {
  int first = 0, second = 0, third = 0;
#pragma omp parallel if (c) num_threads(5)
  {
#pragma omp single
    first = omp_get_num_threads();
  }
#pragma omp parallel if (c > 0) num_threads(3)
  {
#pragma omp atomic
    second++;
  }
#pragma omp parallel num_threads(2)
  {
#pragma omp single
    third = omp_get_num_threads();
  }
  printf("%d %d %d\n", first, second, third);
}

int main(void) {
  for (int c = 0; c < 2; c++) sizes(c);
  return 0;
}

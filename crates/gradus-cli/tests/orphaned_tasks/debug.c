#include <stdio.h>
#include <stdlib.h>

double __enzyme_autodiff(void *, ...);
double square(double x) { return x * x; }

void region(int team, long *count) {
#pragma omp parallel num_threads(team)
  {
#pragma omp single nowait
    __atomic_fetch_add(&count[0], 1, __ATOMIC_RELAXED);
#pragma omp task
    __atomic_fetch_add(&count[1], 1, __ATOMIC_RELAXED);
#pragma omp taskwait
  }
}

int main(int argc, char **argv) {
  (void)argc;
  long count[2] = {0, 0};
  region(atoi(argv[1]), count);
  printf("%ld %ld %g\n", count[0], count[1], __enzyme_autodiff((void *)square, 3.0));
  return 0;
}

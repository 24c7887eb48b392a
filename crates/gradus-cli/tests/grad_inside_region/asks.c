/* Derivatives that are asked for by the threads of a region, by each for its share of the work. */
#include <omp.h>
#include <stdio.h>
extern int enzyme_out, enzyme_dup;
double __enzyme_autodiff(void *, ...);
double fixed__enzyme_autodiff(void *, int, double);
double __enzyme_fwddiff(void *, ...);

static double square(double r) { return r * r; }

#define SLOPE(x) __enzyme_autodiff((void *)square, enzyme_out, (double)(x))

static double loops(void) {
  double s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int i = 0; i < 10; i++) s += SLOPE(i);
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : s)
  for (int i = 0; i < 10; i++) s += __enzyme_fwddiff((void *)square, enzyme_dup, (double)i, 1.0);
#pragma omp parallel for collapse(2) reduction(+ : s)
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 2; j++) s += SLOPE(2 * i + j);
  return s;
}

static double steps(int n) {
  double x[10];
  for (int i = 0; i < n; i++) x[i] = i;
#pragma omp parallel for
  for (int i = 0; i < n; i++) x[i] -= 0.25 * fixed__enzyme_autodiff((void *)square, enzyme_out, x[i]);
  return x[0] + x[1] + x[9];
}

static double parts(void) {
  double s = 0, once = 0;
#pragma omp parallel
  {
#pragma omp single
    once += SLOPE(1);
#pragma omp master
    once += SLOPE(2);
#pragma omp sections reduction(+ : s)
    {
#pragma omp section
      s += SLOPE(3);
#pragma omp section
      s += SLOPE(4);
    }
#pragma omp for
    for (int i = 0; i < 10; i++) {
      double slope = SLOPE(i);
#pragma omp critical
      s += slope;
    }
  }
  return s + 1000 * once;
}

static double by_number(void) {
  double s = 0;
#pragma omp parallel reduction(+ : s)
  for (int i = omp_get_thread_num(); i < 10; i += omp_get_num_threads()) s += SLOPE(i);
  return s;
}

void shared(double *g, int n) {
#pragma omp for
  for (int i = 0; i < n; i++) g[i] += SLOPE(i);
#pragma omp single
  g[0] += SLOPE(1);
}

void tasks(double *g, int n) {
  for (int i = 0; i < n; i++) {
#pragma omp task
    g[i] += SLOPE(i);
  }
#pragma omp taskwait
}

int main(void) {
  double g[10] = {0}, s = 0;
  printf("loops %g steps %g parts %g number %g\n", loops(), steps(10), parts(), by_number());
#pragma omp parallel
  {
    shared(g, 10);
#pragma omp single
    tasks(g, 10);
  }
  for (int i = 0; i < 10; i++) s += g[i];
  printf("called %g\n", s);
}

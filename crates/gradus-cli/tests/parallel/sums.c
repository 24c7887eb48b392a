// Gradients that add up in whatever order threads come: a team under a lock, sums by thread number, tasks, atomic
// sums. Prints values and gradients to the last bit.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <omp.h>
enum { N = 20000 };
static double x[N], g1[N], g2[N], g3[N], g4[N];
extern int enzyme_dup, enzyme_const;
double __enzyme_autodiff(void *, ...);
// a sum of each thread's own, put together under a lock
double team(const double *x, int n) {
  double all = 0;
#pragma omp parallel
  {
    double mine = 0;
#pragma omp for nowait
    for (int i = 0; i < n; i++) mine += sin(x[i] * x[(i * 7) % 64]);
#pragma omp critical
    all += mine;
  }
  return all * all;
}
// thread numbers
double ranks(const double *x, int n) {
  double part[64] = {0}, s = 0;
#pragma omp parallel
  {
    int me = omp_get_thread_num();
#pragma omp for
    for (int i = 0; i < n; i++) part[me] += x[i] * x[(i * 13) % 64] * 1.1;
  }
  for (int t = 0; t < 64; t++) s += part[t];
  return sin(s);
}
// tasks that read what others read
static double tree(const double *x, int lo, int hi) {
  if (hi - lo < 50) { double s = 0; for (int i = lo; i < hi; i++) s += x[i] * x[i % 64] + exp(x[lo % 7]); return s; }
  double a, b; int m = (lo + hi) / 2;
#pragma omp task shared(a)
  a = tree(x, lo, m);
  b = tree(x, m, hi);
#pragma omp taskwait
  return a * 0.5 + b;
}
double tasks(const double *x, int n) {
  double r = 0;
#pragma omp parallel
#pragma omp single
  r = tree(x, 0, n);
  return r;
}
// atomic updates
double atomics(const double *x, int n) {
  double h[8] = {0}, s = 0;
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
#pragma omp atomic
    h[i % 8] += x[i] * x[(i * 5) % 128];
  }
  for (int k = 0; k < 8; k++) s += h[k] * h[k];
  return s;
}
int main(void) {
  for (int i = 0; i < N; i++) x[i] = sin(i * 1.7) * exp(i % 17 - 8);
  __enzyme_autodiff((void *)team, enzyme_dup, x, g1, enzyme_const, N);
  __enzyme_autodiff((void *)ranks, enzyme_dup, x, g2, enzyme_const, N);
  __enzyme_autodiff((void *)tasks, enzyme_dup, x, g3, enzyme_const, N);
  __enzyme_autodiff((void *)atomics, enzyme_dup, x, g4, enzyme_const, N);
  printf("%a %a %a %a\n", team(x, N), ranks(x, N), tasks(x, N), atomics(x, N));
  for (int i = 0; i < N; i++) printf("%a %a %a %a\n", g1[i], g2[i], g3[i], g4[i]);
}

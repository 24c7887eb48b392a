// Programs that rely on tasks outside of all regions running in their order.
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static double g(const double *a, long n) { double s = 0; for (long i = 0; i < n; i++) s += a[i] * a[i]; return s; }
__attribute__((noinline)) void f1(double *restrict x, double *a, long n) {
  double p = 1;
  #pragma omp task shared(p)
  p = g(a, n) + 1;
  double q = p * 2;
  #pragma omp task
  a[0] = q;
  double r = g(a, n) + 3;
  #pragma omp taskwait
  x[0] = p; x[1] = q; x[2] = r;
}
__attribute__((noinline)) void f2(double *x, long n) {
  x[0] = 1;
  for (long i = 1; i < n; i++) {
    #pragma omp task firstprivate(i)
    x[i] = x[i - 1] + i;
  }
  double last = x[n - 1];
  #pragma omp taskwait
  x[0] = last;
}
__attribute__((noinline)) void f3(double *x, long n) {
  x[0] = 1;
  #pragma omp taskloop
  for (long i = 1; i < n; i++) x[i] = x[i - 1] + i;
  x[0] = x[n - 1];
}
__attribute__((noinline)) long f4(long n, long *count) {
  if (n < 2) { ++*count; return n; }
  long a, b;
  #pragma omp task shared(a)
  a = f4(n - 1, count);
  #pragma omp task shared(b)
  b = a + f4(n - 2, count);
  long c = b - a;
  #pragma omp taskwait
  return a + c;
}
__attribute__((noinline)) int f5(int n) {
  int s = 0, k = n;
  #pragma omp task shared(s, k)
  { s = k + 1; }
  k = s * 2;
  #pragma omp task shared(s, k)
  { s = s + k; }
  k += s;
  return k;
}
int main(void) {
  double x[300], *a = malloc(100 * sizeof *a);
  for (int i = 0; i < 100; i++) a[i] = i + 0.5;
  f1(x, a, 100); printf("%g %g %g\n", x[0], x[1], x[2]);
  f2(x, 300); printf("%g %g\n", x[0], x[299]);
  f3(x, 200); printf("%g %g\n", x[0], x[199]);
  long count = 0, r = f4(18, &count);
  printf("%ld %ld %d\n", r, count, f5(3));
}

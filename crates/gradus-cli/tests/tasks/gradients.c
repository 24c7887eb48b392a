// Tasks, and what is done beside them: gradients by WAY.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __GRADUS__
#include <gradus/cilk.h>
#else
#define cilk_spawn
#define cilk_sync
#endif
extern double __enzyme_autodiff(void *, ...);
extern double __enzyme_fwddiff(void *, ...);
extern int enzyme_const, enzyme_dup;
#if defined(HALVES)
// Both sides read what the other one reads, too.
static double energy(const double *x, int lo, int hi, int n) {
  if (hi - lo <= 16) {
    double s = 0;
    for (int i = lo; i < hi; i++) s += sin(x[i]) * x[(i + 1) % n];
    return s;
  }
  int m = lo + (hi - lo) / 2;
  double a = cilk_spawn energy(x, lo, m, n);
  double b = energy(x, m, hi, n);
  cilk_sync;
  return a * cos(b);
}
static double f(const double *x, int n) { return energy(x, 0, n, n); }
#elif defined(OPENMP)
static double energy(const double *x, int lo, int hi, int n) {
  if (hi - lo <= 16) {
    double s = 0;
    for (int i = lo; i < hi; i++) s += sin(x[i]) * x[(i + 1) % n];
    return s;
  }
  int m = lo + (hi - lo) / 2;
  double a, b;
#pragma omp task shared(a)
  a = energy(x, lo, m, n);
#pragma omp task shared(b)
  b = energy(x, m, hi, n);
#pragma omp taskwait
  return a * cos(b);
}
static double f(const double *x, int n) {
  double s;
#pragma omp parallel
#pragma omp single
  s = energy(x, 0, n, n);
  return s;
}
#elif defined(WRITES)
// Tasks write what is read later, over what was read before.
static void smooth(double *y, int lo, int hi) {
  if (hi - lo <= 16) {
    for (int k = 0; k < 3; k++)
      for (int i = lo + 1; i < hi; i++) y[i] = sin(y[i] + 0.5 * y[i - 1]);
    return;
  }
  int m = lo + (hi - lo) / 2;
  cilk_spawn smooth(y, lo, m);
  smooth(y, m, hi);
  cilk_sync;
  double mean = (y[m - 1] + y[m]) / 2;
  y[m - 1] = mean * y[m];
  y[m] = mean * mean;
}
static double f(const double *x, int n) {
  double *y = malloc(n * sizeof *y), s = 0;
  for (int i = 0; i < n; i++) y[i] = x[i];
  smooth(y, 0, n);
  for (int i = 0; i < n; i++) s += y[i] * x[i];
  free(y);
  return s;
}
#elif defined(THREE)
// Three tasks, of which the last needs what stands between them; a value of what is done beside them is used behind.
static double part(const double *x, int lo, int hi, double c) {
  double s = c;
  for (int i = lo; i < hi; i++) s = sin(s + x[i]);
  return s;
}
static double f(const double *x, int n) {
  double total = 0;
  for (int k = 0; k < 4; k++) {
    int lo = n * k / 4, m = (n * (k + 1) / 4 - lo) / 4;
    double a = cilk_spawn part(x, lo, lo + m, x[k]);
    double c = part(x, lo, lo + 2 * m, total);
    double b = cilk_spawn part(x, lo + m, lo + 2 * m, c);
    double d = cilk_spawn part(x, lo + 2 * m, lo + 3 * m, c * x[k]);
    double e = part(x, lo + m, lo + 4 * m, c);
    cilk_sync;
    total += a * b + c * d * e;
  }
  return total;
}
#elif defined(LISTED)
// A tree whose nodes hold numbers and pointers.
struct node { double value; struct node *left, *right; };
static struct node *made(const double *x, int lo, int hi) {
  if (lo >= hi) return 0;
  int m = (lo + hi) / 2;
  struct node *it = malloc(sizeof *it);
  it->value = x[m];
  it->left = made(x, lo, m);
  it->right = made(x, m + 1, hi);
  return it;
}
static double sum(const struct node *it, double scale) {
  if (!it) return scale;
  double a = cilk_spawn sum(it->left, scale * cos(it->value));
  double b = sum(it->right, scale + sin(it->value));
  cilk_sync;
  return sin(a * it->value + b);
}
static void end(struct node *it) {
  if (it) { end(it->left); end(it->right); free(it); }
}
static double f(const double *x, int n) {
  struct node *root = made(x, 0, n);
  double s = sum(root, 1);
  end(root);
  return s;
}
#elif defined(LOCKED)
// What a lock orders is no fork.
static double scale = 1;
static void add(const double *x, int lo, int hi) {
  if (hi - lo <= 16) {
    double s = 0;
    for (int i = lo; i < hi; i++) s += sin(x[i]);
#pragma omp critical
    scale += s * s;
    return;
  }
  int m = lo + (hi - lo) / 2;
#pragma omp task
  add(x, lo, m);
  add(x, m, hi);
#pragma omp taskwait
}
static double f(const double *x, int n) {
  scale = 1;
#pragma omp parallel
#pragma omp single
  add(x, 0, n);
  return scale;
}
#elif defined(CONDITION)
// Tasks of the upper levels may run later. Below they run where they are made, and at the lowest the second one reads
// what the first one left.
static double energy(const double *x, int lo, int hi, int n, int depth) {
  double a = 0, b = 0;
  if (hi - lo <= 16) {
#pragma omp task shared(a) if (depth < 2)
    for (int i = lo; i < hi; i++) a += sin(x[i]) * x[(i + 1) % n];
#pragma omp task shared(a, b) if (depth < 2)
    for (int i = lo; i < hi; i++) b += a * x[i];
#pragma omp taskwait
    return a + b;
  }
  int m = lo + (hi - lo) / 2;
#pragma omp task shared(a) if (depth < 3)
  a = energy(x, lo, m, n, depth + 1);
#pragma omp task shared(b) if (depth < 3)
  b = energy(x, m, hi, n, depth + 1);
#pragma omp taskwait
  return a * cos(b);
}
static double f(const double *x, int n) {
  double s;
#pragma omp parallel
#pragma omp single
  s = energy(x, 0, n, n, 0);
  return s;
}
#elif defined(INVERTED)
// The condition comes as a number, and what follows counts on it.
__attribute__((noinline)) static double part(const double *x, int n, int later, const double *use) {
  double a = 0, b = 0;
#pragma omp task shared(a) if (later)
  for (int i = 0; i < n; i++) a += x[i] * sin(x[i]);
  for (int i = 0; i < n; i++) b += (use ? a * use[i] : 1) * x[i] / n;
#pragma omp taskwait
  return a * b;
}
static double f(const double *x, int n) {
  double s;
#pragma omp parallel
#pragma omp single
  s = part(x, n, 0, x) * part(x, n, 1, 0);
  return s / n;
}
#elif defined(FINAL)
// What a final task makes runs in its order: the sum behind the task reads what it left.
__attribute__((noinline)) static double first(const double *x, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += x[i] * sin(x[i]);
  return s;
}
__attribute__((noinline)) static double second(const double *x, int n, const double *by) {
  double s = 0;
  for (int i = 0; i < n; i++) s += *by * x[i] / n;
  return s;
}
__attribute__((noinline)) static double part(const double *x, int n) {
  double a = 0, b = 0;
#pragma omp task shared(a)
  a = first(x, n);
  b = second(x, n, &a);
#pragma omp taskwait
  return a * b;
}
static double f(const double *x, int n) {
  double s;
#pragma omp parallel
#pragma omp single
#pragma omp task shared(s) final(n > 1)
  s = part(x, n);
  return s;
}
#elif defined(OUTSIDE)
// No region is around: what follows a task reads what it left, as does the next task.
__attribute__((noinline)) static double sum(const double *x, int n, const double *by) {
  double s = 0;
  for (int i = 0; i < n; i++) s += *by * sin(x[i]) / n;
  return s;
}
__attribute__((noinline)) static double part(const double *x, int n) {
  double a = 0, b = 0, c[8];
#pragma omp task shared(a)
  a = sum(x, n, x);
  b = sum(x, n, &a);
#pragma omp taskwait
  c[0] = a;
  for (int i = 1; i < 8; i++) {
#pragma omp task shared(c) firstprivate(i)
    c[i] = sum(x, n, &c[i - 1]);
  }
#pragma omp taskwait
  return 1000 * b + c[7];
}
static double f(const double *x, int n) { return part(x, n); }
#endif

static double at(const double *x, const double *v, int n, double h) {
  double *z = malloc(n * sizeof *z);
  for (int i = 0; i < n; i++) z[i] = x[i] + h * v[i];
  double s = f(z, n);
  free(z);
  return s;
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  double *x = malloc(n * sizeof *x), *v = malloc(n * sizeof *v), *g = calloc(n, sizeof *g);
  for (int i = 0; i < n; i++) { x[i] = 0.3 + sin(i * 1.1) / 5; v[i] = cos(i * 0.7); }
  __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, n);
  double r = 0, norm = 0;
  for (int i = 0; i < n; i++) { r += g[i] * v[i]; norm += g[i] * g[i]; }
  double fwd = __enzyme_fwddiff((void *)f, enzyme_dup, x, v, enzyme_const, n);
  double fd = (at(x, v, n, 1e-6) - at(x, v, n, -1e-6)) / 2e-6;
  printf("%.10g %.10g\n", sqrt(norm), r);
  return fabs(r - fwd) > 1e-9 * fabs(r) + 1e-12 || fabs(fd - r) > 1e-5 * fabs(r) + 1e-7;
}

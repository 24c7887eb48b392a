// Teams whose threads are told apart or wait for each other: gradients by WAY.
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#else
static int omp_get_max_threads(void) { return 1; }
static int omp_get_thread_num(void) { return 0; }
static int omp_get_num_threads(void) { return 1; }
static void omp_set_num_threads(int threads) {}
#endif
extern double __enzyme_autodiff(void *, ...);
extern double __enzyme_fwddiff(void *, ...);
extern int enzyme_const, enzyme_dup;
#if defined(BARRIERS)
static double f(const double *x, int n) {
  double *y = malloc(n * sizeof *y), *z = malloc(n * sizeof *z), s = 0;
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads();
    int lo = (long)t * n / m, hi = (long)(t + 1) * n / m;
    for (int i = lo; i < hi; i++) y[i] = sin(x[i]);
#pragma omp barrier
    for (int k = 0; k < 5; k++) {
      for (int i = lo; i < hi; i++) z[i] = y[i] * y[(i + 1) % n] + 0.5 * y[(i + n - 1) % n];
#pragma omp barrier
      for (int i = lo; i < hi; i++) y[i] = cos(z[i]);
#pragma omp barrier
    }
  }
  for (int i = 0; i < n; i++) s += y[i] * x[i];
  free(y); free(z);
  return s;
}
#elif defined(PARTIAL)
static double f(const double *x, int n) {
  int threads = omp_get_max_threads();
  double *part = malloc(threads * sizeof *part), s = 0;
#pragma omp parallel
  {
    int t = omp_get_thread_num();
    double own = 0;
#pragma omp for nowait
    for (int i = 0; i < n; i++) own += sin(x[i]) * x[i];
    part[t] = own;
  }
  for (int t = 0; t < threads; t++) s += part[t];
  free(part);
  return s * s;
}
#elif defined(STEPS)
static double f(const double *x, int n) {
  double *y = malloc(n * sizeof *y), *z = malloc(n * sizeof *z), s = 0, norm = 0;
  for (int i = 0; i < n; i++) y[i] = x[i];
#pragma omp parallel
  {
    double own[8];
    for (int k = 0; k < 6; k++) {
#pragma omp single
      norm = 0;
#pragma omp for reduction(+:norm)
      for (int i = 0; i < n; i++) norm += y[i] * y[i];
      for (int j = 0; j < 8; j++) own[j] = j * norm;
#pragma omp for schedule(dynamic, 7)
      for (int i = 0; i < n; i++) {
        own[i % 8] = y[i] / sqrt(norm) + x[i];
        z[i] = own[i % 8] * own[i % 8];
      }
#pragma omp for
      for (int i = 0; i < n; i++) y[i] = z[i] + 0.1 * z[(i + 3) % n];
    }
#pragma omp critical
    s += 0 * own[0];
  }
  for (int i = 0; i < n; i++) s += y[i] * y[i];
  free(y); free(z);
  return s;
}
#elif defined(FLAGS)
static double f(const double *x, int n) {
  int flag[64] = {0};
  double s = 0, part[64];
  for (int t = 0; t < 64; t++) part[t] = 0;
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads();
    double own = 0;
    for (int i = t; i < n; i += m) own += x[i] * x[i];
    part[t] = own;
    flag[t] = 1;
  }
  int count = 0;
  for (int t = 0; t < 64; t++) count += flag[t];
  for (int t = 0; t < 64; t++) s += part[t] * count;
  return s;
}
#elif defined(SIZED)
static double f(const double *x, int n) {
  double *y = calloc(n, sizeof *y), s = 0;
#pragma omp parallel num_threads(4)
  {
    int t = omp_get_thread_num();
    for (int i = t * n / 4; i < (t + 1) * n / 4; i++) y[i] = x[i] * x[i];
#pragma omp barrier
    y[t] += y[n - 1 - t];
  }
  for (int i = 0; i < n; i++) s += y[i];
  free(y);
  return s;
}
#elif defined(COPIED)
static double f(const double *x, int n) {
  double *y = calloc(n, sizeof *y), s = 0, a, b = 1, c = 0;
#pragma omp parallel private(a)
  {
    for (int k = 0; k < 3; k++) {
#pragma omp single copyprivate(a)
      a = x[k] * x[k + 1];
#pragma omp master
      b = b * a + x[k];
#pragma omp barrier
#pragma omp sections
      {
#pragma omp section
        y[0] += a * b;
#pragma omp section
        y[1] += a * x[2];
      }
#pragma omp for lastprivate(c) schedule(guided)
      for (int i = 2; i < n; i++) { c = x[i] * b; y[i] += c * x[i] * a; }
#pragma omp critical
      if (omp_get_thread_num() == 0) s += a + c;
#pragma omp barrier
    }
  }
  for (int i = 0; i < n; i++) s += y[i];
  free(y);
  return s;
}
#elif defined(WORK)
// What each of so many threads leaves is a function of their number.
static double f(const double *x, int n) {
  double *part = calloc(omp_get_max_threads(), sizeof *part), s = 0;
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads();
    double own = 1;
    for (int i = t; i < n; i += m) own += sin(x[i]) * own / n;
    part[t] = own * own;
#pragma omp barrier
    if (t + 1 < m) own = part[t + 1];
#pragma omp barrier
    part[t] += own * x[t];
  }
  for (int t = 0; t < omp_get_max_threads(); t++) s += part[t];
  free(part);
  return s * omp_get_max_threads();
}
#elif defined(DEALT)
// Loops without a barrier behind them, dealt out alike, and memory of each thread's own that they write.
static double f(const double *x, int n) {
  double *y = calloc(n, sizeof *y), *z = calloc(n, sizeof *z), s = 0, most = 0;
#pragma omp parallel
  {
    double own[5] = {0};
#pragma omp for schedule(static) nowait
    for (int i = 0; i < n; i++) { own[i % 5] += x[i] * x[i]; y[i] = own[i % 5] - own[i % 5] + x[i]; }
#pragma omp for schedule(static) nowait
    for (int i = 0; i < n; i++) z[i] = y[i] * y[i] * x[n - 1 - i];
#pragma omp barrier
#pragma omp for schedule(static, 3)
    for (int i = 0; i < n; i++) y[i] = z[i] * z[(i + 1) % n];
#pragma omp for schedule(guided, 4) reduction(+ : s) reduction(max : most)
    for (int i = 0; i < n; i++) { s += y[i] * sin(x[i]); if (y[i] > most) most = y[i]; }
#pragma omp critical
    for (int j = 0; j < 5; j++) s += own[j];
#pragma omp barrier
#pragma omp single nowait
    z[0] += s;
  }
  s = z[0] * z[0] + most;
  free(y); free(z);
  return s;
}
#elif defined(MOVED)
// The number of threads is another one when the reverse pass comes.
static double f(const double *x, int n) {
  double *part = calloc(omp_get_max_threads(), sizeof *part), s = 0;
  int threads = omp_get_max_threads();
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads();
    for (int k = 0; k < 3; k++) {
      for (int i = t * n / m; i < (t + 1) * n / m; i++) part[t] += x[i] * sin(part[t] + x[i]);
#pragma omp barrier
    }
  }
  for (int t = 0; t < threads; t++) s += part[t] * part[t];
  omp_set_num_threads(threads + 3);
  free(part);
  return s;
}
#elif defined(CALLED)
// A function that its callers' threads share the work of, and meet in.
static __attribute__((noinline)) void step(const double *y, double *z, int n, int turn) {
#pragma omp for
  for (int i = 0; i < n; i++) z[i] = y[i] * y[(i + turn) % n];
#pragma omp single
  z[turn] += y[0];
}
static double f(const double *x, int n) {
  double *y = malloc(n * sizeof *y), *z = malloc(n * sizeof *z), s = 0;
  for (int i = 0; i < n; i++) y[i] = x[i];
#pragma omp parallel
  for (int k = 0; k < 4; k += 2) {
    step(y, z, n, k);
    step(z, y, n, k + 1);
  }
  for (int i = 0; i < n; i++) s += y[i];
  free(y); free(z);
  return s;
}
#elif defined(LENGTHS)
// Arrays of each thread's own, whose length is found at run time; a stack does not hold all that the steps have.
static double f(const double *x, int n) {
  double *y = malloc(n * sizeof *y), s = 0;
  for (int i = 0; i < n; i++) y[i] = x[i];
  for (int k = 0; k < 300; k++) {
    int w = 3 + (k + n) % 5;
#pragma omp parallel
    {
      double own[w], far[4000 + w];
      for (int j = 0; j < w; j++) own[j] = 0;
#pragma omp for schedule(static) nowait
      for (int i = 0; i < n; i++) {
        far[3999] = y[i];
        for (int j = 0; j < w; j++) own[j] = 0.1 * far[3999] * j + 0.5 * x[i];
        double most = own[0];
        for (int j = 1; j < w; j++)
          if (own[j] * (j & 1) > most) most = own[j];
        y[i] = sin(most);
      }
    }
  }
  for (int i = 0; i < n; i++) s += y[i];
  free(y);
  return s;
}
#elif defined(ASKED)
// A function asks which rank it is on.
static __attribute__((noinline)) void part(double *y, const double *z, int n) {
  int t = omp_get_thread_num(), m = omp_get_num_threads();
  for (int i = (long)t * n / m; i < (long)(t + 1) * n / m; i++) y[i] = sin(z[i]) * z[n - 1 - i];
#pragma omp barrier
}
static double f(const double *x, int n) {
  double *y = malloc(n * sizeof *y), *z = malloc(n * sizeof *z), s = 0;
  for (int i = 0; i < n; i++) y[i] = x[i];
#pragma omp parallel
  for (int k = 0; k < 4; k++) {
    part(z, y, n);
    part(y, z, n);
  }
  for (int i = 0; i < n; i++) s += y[i];
  free(y); free(z);
  return s;
}
#elif defined(SCATTERED)
// A function that the threads call adds atomically at places that follow from their numbers.
__attribute__((noinline)) static void scatter(const double *x, double *y, int n) {
#pragma omp for schedule(static, 8)
  for (int i = 0; i < n; i++) {
    double d = x[i] * sin(x[(i + 1) % n]);
#pragma omp atomic
    y[i] += d;
#pragma omp atomic
    y[(i + 1) % n] -= d * x[i];
  }
}
static double f(const double *x, int n) {
  double *y = calloc(n, sizeof *y), s = 0;
#pragma omp parallel
  {
    scatter(x, y, n);
#pragma omp for
    for (int i = 0; i < n; i++) y[i] *= y[i] * x[i];
  }
  for (int i = 0; i < n; i++) s += y[i];
  free(y);
  return s;
}
#elif defined(PI)
// Each thread takes every so-many-th number, and makes floating-point numbers of them.
static double f(const double *x, int n) {
  double total = 0, h = 1.0 / n;
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads();
    double s = 0;
    for (int i = t; i < n; i += m) {
      double y = (i + 0.5) * h;
      s += 4 / (1 + y * y * x[i % 10]);
    }
#pragma omp critical
    total += s;
  }
  return total * h;
}
#elif defined(PIECES)
static double f(const double *x, int n) {
  double total = 0, h = 1.0 / n;
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads(), piece = n / m;
    int lo = t * piece, hi = t == m - 1 ? n : lo + piece;
    double s = 0;
    for (int i = lo; i < hi; i++) {
      double y = (i + 0.5) * h;
      s += 4 / (1 + y * y * x[i]);
    }
#pragma omp atomic
    total += s;
  }
  return total * h;
}
#elif defined(SLOTS)
// The sums lie by thread, and a region says how many there are.
static double f(const double *x, int n) {
  double part[64], total = 0, h = 1.0 / n;
  int threads = 1;
#pragma omp parallel
  {
    long t = omp_get_thread_num(), m = omp_get_num_threads();
    if (t == 0) threads = m;
    part[t] = 0;
    for (long i = t; i < n; i += m) {
      double y = (i + 0.5) * h;
      part[t] += sin(x[i] * y);
    }
  }
  for (int t = 0; t < threads; t++) total += part[t];
  return total * h;
}
#elif defined(BESIDE)
// Beside such a region stands a parallel loop.
static double f(const double *x, int n) {
  double *y = malloc(n * sizeof *y), total = 0, h = 1.0 / n;
#pragma omp parallel for
  for (int i = 0; i < n; i++) y[i] = sin(x[i]);
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads();
    double s = 0;
    for (int i = t; i < n; i += m) s += 4 / (1 + (i + 0.5) * h * y[i]);
#pragma omp critical
    total += s;
  }
  free(y);
  return total * h;
}
#elif defined(ALONE) || defined(TOLD)
// A loop that is right on one thread, which is found there; there are more when the reverse pass comes.
static double count;
static __attribute__((noinline)) void ask(void) {
#ifdef TOLD
  count = omp_get_max_threads();
#else
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads();
    if (t == 0) count = m + 0.5;
  }
#endif
}
static __attribute__((noinline)) void follow(const double *x, double *y, int n) {
#pragma omp parallel for
  for (int i = 0; i < 50 * n; i++) {
    int k = x[i % n] > 100;
    y[k] += sin(x[i % n] + 3 * y[k]) / (50 * n);
  }
}
static double f(const double *x, int n) {
  double y[2] = {0.4, 0};
  ask();
  if (count < 2) follow(x, y, n);
  else
    for (int i = 0; i < 50 * n; i++) y[0] += sin(x[i % n] + 3 * y[0]) / (50 * n);
  omp_set_num_threads(4);
  return y[0];
}
#elif defined(KEPT)
// A thread that waits for what another one writes: one thread runs it in a derivative.
static double f(const double *x, int n) {
  double s = 0;
  int turn = 0;
#pragma omp parallel
  {
    int t = omp_get_thread_num(), m = omp_get_num_threads(), now = -1;
    double own = 0;
    for (int i = t; i < n; i += m) own += x[i] * x[i];
    while (now != t) {
#pragma omp atomic read seq_cst
      now = turn;
    }
    s += own;
#pragma omp atomic write seq_cst
    turn = t + 1;
  }
  return s * s;
}
#endif

static int wanted;
static double at(const double *x, const double *v, int n, double h) {
  double *z = malloc(n * sizeof *z);
  for (int i = 0; i < n; i++) z[i] = x[i] + h * v[i];
  omp_set_num_threads(wanted);
  double s = f(z, n);
  free(z);
  return s;
}
int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1000;
  double *x = malloc(n * sizeof *x), *v = malloc(n * sizeof *v), *g = calloc(n, sizeof *g);
  for (int i = 0; i < n; i++) { x[i] = 0.3 + sin(i * 1.1) / 5; v[i] = cos(i * 0.7); }
  wanted = omp_get_max_threads();
  __enzyme_autodiff((void *)f, enzyme_dup, x, g, enzyme_const, n);
  double r = 0, norm = 0;
  for (int i = 0; i < n; i++) { r += g[i] * v[i]; norm += g[i] * g[i]; }
  omp_set_num_threads(wanted);
  double fwd = __enzyme_fwddiff((void *)f, enzyme_dup, x, v, enzyme_const, n);
  double fd = (at(x, v, n, 1e-6) - at(x, v, n, -1e-6)) / 2e-6;
  printf("%.10g %.10g\n", sqrt(norm), r);
  return fabs(r - fwd) > 1e-9 * fabs(r) + 1e-12 || fabs(fd - r) > 1e-5 * fabs(r) + 1e-7;
}

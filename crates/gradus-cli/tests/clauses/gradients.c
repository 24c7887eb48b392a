// Gradients of loops with clauses, by WAY: chunks, last values, steps, conditions, structures of a thread's own. What
// iterations meet in is a chunk's.
#include <gradus.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#define CHUNK 3
#if defined(PRIVATE)
struct body {
  double at, speed;
  int kind;
  double pull[3];
};
struct short_one {
  int kind;
  double at;
};
static double bent(struct body b) { return sin(b.at) * b.speed + b.pull[b.kind]; }
static double straight(struct body b) { return b.at * b.speed * b.speed; }
__attribute__((noinline)) static double weighed(const struct short_one *s) { return s->kind * s->at * s->at; }
#endif
#if defined(CALLED)
struct cell {
  int rounds;
  double at[4];
};
__attribute__((noinline)) static double settled(struct cell *c) {
  double sum = 0;
  for (int k = 0; k < c->rounds; k++) {
    sum += sin(c->at[k & 3] * k);
    c->at[k & 3] = c->at[k & 3] * 0.9 + 0.1 * sum;
  }
  return sum;
}
#endif
static double f(const double *in, double *x, double *y, double *z, long n, int chunk) {
  double sum = 0, last = 0, other = 0;
#if defined(REGION)
#pragma omp parallel
  {
#pragma omp for schedule(static, CHUNK) nowait
    for (long i = 0; i < n; i++) x[i] = sin(in[i]);
#pragma omp for schedule(static, CHUNK) nowait
    for (long i = 0; i < n; i++) y[i] = x[i] * x[i] * in[i];
#pragma omp for schedule(static, CHUNK) reduction(+ : sum)
    for (long i = 0; i < n; i++) {
      z[i] = y[i] + x[i] * y[i];
      sum += z[i];
    }
#pragma omp for schedule(static, chunk)
    for (long i = n - 1; i >= 0; i -= 3) z[i] += in[i] * z[i];
#pragma omp for schedule(static, chunk) collapse(2)
    for (int i = 0; i < 5; i++)
      for (int j = 0; j < n; j++)
        if (j % 5 == i) y[j] += z[j] * in[j];
  }
#elif defined(LOOPS)
  for (long i = 0; i < n; i++) z[i] = 1;
#pragma omp parallel for schedule(static, CHUNK)
  for (unsigned i = 0; i < (unsigned)n; i++) y[i / CHUNK] += in[i] * in[i] * (y[i / CHUNK] + 1);
#pragma omp parallel for schedule(static, 1) lastprivate(last)
  for (long i = 0; i < n; i++) {
    last = sin(y[i]) * in[i];
    z[i] = last;
  }
#pragma omp parallel for lastprivate(last)
  for (long i = 0; i < n; i++) {
    last = sin(z[i]) * in[i] + y[i];
    x[i] = last * last;
  }
  sum += last * last;
#pragma omp parallel for schedule(static, chunk) lastprivate(other) firstprivate(sum)
  for (unsigned long i = 3; i < (unsigned long)n; i += 7) {
    other = in[i] * in[i - 3];
    z[i] += other * sum;
  }
  sum += other;
  long at = 1;
#pragma omp parallel for linear(at : 2)
  for (long i = 0; i < n / 2 - 1; i++) {
    x[at] += in[i] * in[at];
    at += 2;
  }
  sum += at;
#elif defined(CONDITIONS)
#pragma omp parallel for if (n > 50)
  for (long i = 0; i < n; i++) x[i] = sin(in[i]) * in[i];
#pragma omp parallel if (chunk > 2) num_threads(3)
  {
#pragma omp for schedule(static, CHUNK)
    for (long i = 0; i < n; i++) y[i] = x[i] * exp(-x[(i + 1) % n]);
#pragma omp for
    for (long i = 0; i < n; i++) z[i] = y[n - 1 - i] * in[i];
  }
#pragma omp parallel for if (n > 50) reduction(+ : sum)
  for (long i = 0; i < n; i++) sum += y[i] * (i + 1) + x[i] * z[i];
#pragma omp parallel for if (n < 0)
  for (long i = 1; i < n; i++) x[i] += x[i - 1] * in[i] * 0.5;
#elif defined(PRIVATE)
  struct body *all = malloc((n + 1) * sizeof *all), one;
  struct short_one other_one;
  double (*how)(struct body) = chunk > 3 ? bent : straight;
#pragma omp parallel for private(one)
  for (long i = 0; i < n; i++) {
    one = (struct body){in[i], in[i] * in[i], i % 3, {1, in[i], 3}};
    all[i] = one;
  }
#pragma omp parallel for private(one) schedule(static, CHUNK)
  for (long i = 0; i < n; i++) {
    one = all[n - 1 - i];
    one.at *= in[i];
    x[i] = how(one);
  }
double work[50];
#pragma omp parallel for private(other_one, work)
  for (long i = 0; i < n; i++) {
    if (in[i] > 0.5) {
      other_one.kind = 2;
      other_one.at = in[i] * x[i];
    } else {
      other_one.at = x[i];
      other_one.kind = (int)i;
    }
    for (int k = 0; k < 50; k++) work[k] = in[i] * k;
    y[i] = weighed(&other_one) + work[i % 50] * in[i];
  }
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < n; i++) sum += how(all[i]) * y[i];
  free(all);
#elif defined(CALLED)
#pragma omp parallel for
  for (long i = 0; i < n; i++) {
    struct cell c = {7, {in[i], in[i] + 1, in[i] * in[i], 2}};
    y[i] = settled(&c) * in[i];
  }
#endif
  for (long i = 0; i < n; i++) sum += x[i] + y[i] * (i + 1) + z[i] * 0.5;
  return sum;
}
int main(int count, char **words) {
  long n = atol(words[1]), room = n + 8;
  double *in = calloc(room, 8), *x = calloc(room, 8), *y = calloc(room, 8), *z = calloc(room, 8);
  double *in_adj = calloc(room, 8), *x_adj = calloc(room, 8), *y_adj = calloc(room, 8), *z_adj = calloc(room, 8);
  for (int chunk = 1; chunk < 12; chunk += 5) {
    for (int again = 0; again < 2; again++) {
      for (long i = 0; i < n; i++) {
        in[i] = 0.5 + 0.25 * sin(i);
        x[i] = y[i] = z[i] = in_adj[i] = x_adj[i] = y_adj[i] = z_adj[i] = 0;
      }
      if (again)
        gradus_vjp(f, gradus_dup, in, in_adj, gradus_dup, x, x_adj, gradus_dup, y, y_adj, gradus_dup, z, z_adj, n, chunk);
      else
        printf("%.9g", f(in, x, y, z, n, chunk));
    }
    double norm = 0, along = 0;
    for (long i = 0; i < n; i++) {
      norm += in_adj[i] * in_adj[i];
      along += in_adj[i] * cos(i);
    }
    printf(" %.9g %.9g\n", sqrt(norm), along);
  }
  return 0;
}

// Sums and extremes by hand that begin with what is not neutral: what one thread gives.
#include <stdio.h>
#include <stdlib.h>
int main(int c, char **v) {
  int n = atoi(v[1]), pi = 0, sum = 5 * c, most = -1000;
  long product = 1;
  double dp = 0, least = 1e9, words = 0, begun = 2.5 * c;
  double *x = calloc(n + 1, sizeof *x);
  for (int i = 0; i <= n; i++) x[i] = i % 17;
#pragma omp parallel firstprivate(sum)
  {
#pragma omp for
    for (int i = 0; i < n; i++) sum += x[i];
#pragma omp critical
    pi += sum;
  }
#pragma omp parallel
  {
    double s = 5;
    long p = 3;
    int m = x[0];
    double l = 3;
#pragma omp for
    for (int i = 0; i < n; i++) {
      s += x[i];
      p *= i % 3 + 1;
      m = m > x[i] ? m : x[i];
      l = x[i] + 2 < l ? x[i] + 2 : l;
    }
#pragma omp critical
    {
      dp += s;
      product *= p;
      most = most > m ? most : m;
      least = l < least ? l : least;
    }
  }
#pragma omp parallel firstprivate(begun)
  {
#pragma omp for
    for (int i = 0; i < n; i++) begun += x[i];
#pragma omp critical
    words += begun;
  }
  printf("%d %g %ld %d %g %g\n", pi, dp, product, most, least, words);
}

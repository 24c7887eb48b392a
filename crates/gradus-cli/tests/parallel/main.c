#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int number(void); int count(void); int most(void); int inside(void);
void scatter(double *sums, long i); void shared(int *a, long n); void dynamic(int *a, long n);
int combined(const int *a, long n); void once(int *calls, int *told); void ordered_in(int *a, long n, int *next);
void add_locked(long *s); void slices(int *a, long n); void nested(int *a, long n);
long tasks(int depth);
static void expect(int ok, const char *what) { if (!ok) { printf("wrong: %s\n", what); exit(1); } }
int main(void) {
  enum { N = 4000 };
  static int a[N]; long n = N;
  expect(number() == 0 && count() == 1 && !inside(), "outside");
  int threads = most();
  // Sums by thread number in another file: each number is one thread's at a time.
  double *sums = calloc(16 * (threads + 1), sizeof *sums);
  #pragma omp parallel for
  for (long i = 0; i < n; i++) scatter(sums, i);
  double sum = 0;
  for (int t = 0; t < threads; t++) sum += sums[16 * t];
  expect(sum == n * (n - 1) / 2.0, "sums by thread number");
  expect(sums[16 * threads] == 0, "numbers below the number of threads");
  // Orphans in another file.
  #pragma omp parallel
  { shared(a, n); dynamic(a, n); }
  for (long i = 0; i < n; i++) expect(a[i] == 2 * i, "shared loops");
  shared(a, n);
  for (long i = 0; i < n; i++) expect(a[i] == 3 * i, "a shared loop outside of a region");
  int bad = 0;
  #pragma omp parallel
  {
    if (combined(a, n) != 3 * (N - 1) * (N / 2)) {
      #pragma omp atomic
      bad++;
    }
  }
  expect(!bad, "a reduction");
  int calls = 0, told = 0;
  #pragma omp parallel
  once(&calls, &told);
  expect(calls == 1 && told == 0, "single and copyprivate");
  int next = 0;
  #pragma omp parallel
  ordered_in(a, n, &next);
  expect(next == n, "ordered");
  // One lock, taken in a raised and in a kept place.
  long s = 0;
  #pragma omp parallel
  for (int i = 0; i < 1000; i++) {
    #pragma omp critical(adds)
    s++;
    add_locked(&s);
  }
  expect(s % 2000 == 0 && s > 0, "one lock");
  // Rank arithmetic in another file.
  memset(a, 0, sizeof a);
  #pragma omp parallel
  slices(a, n);
  for (long i = 0; i < n; i++) expect(a[i] == 1, "slices by rank");
  #pragma omp parallel num_threads(2)
  slices(a, n);
  for (long i = 0; i < n; i++) expect(a[i] == 2, "slices of two ranks");
  #pragma omp parallel for
  for (int k = 0; k < 8; k++) nested(a + k * (n / 8), n / 8);
  for (long i = 0; i < n; i++) expect(a[i] == 3, "nested regions");
  omp_set_num_threads(3);
  #pragma omp parallel for
  for (long i = 0; i < n; i++) if (number() >= 3) bad = 1;
  expect(!bad && most() >= 3, "three threads");
  long leaves;
  #pragma omp parallel
  #pragma omp single
  leaves = tasks(8);
  expect(leaves == 256, "tasks");
  puts("right");
}

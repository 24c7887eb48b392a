#include <stdlib.h>
static double *work;
static int room;
static double *need(int n) {
  if (n > room) {
    free(work);
    work = malloc(n * sizeof *work);
    room = n;
  }
  return work;
}
double grown(int n, const double *x) {
  double sum = 0, *at = need(n);
  for (int i = 0; i < n; i++)
    at[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sum += at[i] * at[n - 1 - i];
  return sum;
}

static double *longer;
static float *shorter;
static int length;
static void grow(int n) {
  if (n <= length)
    return;
  longer = realloc(longer, n * sizeof *longer);
  shorter = realloc(shorter, n * sizeof *shorter);
  length = n;
}
double moved(int n, const double *x) {
  double sum = 0;
  grow(2);
  longer[0] = x[0];
  longer[1] = x[0] * x[1];
  grow(n);
  for (int i = 2; i < n; i++)
    longer[i] = longer[i - 1] * x[i];
  for (int i = 0; i < n; i++)
    sum += longer[i] * longer[i];
  return sum;
}

static double *tested;
static int tested_room;
double grown_with_tests(int n, const double *x) {
  double sum = 0;
  if (n > tested_room) {
    double *longer = realloc(tested, n * sizeof *tested);
    if (!longer)
      abort();
    tested = longer;
    tested_room = n;
  }
  for (int i = 0; i < n; i++)
    tested[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sum += tested[i] * tested[n - 1 - i];
  return sum;
}

static double *made;
void make(int n) {
  made = calloc(n, sizeof *made);
  made[0] = 3;
}
double made_elsewhere(int n, const double *x) {
  double sum = 0;
  if (!made)
    make(n);
  sum = made[0] * x[0];
  for (int i = 1; i < n; i++)
    made[i] = x[i] * x[i];
  for (int i = 1; i < n; i++)
    sum += made[i] * x[0];
  return sum;
}

static double *halves;
double in_halves(int n, const double *x) {
  double sum = 0;
  if (!halves)
    halves = malloc(2 * 64 * sizeof *halves);
  double *now = halves, *next = halves + 64;
  for (int i = 0; i < n; i++)
    now[i] = x[i];
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < n; i++)
      next[i] = now[i] * now[(i + 1) % n];
    double *t = now;
    now = next;
    next = t;
  }
  for (int i = 0; i < n; i++)
    sum += now[i];
  return sum;
}

static double *step;
static int steps;
double in_a_loop(int n, const double *x) {
  double sum = 1;
  for (int k = 1; k <= n; k++) {
    if (k > steps) {
      free(step);
      step = malloc(k * sizeof *step);
      steps = k;
    }
    for (int i = 0; i < k; i++)
      step[i] = x[i] * sum;
    sum = 0;
    for (int i = 0; i < k; i++)
      sum += step[i] * step[i];
  }
  return sum;
}

static double *first, *second;
double swapped(int n, const double *x) {
  double sum = 0;
  if (!first) {
    first = malloc(n * sizeof *first);
    second = malloc(n * sizeof *second);
  }
  for (int i = 0; i < n; i++)
    first[i] = x[i] * x[i];
  double *t = first;
  first = second;
  second = t;
  for (int i = 0; i < n; i++)
    sum += second[i];
  return sum;
}

static double *shown;
double *show(void) { return shown; }
double given_away(int n, const double *x) {
  double sum = 0;
  if (!shown)
    shown = malloc(n * sizeof *shown);
  for (int i = 0; i < n; i++)
    shown[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sum += shown[i];
  return sum;
}

static double *hidden;
static double *reveal(void) { return hidden; }
double *(*revealer)(void) = reveal;
double given_by_pointer(int n, const double *x) {
  double sum = 0;
  if (!hidden)
    hidden = malloc(n * sizeof *hidden);
  for (int i = 0; i < n; i++)
    hidden[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sum += hidden[i] * x[0];
  return sum;
}

static double *left;
static int left_room;
void drop(void) {
  free(left);
  left_room = 0;
}
double dangling(int n, const double *x) {
  double sum = 0;
  if (n > left_room) {
    left = malloc(n * sizeof *left);
    left_room = n;
  }
  for (int i = 0; i < n; i++)
    left[i] = x[i] * x[i];
  for (int i = 0; i < n; i++)
    sum += left[i];
  return sum;
}

/* A comparison that replaces the block. */
static double *other;
static void replace(int n) {
  free(other);
  other = malloc(n * sizeof *other);
}
static int compare(const void *a, const void *b) {
  replace(100);
  return *(const int *)a - *(const int *)b;
}
double replaced(int n, const double *x) {
  double sum = 0;
  int order[3] = {2, 1, 0};
  replace(n);
  for (int i = 0; i < n; i++)
    other[i] = x[i] * x[i];
  qsort(order, 3, sizeof *order, compare);
  for (int i = 0; i < n; i++)
    sum += other[i];
  return sum;
}

/* A comparison that computes active numbers. */
static double key[64];
static const double *given;
static int fill(const void *a, const void *b) {
  int i = *(const int *)a, j = *(const int *)b;
  key[i] = given[i] * given[i];
  key[j] = given[j] * given[j];
  return (key[i] > key[j]) - (key[i] < key[j]);
}
double filled(int n, const double *x) {
  double sum = 0;
  int order[64];
  given = x;
  for (int i = 0; i < n; i++)
    order[i] = i;
  qsort(order, n, sizeof *order, fill);
  for (int i = 0; i < n; i++)
    sum += key[i];
  return sum;
}

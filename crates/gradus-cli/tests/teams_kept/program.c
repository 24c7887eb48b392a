// What a thread has to itself, by ways that no iteration shows: each line is the same for any number of threads.
#include <stdio.h>
#include <stdlib.h>
enum { N = 3000 };
static double r[N];
void remember(int i, double v);
double remembered(int i);
static void print(const char *what) {
  double s = 0;
  for (int i = 0; i < N; i++) s += r[i] * (i % 11);
  printf("%s %.12g\n", what, s);
}

// Workspaces from a pool, taken under a lock, by a ticket, and by whoever comes.
struct node {
  struct node *next;
  double buf[30];
};
static struct node *pool;
__attribute__((noinline)) static struct node *get(void) {
  struct node *n;
#pragma omp critical(pool)
  {
    n = pool;
    pool = n->next;
  }
  return n;
}
__attribute__((noinline)) static void put(struct node *n) {
#pragma omp critical(pool)
  {
    n->next = pool;
    pool = n;
  }
}
static double rows[64][30];
static int next;
__attribute__((noinline)) static int ticket(void) { return __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED); }
static double worked(double *w, int i) {
  double s = 0;
  for (int k = 0; k < 30; k++) w[k] = i + k * (i % 3);
  for (int k = 0; k < 30; k++) s += w[(k * 7 + i) % 30] * k;
  return s;
}
static void workspaces(void) {
#pragma omp parallel
  {
    struct node *w = get();
#pragma omp for
    for (int i = 0; i < N; i++) r[i] = worked(w->buf, i);
    put(w);
  }
  print("pool");
#pragma omp parallel
  {
    int me = ticket();
#pragma omp for
    for (int i = 0; i < N; i++) r[i] = worked(rows[me], i);
  }
  print("ticket");
}

// The address of a thread's variable lies in a table when the second loop comes.
static double *table[N];
__attribute__((noinline)) static void keep(int i, double *at) { table[i] = at; }
static void addresses(void) {
#pragma omp parallel
  {
    double t;
#pragma omp for schedule(static)
    for (int i = 0; i < N; i++) {
      t = 42;
      keep(i, &t);
    }
#pragma omp for schedule(static)
    for (int i = 0; i < N; i++) {
      double w[40], s = 0;
      for (int k = 0; k < 40; k++) w[k] = i * k;
      for (int k = 0; k < 40; k++) s += w[(k * 7 + i) % 40];
      r[i] = *table[i] + s;
    }
  }
  print("address");
}

// A member of a union lies where the first member has none.
typedef float four __attribute__((vector_size(16), aligned(8), may_alias));
union both {
  struct {
    char a;
    double d, e;
  } s;
  struct {
    char z;
    short b;
    double d, e;
  } t;
};
static four sums[N];
static void unions(void) {
#pragma omp parallel
  {
    union both u;
#pragma omp for schedule(static)
    for (int i = 0; i < N; i++) {
      u.t.z = 1;
      u.t.b = 1000;
      u.t.d = i;
      u.t.e = i;
      sums[i] = *(four *)&u.t.d + *(four *)&u;
    }
#pragma omp for schedule(static)
    for (int i = 0; i < N; i++) {
      u.t.z = 2;
      u.t.d = i * 2;
      u.t.e = 3;
      r[i] = u.t.b;
      sums[i] += *(four *)&u.t.d + *(four *)&u;
    }
  }
  print("union");
}

// Iterations of one number are one thread's in both loops, and what is called remembers by thread.
static void threads_memory(void) {
  for (int again = 0; again < 5; again++) {
#pragma omp parallel
    {
#pragma omp for schedule(static)
      for (int i = 0; i < N; i++) remember(i, i * 1.5 + again);
#pragma omp for schedule(static)
      for (int i = 0; i < N; i++) r[i] = remembered(i);
    }
    print("thread");
  }
}

// Two threads that wait for each other, however few workers there are.
static int flags[2];
static void waits(void) {
  flags[0] = flags[1] = 0;
#pragma omp parallel for num_threads(2) schedule(static, 1)
  for (int i = 0; i < 2; i++) {
    r[i] = i + 1;
    __atomic_store_n(&flags[i], 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&flags[1 - i], __ATOMIC_ACQUIRE));
    r[i + 2] = r[1 - i] * 10;
  }
  print("waited");
}

int main(void) {
  for (int i = 0; i < 16; i++) {
    struct node *n = malloc(sizeof *n);
    n->next = pool;
    pool = n;
  }
  workspaces();
  addresses();
  unions();
  threads_memory();
  waits();
  return 0;
}

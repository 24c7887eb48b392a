// Loops of tasks: which iterations are a task, seen by what a task has of its own, and by what only one task may do.
#include <stdio.h>
enum { MOST = 4096 };
static int at[MOST], from[MOST];

// From how many pieces were numbered on their own: their number, the shortest, the longest, and whether all is there.
static void tell(const char *what, int n) {
  int pieces = 0, shortest = MOST, longest = 0, length = 0, right = 1;
  for (int i = 0; i < n; i++) {
    right &= from[i] == i * 3;
    if (at[i] == 1) {
      if (length && length < shortest) shortest = length;
      pieces++;
      length = 0;
    }
    right &= at[i] == ++length;
    if (length > longest) longest = length;
  }
  if (length && length < shortest) shortest = length;
  printf("%s %d: %d %d %d %d\n", what, n, pieces, n ? shortest : 0, longest, right);
  for (int i = 0; i < MOST; i++) at[i] = from[i] = 0;
}
#define PIECE(i) at[i] = ++own, from[i] = (i) * 3
static void pieces(int n, int g) {
  int own = 0;
  #pragma omp parallel
  #pragma omp single
  #pragma omp taskloop grainsize(g) firstprivate(own)
  for (int i = 0; i < n; i++) PIECE(i);
  tell("grainsize", n);
  #pragma omp parallel
  #pragma omp single
  #pragma omp taskloop grainsize(strict : g) firstprivate(own)
  for (int i = 0; i < n; i++) PIECE(i);
  tell("strict", n);
  #pragma omp parallel
  #pragma omp single
  #pragma omp taskloop num_tasks(g) firstprivate(own)
  for (int i = 0; i < n; i++) PIECE(i);
  tell("num_tasks", n);
  #pragma omp parallel
  #pragma omp single
  #pragma omp taskloop grainsize(40) firstprivate(own) collapse(2)
  for (unsigned long i = 0; i < (unsigned long)n / 5; i++)
    for (int j = 4; j >= 0; j--) PIECE(i * 5 + 4 - j);
  tell("collapse", n / 5 * 5);
}
__attribute__((noinline)) static void orphan(int n) {
  int own = 0;
  #pragma omp taskloop grainsize(7) firstprivate(own)
  for (int i = 0; i < n; i++) PIECE(i);
}
// What follows depends on the order of iterations: a task has all of them, or tasks are not deferred, or included.
static long ordered(int n, int no, int yes) {
  long one = 0, all = 0, now = 0, final = 0, never = 0;
  #pragma omp parallel
  #pragma omp single
  {
    #pragma omp taskloop num_tasks(1) shared(one)
    for (int i = 0; i < n; i++) one = one * 3 + i;
    #pragma omp taskloop grainsize(n) shared(all)
    for (int i = 0; i < n; i++) all = all * 3 + i;
    #pragma omp taskloop if(no) shared(now) grainsize(3)
    for (int i = 0; i < n; i++) now = now * 3 + i;
    #pragma omp taskloop if(0) shared(never)
    for (int i = 0; i < n; i++) never = never * 3 + i;
    #pragma omp task final(yes) shared(final)
    {
      #pragma omp taskloop shared(final)
      for (int i = 0; i < n; i++) final = final * 3 + i;
    }
    #pragma omp taskwait
  }
  return (one == all) + (all == now) + (now == never) + (never == final) + (one != 0);
}
static int in_final(int n, int yes) {
  static long sums[64], wanted;
  int wrong = 0;
  for (int i = 0; i < n; i++) wanted = wanted * 3 + i;
  #pragma omp parallel
  #pragma omp single
  #pragma omp taskloop final(yes) grainsize(2)
  for (int j = 0; j < 64; j++) {
    for (int i = 0; i < n; i++) {
      #pragma omp task
      sums[j] = sums[j] * 3 + i;
    }
    #pragma omp taskwait
  }
  for (int j = 0; j < 64; j++) wrong += sums[j] != wanted;
  return wrong;
}
int main(int argc, char **argv) {
  (void)argv;
  int last = -1, none = 0;
  pieces(1000, 30);
  pieces(10, 30);
  pieces(1000, 999);
  pieces(4096, 1);
  pieces(0, 4);
  #pragma omp parallel
  #pragma omp single
  orphan(100);
  tell("inside", 100);
  orphan(100);
  tell("outside", 100);
  printf("%ld %d\n", ordered(1000, argc - 1, argc), in_final(50, argc));
  #pragma omp parallel
  #pragma omp single
  {
    #pragma omp taskloop grainsize(7) lastprivate(last)
    for (int i = 100; i > 3; i -= 2) last = i;
    #pragma omp taskloop num_tasks(3) shared(none)
    for (int i = argc; i < 1; i++) none = i;
  }
  printf("%d %d\n", last, none);
}

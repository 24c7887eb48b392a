// Functions of another file that make tasks, called in regions that have become loops and teams: each time two tasks
// wait for each other.
#include <stdio.h>
extern void meet(void), meet_in_loop(int n);
extern int arrived;
static void told(const char *what, int wanted) {
  printf("%s %d\n", what, arrived == wanted);
  arrived = 0;
}
void (*volatile by_pointer)(void) = meet;
int main(void) {
#pragma omp parallel
#pragma omp single
  meet();
  told("single", 2);
#pragma omp parallel
#pragma omp master
  by_pointer();
  told("pointer", 2);
#pragma omp parallel for
  for (int i = 0; i < 1; i++) meet();
  told("loop", 2);
#pragma omp parallel
  {
#pragma omp barrier
#pragma omp single
    meet_in_loop(3);
  }
  told("team", 3);
}

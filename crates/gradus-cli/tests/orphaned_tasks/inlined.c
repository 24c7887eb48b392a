// Every construct is in an always-inlined function; plain functions, which regions call, contain these.
#include <omp.h>
#include <stdio.h>
#define TAKEN static inline __attribute__((always_inline))
#define ADD(k) __atomic_fetch_add(&count[k], 1, __ATOMIC_RELAXED)
enum { LOOP, CHUNKS, ASKED, SUM, SINGLE, SECTIONS, FIRST, LOCKED, MET, TASK, IN_TURN, DEEP, POINTED, KINDS };
static int count[KINDS], threads, sum, in_turn;

TAKEN void loop(void) {
#pragma omp for nowait
  for (int i = 0; i < 100; i++) ADD(LOOP);
#pragma omp for schedule(static, 3)
  for (int i = 0; i < 100; i++) ADD(CHUNKS);
#pragma omp for schedule(dynamic)
  for (int i = 0; i < 100; i++) ADD(ASKED);
}
TAKEN void summed(void) {
#pragma omp for reduction(+ : sum)
  for (int i = 0; i < 100; i++) sum += 1;
}
TAKEN void once(void) {
#pragma omp single
  count[SINGLE]++;
#pragma omp sections
  {
    ADD(SECTIONS);
#pragma omp section
    ADD(SECTIONS);
  }
}
TAKEN void told_apart(void) {
#pragma omp master
  count[FIRST]++;
#pragma omp critical
  count[LOCKED]++;
}
// Work before the barrier is visible after it.
TAKEN void meet(void) {
  static int there;
  __atomic_fetch_add(&there, 1, __ATOMIC_RELAXED);
#pragma omp barrier
  if (__atomic_load_n(&there, __ATOMIC_RELAXED) % threads) ADD(MET);
#pragma omp barrier
}
TAKEN void tasks(void) {
#pragma omp single
  for (int i = 0; i < 5; i++) {
#pragma omp task
    ADD(TASK);
  }
}
TAKEN void turns(void) {
#pragma omp for ordered schedule(dynamic)
  for (int i = 0; i < 20; i++) {
#pragma omp ordered
    in_turn += in_turn == i;
  }
}
TAKEN void inner(void) {
#pragma omp for
  for (int i = 0; i < 100; i++) ADD(DEEP);
}
TAKEN void middle(void) { inner(); }
static void deep(int times) {
  middle();
  if (times > 1) deep(times - 1);
}
TAKEN void pointed(void) {
#pragma omp for
  for (int i = 0; i < 100; i++) ADD(POINTED);
}
static void (*volatile pointer)(void) = pointed;

static void shares(void) { loop(); summed(); once(); }
__attribute__((noinline)) static void tells(void) { told_apart(); meet(); tasks(); }
void others(void) { deep(2); pointer(); pointed(); }
#ifdef IN_TURN_TOO
static void in_order(void) { turns(); }
#endif

int main(void) {
#pragma omp parallel
#pragma omp single
  threads = omp_get_num_threads();
#pragma omp parallel
  shares();
#pragma omp parallel
  {
    tells();
    others();
  }
#ifdef IN_TURN_TOO
#pragma omp parallel
  in_order();
  printf("in turn %d\n", in_turn);
#endif
  printf("loops %d %d %d, sum %d, single %d, sections %d, first %d, each locked %d, not met %d, tasks %d, deep %d, pointer %d\n",
         count[LOOP], count[CHUNKS], count[ASKED], sum, count[SINGLE], count[SECTIONS], count[FIRST],
         count[LOCKED] == threads, count[MET], count[TASK], count[DEEP], count[POINTED]);
  // Outside of any team.
  shares();
  printf("alone %d %d %d, sum %d, single %d, sections %d\n", count[LOOP], count[CHUNKS], count[ASKED], sum,
         count[SINGLE], count[SECTIONS]);
}

// What a final task is told of itself, and so what is told by what it makes and calls; and numbers of regions around.
#include <omp.h>
#include <stdio.h>
// One more for each call whose task is final. Tasks ask in the middle of what else asks.
static long counted(int n) {
  if (n < 2) return n;
  long x, y;
  #pragma omp task shared(x) final(n < 12)
  x = omp_in_final() ? counted(n - 1) + 2 : counted(n - 1);
  #pragma omp task shared(y) final(n < 12)
  y = counted(n - 2);
  #pragma omp taskwait
  return x + y + omp_in_final();
}
// The same by hand, with what the tasks know.
static long wanted(int n, int final) {
  if (n < 2) return n;
  int inside = final || n < 12;
  return wanted(n - 1, inside) + 2 * inside + wanted(n - 2, inside) + final;
}
__attribute__((noinline)) static int asked(void) { return omp_in_final(); }
__attribute__((noinline)) static void loop(long *s, int n) {
  #pragma omp taskloop shared(s)
  for (int i = 0; i < n; i++) *s = *s * 3 + i;
}
// A final task deep in the recursion, whose loop of tasks is included in it.
static long included(int n) {
  if (n == 0) {
    long s = 0;
    #pragma omp task final(1) shared(s)
    loop(&s, 300);
    #pragma omp taskwait
    return s;
  }
  long x, y;
  #pragma omp task shared(x)
  x = included(n - 1);
  y = included(n - 1);
  #pragma omp taskwait
  return x == y ? x : -1;
}
int main(void) {
  long r = 0, s = 0, ordered = 0;
  int plain = -1, final = -1, behind = -1, looped = 0;
  #pragma omp parallel
  #pragma omp single
  {
    r = counted(20);
    s = included(9);
    #pragma omp task shared(plain)
    plain = asked();
    #pragma omp task final(1) shared(final)
    final = asked();
    #pragma omp taskwait
    behind = asked();
    #pragma omp taskloop final(1) num_tasks(4)
    for (int i = 0; i < 10; i++) {
      #pragma omp atomic
      looped += omp_in_final();
    }
  }
  for (int i = 0; i < 300; i++) ordered = ordered * 3 + i;
  printf("%d %d %d %d %d %d %d\n", r == wanted(20, 0), s == ordered, plain, final, behind, looped, asked());

  int numbers = 0, sizes = 0, levels = 0, active = 0, inner = 0;
  omp_set_max_active_levels(3);
  #pragma omp parallel num_threads(2)
  {
    #pragma omp parallel num_threads(3)
    {
      #pragma omp atomic
      numbers += omp_get_ancestor_thread_num(1) * 100 + omp_get_ancestor_thread_num(2) * 10 +
                 omp_get_ancestor_thread_num(0) - 1000 * omp_get_ancestor_thread_num(3);
      #pragma omp atomic
      sizes += omp_get_team_size(1) * 100 + omp_get_team_size(2) * 10 + omp_get_team_size(0) -
               1000 * omp_get_team_size(3);
      #pragma omp atomic
      levels += omp_get_level();
      #pragma omp atomic
      active += omp_get_active_level();
    }
  }
  #pragma omp parallel num_threads(1)
  #pragma omp parallel num_threads(3)
  {
    #pragma omp atomic
    inner += omp_get_team_size(1) * 1000 + omp_get_ancestor_thread_num(2) * 100 + omp_get_active_level();
  }
  printf("%d %d %d %d %d\n", numbers, sizes, levels, active, inner);
}

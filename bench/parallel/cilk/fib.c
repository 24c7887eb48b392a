// recursion with nothing else to do
#include "page.h"

static long fib(long n) {
  if (n < 2) return n;
  TASKS;
  long x;
  SPAWN_INTO(x, fib(n - 1));
  long y = fib(n - 2);
  SYNC;
  return x + y;
}

int main(void) {
  long r = 0;
  volatile long n = 34;
  BENCH("fib", , r = fib(n));
  printf("%ld\n", r);
}

// recursion with nothing else to do
#include "page.h"

static long fib(long n) {
  if (n < 2) return n;
  long x = cilk_spawn fib(n - 1);
  long y = fib(n - 2);
  cilk_sync;
  return x + y;
}

int main(void) {
  long r = 0;
  volatile long n = 34;
  BENCH("fib", , r = fib(n));
  printf("%ld\n", r);
}

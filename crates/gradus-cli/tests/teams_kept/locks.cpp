// Locks of the program's own, taken twice in an iteration: what is read under the second one is what others left.
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <vector>
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static int word;
static void spin() {
  while (__atomic_exchange_n(&word, 1, __ATOMIC_ACQUIRE));
}
static void leave() { __atomic_store_n(&word, 0, __ATOMIC_RELEASE); }
static double work(int i) {
  double t = 0;
  for (int k = 0; k < 100; k++) t += (i * k) % 7;
  return t;
}
template <class Take, class Give> static void twice(int n, Take take, Give give) {
  long sum = 0, *of_heap = (long *)std::calloc(4, sizeof(long));
  std::vector<long> of_vector(4);
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    double done = work(i);
    take();
    sum += i;
    of_heap[1] += 1;
    of_vector[2] += 3;
    give();
    if (done < 0) std::puts("never");
    take();
    sum += 1;
    of_heap[1] += 2;
    of_vector[2] += 4;
    give();
  }
  std::printf("%ld %ld %ld\n", sum, of_heap[1], of_vector[2]);
  std::free(of_heap);
}
int main() {
  const int n = 20000;
  std::mutex m;
  twice(n, [] { pthread_mutex_lock(&gate); }, [] { pthread_mutex_unlock(&gate); });
  twice(n, [] { spin(); }, [] { leave(); });
  twice(n, [&] { m.lock(); }, [&] { m.unlock(); });
}

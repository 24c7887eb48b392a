// Regions that stay with OpenMP's library: one that is ordered, of variables that each thread has.
static long left;
#pragma omp threadprivate(left)

long kept(long n) {
  long order = 0, sum = 0;
  #pragma omp parallel reduction(+ : sum)
  {
    left = 0;
    #pragma omp for ordered schedule(dynamic, 3)
    for (long i = 0; i < n; i++) {
      left += i;
      #pragma omp ordered
      order = (order * 31 + i) % 1000003;
    }
    sum += left;
  }
  return order + sum;
}

// The number of threads that a region gets here.
long threads_here(void) {
  long threads = 0;
  #pragma omp parallel reduction(+ : threads)
  {
    left = 1;
    threads += left;
  }
  return threads;
}

#include "w.c"
void *__enzyme_augmentfwd(void *, ...);
void __enzyme_reverse(void *, ...);
void halves_of(int n, const double *x, double *dx) {
  void *tape = __enzyme_augmentfwd((void *)grown, n, x, dx);
  __enzyme_reverse((void *)grown, n, x, dx, 1.0, tape);
}

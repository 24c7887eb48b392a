#include <stddef.h>
#include <stdlib.h>
static void copy(void *to, const void *from, size_t n) { char *t = to; const char *f = from; while (n--) *t++ = *f++; }
struct s { double *p; int n; };
double g(double *x, int n) {
  struct s a, c;
  a.p = malloc(n * sizeof *a.p); a.n = n;
  copy(&c, &a, sizeof a);
  double s = 0;
  for (int i = 0; i < c.n; i++) c.p[i] = x[i] * x[i];
  for (int i = 0; i < n; i++) s += a.p[i];
  free(a.p);
  return s;
}

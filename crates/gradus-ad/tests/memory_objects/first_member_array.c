/* An array of structures whose first member is an array: the step between structures is not an index into the member. */
#include <stdlib.h>
struct S { double *a[4]; double *w; };
double g(double *x, int n) {
  double c = 3; double t = x[0]*x[1];
  struct S *p = malloc(n * sizeof *p);
  for (int i = 0; i < n; i++) { for (int j = 0; j < 4; j++) p[i].a[j] = &c; p[i].w = i == 2 ? &t : &c; }
  double r = *p[2].w * x[2] + *p[1].a[1];
  free(p); return r;
}

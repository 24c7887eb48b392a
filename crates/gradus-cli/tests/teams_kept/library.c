// What a thread put in here, it finds again.
#include <stdlib.h>
static __thread double *own;
void remember(int i, double v) {
  if (!own) own = calloc(3000, sizeof *own);
  double x = v;
  for (int k = 0; k < (i % 64) * 40; k++) x = x * 0.5 + v * 0.5;
  own[i] = x;
}
double remembered(int i) { return own ? own[i] : -1; }

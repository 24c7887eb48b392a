/* One block serves in turn as a table of pointers, as floats, and as pointers again. */
#include <stdlib.h>
static REAL g(const REAL *x, int n) {
  char *arena = malloc(n * (sizeof(void *) + 2 * sizeof(REAL)));
  REAL sum = 0;
  for (int round = 0; round < 3; round++) {
    const REAL **links = (const REAL **)arena;
    for (int i = 0; i < n; i++) links[i] = x + (i + round) % n;
    for (int i = 0; i < n; i++) sum += *links[i] * x[i];
    REAL *numbers = (REAL *)arena;
    for (int i = 0; i < 2 * n; i++) numbers[i] = x[i % n] * (i + round);
    for (int i = 0; i < 2 * n; i++) sum += numbers[i] * numbers[2 * n - 1 - i];
  }
  free(arena);
  return sum;
}

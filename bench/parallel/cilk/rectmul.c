// a product of oblong matrices in blocks that lie together
#include "page.h"

enum { SIDE = 16, CELLS = SIDE * SIDE };

static double block(const double *a, const double *b, double *c) {
  double flops = 0;
  for (int i = 0; i < SIDE; i++)
    for (int k = 0; k < SIDE; k++) {
      for (int j = 0; j < SIDE; j++) c[i * SIDE + j] += a[i * SIDE + k] * b[k * SIDE + j];
      flops += 2 * SIDE;
    }
  return flops;
}

/* x by y blocks times y by z; sa, sb, sc blocks lie in a row. Gives the operations done. */
static double product(long x, long y, long z, const double *a, long sa, const double *b, long sb, double *c, long sc) {
  if (x + y + z == 3) return block(a, b, c);
  TASKS;
  double first, second;
  if (x >= y && x >= z) {
    long h = x / 2;
    SPAWN_INTO(first, product(h, y, z, a, sa, b, sb, c, sc));
    second = product(x - h, y, z, a + h * sa * CELLS, sa, b, sb, c + h * sc * CELLS, sc);
    SYNC;
  } else if (z > y) {
    long h = z / 2;
    SPAWN_INTO(first, product(x, y, h, a, sa, b, sb, c, sc));
    second = product(x, y, z - h, a, sa, b + h * CELLS, sb, c + h * CELLS, sc);
    SYNC;
  } else {
    long h = y / 2;
    first = product(x, h, z, a, sa, b, sb, c, sc);
    second = product(x, y - h, z, a + h * CELLS, sa, b + h * sb * CELLS, sb, c, sc);
  }
  return first + second;
}

int main(void) {
  long x = 20, y = 24, z = 28;
  double *a = numbers(x * y * CELLS), *b = numbers(y * z * CELLS), *c = (double *)calloc(x * z * CELLS, sizeof *c), flops = 0;
  BENCH("rectmul", memset(c, 0, x * z * CELLS * sizeof *c), flops = product(x, y, z, a, y, b, z, c, z));
  double s = flops;
  for (long i = 0; i < x * z * CELLS; i++) s = s * 0.999 + c[i];
  printf("%.12g\n", s);
}

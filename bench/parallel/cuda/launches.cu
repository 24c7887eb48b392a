// launches of little work: what one costs
#include "../t.h"

#ifdef SERIAL
static void add(float *x) {
  for (int i = 0; i < 256; i++) x[i] += 1;
}
#define LAUNCH(x) add(x)
#else
__global__ void add(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
#define LAUNCH(x) add<<<1, 256>>>(x)
#endif

int main(void) {
  float *x = (float *)calloc(256, sizeof *x);
  BENCH("launches", 1, for (int i = 0; i < 100000; i++) { LAUNCH(x); esc(x); });
  printf("%g %g\n", x[0], x[255]);
}

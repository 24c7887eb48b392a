// a sum that all threads have in common, under a guard
#include "../t.h"

#ifdef SERIAL
#define __device__
#endif

__device__ static double sum(const double *in, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) s += in[i];
  return s;
}

#ifdef SERIAL
static void norm(double *out, const double *in, int n) {
  double all = sum(in, n);
  for (int t = 0; t < n; t++) out[t] = in[t] / all;
}
#define LAUNCH(out, in, n) norm(out, in, n)
#else
__global__ void norm(double *out, const double *in, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) out[t] = in[t] / sum(in, n);
}
#define LAUNCH(out, in, n) norm<<<((n) + 255) / 256, 256>>>(out, in, n)
#endif

int main(void) {
  int n = 1000000;
  double *in = vec(n), *out = vec(n);
  BENCH("norm", 1, LAUNCH(out, in, n); esc(out));
  printf("%.12g\n", out[n / 2]);
}

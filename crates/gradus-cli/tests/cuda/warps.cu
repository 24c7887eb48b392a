// What threads of a warp tell each other, also in the smaller last warp.
#include <cmath>
#include <cstdio>

#define ALL 0xffffffffu

__global__ void sums(const float *in, float *out) {
  float v = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(ALL, v, d);
  if (threadIdx.x % 32 == 0) atomicAdd(&out[blockIdx.x], v);
}

__global__ void lanes(int *out, int n) {
  int t = threadIdx.x, lane = t % 32;
  int left = __shfl_up_sync(ALL, t, 1), segment = __shfl_sync(ALL, t, 2, 8), other = __shfl_xor_sync(ALL, t, 3);
  unsigned int odd = __ballot_sync(ALL, t & 1);
  int any = __any_sync(ALL, t == 40), all = __all_sync(ALL, t < n);
  out[4 * t] = left, out[4 * t + 1] = segment, out[4 * t + 2] = other;
  out[4 * t + 3] = (int)(odd & 0xff) + 1000 * any + 2000 * all + 4000 * (lane == 31);
}

// Each thread's rank among those of its warp whose number is small, with a loop that not all run as often.
__global__ void ranks(int *out) {
  int t = threadIdx.x, rank = 0;
  for (int round = 0; round < 3; round++) {
    unsigned int small = __ballot_sync(ALL, (t * 7 + round) % 11 < 5);
    rank += __popc(small & ((1u << (t % 32)) - 1));
    __syncwarp();
  }
  out[t] = rank;
}

static int wrong;
static void same(double got, double wanted, const char *what) {
  if (got != wanted) { std::printf("%s: %g, not %g\n", what, got, wanted); wrong = 1; }
}

int main() {
  float *in, *out;
  int *x;
  cudaMallocManaged(&in, 256 * sizeof(float)), cudaMallocManaged(&out, 2 * sizeof(float));
  cudaMallocManaged(&x, 4 * 64 * sizeof(int));
  for (int i = 0; i < 256; i++) in[i] = i;
  out[0] = out[1] = 0;
  sums<<<2, 128>>>(in, out);
  same(out[0], 8128, "first sum"), same(out[1], 24512, "second sum");
  lanes<<<1, 64>>>(x, 64);
  for (int t = 0; t < 64; t++) {
    same(x[4 * t], t % 32 ? t - 1 : t, "up"), same(x[4 * t + 1], t - t % 8 + 2, "segment"), same(x[4 * t + 2], t ^ 3, "xor");
    same(x[4 * t + 3], 0xaa + 1000 * (t >= 32) + 2000 + 4000 * (t % 32 == 31), "votes");
  }
  ranks<<<1, 50>>>(x);
  for (int t = 0; t < 50; t++) {
    int rank = 0;
    for (int round = 0; round < 3; round++) for (int u = t - t % 32; u < t; u++) rank += (u * 7 + round) % 11 < 5;
    same(x[t], rank, "rank");
  }
  std::puts(wrong ? "wrong" : "right");
}

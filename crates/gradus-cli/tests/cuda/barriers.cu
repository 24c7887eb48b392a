// Kernels whose threads meet: sums in shared memory, barriers in branches, loops and functions.
#include <cmath>
#include <cstdio>

__global__ void sum_static(const float *in, float *out, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = s[0];
}

__global__ void sum_dynamic(const double *in, double *out, int n) {
  extern __shared__ double d[];
  int t = threadIdx.x;
  d[t] = 0;
  for (int i = t; i < n; i += blockDim.x) d[t] += in[i];
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k) d[t] += d[t + k];
    __syncthreads();
  }
  if (!t) atomicAdd(out, d[0]);
}

__device__ void rotate(int *s, int t, int n) {
  int v = s[(t + 1) % n];
  __syncthreads();
  s[t] = v;
  __syncthreads();
}

// Some threads leave before the barrier; those that stay turn a ring.
__global__ void ring(int *x, int rounds, int n) {
  __shared__ int s[64];
  int t = threadIdx.x;
  if (t >= n) return;
  s[t] = x[blockIdx.x * n + t];
  __syncthreads();
  for (int r = 0; r < rounds; r++) {
    if (r % 2 == 0) rotate(s, t, n);
    else rotate(s, t, n), s[t] += 1;
  }
  __syncthreads();
  x[blockIdx.x * n + t] = s[t];
}

// A tile is turned over in two dimensions, with a padded row.
__global__ void transpose(const float *in, float *out, int n) {
  __shared__ float tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
  if (x < n && y < n) out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void counts(int *out) {
  int t = threadIdx.x;
  out[t] = __syncthreads_count(t % 3 == 0) + 1000 * __syncthreads_or(t == 5) + 10000 * __syncthreads_and(t < 40);
}

static int wrong;
static void same(double got, double wanted, const char *what) {
  if (!(std::fabs(got - wanted) <= 1e-4 * (1 + std::fabs(wanted)))) { std::printf("%s: %g, not %g\n", what, got, wanted); wrong = 1; }
}

int main() {
  const int n = 1000, side = 40;
  float *in, *out, *grid, *turned;
  double *din, *dout;
  int *x, *c;
  cudaMallocManaged(&in, n * sizeof(float)), cudaMallocManaged(&out, 4 * sizeof(float));
  cudaMallocManaged(&din, n * sizeof(double)), cudaMallocManaged(&dout, sizeof(double));
  for (int i = 0; i < n; i++) in[i] = din[i] = i;
  sum_static<<<4, 256>>>(in, out, n);
  same(out[0] + out[1] + out[2] + out[3], 499500, "static");
  *dout = 1;
  sum_dynamic<<<2, 64, 64 * sizeof(double)>>>(din, dout, n);
  same(*dout, 2 * 499500 + 1, "dynamic");

  cudaMallocManaged(&x, 3 * 50 * sizeof(int));
  for (int i = 0; i < 150; i++) x[i] = i;
  ring<<<3, 64>>>(x, 7, 50);
  for (int b = 0; b < 3; b++) for (int t = 0; t < 50; t++) same(x[50 * b + t], 50 * b + (t + 7) % 50 + 3, "ring");

  cudaMallocManaged(&grid, side * side * sizeof(float)), cudaMallocManaged(&turned, side * side * sizeof(float));
  for (int i = 0; i < side * side; i++) grid[i] = i;
  transpose<<<dim3(3, 3), dim3(16, 16)>>>(grid, turned, side);
  for (int y = 0; y < side; y++) for (int z = 0; z < side; z++) same(turned[z * side + y], grid[y * side + z], "transpose");

  cudaMallocManaged(&c, 40 * sizeof(int));
  counts<<<1, 40>>>(c);
  for (int t = 0; t < 40; t++) same(c[t], 14 + 1000 + 10000, "counts");
  cudaDeviceSynchronize();
  std::puts(wrong ? "wrong" : "right");
}

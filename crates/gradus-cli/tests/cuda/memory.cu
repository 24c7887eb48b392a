// Kernels without a barrier: indexing, templates, arguments by value, variables of the device, printf.
#include <cstdio>
#include <cmath>

struct Box { int n; float scale; int table[4]; };

__constant__ float offsets[2];
__device__ unsigned int counter;
__device__ int picked[3] = {5, 6, 7};

__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

// The copy of `box` is the thread's own.
template <class T> __global__ void scaled(T *x, Box box, bool up) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= box.n) return;
  box.table[i % 4] += i;
  x[i] = x[i] * box.scale + box.table[i % 4] + (up ? offsets[1] : offsets[0]);
  atomicAdd(&counter, 1u);
}

// Threads of a grid in three dimensions.
__global__ void place(int *out, int nx, int ny) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  out[(z * ny + y) * nx + x] = x + 10 * y + 100 * z + 1000 * (int)gridDim.z;
}

__device__ float root(float x) { return sqrtf(fabsf(x)) + __expf(0.0f); }
__global__ void math(float *x) { x[threadIdx.x] = root(x[threadIdx.x]) + picked[threadIdx.x % 3] + __popc(255) + __clz(1); }
__global__ void speak(int n) { if (threadIdx.x == 3) printf("thread %d of %d: %.2f %s\n", (int)threadIdx.x, n, 1.5, "spoke"); }

static int wrong;
static void same(double got, double wanted, const char *what) {
  if (!(std::fabs(got - wanted) <= 1e-4 * (1 + std::fabs(wanted)))) { std::printf("%s: %g, not %g\n", what, got, wanted); wrong = 1; }
}

int main() {
  const int n = 1003;
  float *a, *b, *c, host[n];
  cudaMalloc(&a, n * sizeof(float)), cudaMalloc(&b, n * sizeof(float)), cudaMalloc(&c, n * sizeof(float));
  for (int i = 0; i < n; i++) host[i] = i;
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice), cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
  add<<<(n + 255) / 256, 256>>>(a, b, c, n);
  cudaMemcpy(host, c, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++) same(host[i], 2.0 * i, "add");

  float given[2] = {1, 2};
  cudaMemcpyToSymbol(offsets, given, sizeof given);
  Box box = {n, 0.5f, {10, 20, 30, 40}};
  scaled<float><<<8, 128>>>(c, box, true);
  void *arguments[3];
  bool up = false;
  double *d;
  cudaMalloc(&d, n * sizeof(double)), cudaMemset(d, 0, n * sizeof(double));
  arguments[0] = &d, arguments[1] = &box, arguments[2] = &up;
  cudaLaunchKernel((const void *)scaled<double>, dim3(8), dim3(128), arguments, 0, 0);
  cudaMemcpy(host, c, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < n; i++) {
    same(host[i], i + 10 * (1 + i % 4) + i + 2, "by value");
    same(d[i], 10 * (1 + i % 4) + i + 1, "by address");
  }
  unsigned int count;
  cudaMemcpyFromSymbol(&count, counter, sizeof count);
  same(count, 2 * n, "counter");

  int *places;
  cudaMalloc(&places, 8 * 6 * 4 * sizeof(int));
  place<<<dim3(2, 3, 2), dim3(4, 2, 2)>>>(places, 8, 6);
  for (int z = 0; z < 4; z++) for (int y = 0; y < 6; y++) for (int x = 0; x < 8; x++)
    same(places[(z * 6 + y) * 8 + x], x + 10 * y + 100 * z + 2000, "place");

  math<<<1, 100>>>(a);
  for (int i = 0; i < 100; i++) same(a[i], std::sqrt((double)i) + 1 + 5 + i % 3 + 8 + 31, "math");

  add<<<1, 2000>>>(a, b, c, n);
  same(cudaGetLastError(), cudaErrorInvalidConfiguration, "a block of 2,000 threads");
  speak<<<1, 32>>>(7);
  cudaDeviceSynchronize();
  std::puts(wrong ? "wrong" : "right");
}

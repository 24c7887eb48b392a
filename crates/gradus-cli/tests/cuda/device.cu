/* What device code asks of the machine: memory of its own (malloc, new, kept over launches), clocks, assertions
   that hold, NaNs; and what the run time answers after one that does not. */
#include "check.h"
#include <cassert>

struct Node { int value; Node *next; };
__device__ Node *heads[64];

/* A list for each thread, as long as its number, in memory of the device that outlives the kernel. */
__global__ void build()
{
    int t = threadIdx.x;
    Node *head = nullptr;
    for (int i = 0; i < t; i++) {
        Node *node = (Node *)malloc(sizeof(Node));
        assert(node != nullptr);
        node->value = 100 * t + i, node->next = head;
        head = node;
    }
    heads[t] = head;
}
__global__ void add_up(int *sums, int *lengths)
{
    int t = threadIdx.x, sum = 0, length = 0;
    for (Node *node = heads[t]; node; length++) {
        Node *next = node->next;
        sum += node->value;
        free(node);
        node = next;
    }
    sums[t] = sum, lengths[t] = length;
}

struct Shape { __device__ virtual float area() const = 0; __device__ virtual ~Shape() {} };
struct Square : Shape {
    float side;
    __device__ Square(float side) : side(side) {}
    __device__ float area() const override { return side * side; }
};
struct Disc : Shape {
    float radius;
    __device__ Disc(float radius) : radius(radius) {}
    __device__ float area() const override { return 3.0f * radius * radius; }
};
/* One block's scratch, made by one thread and used by all behind a barrier; objects by the thread. */
__global__ void areas(float *out)
{
    __shared__ float *scratch;
    int t = threadIdx.x, n = blockDim.x;
    if (t == 0) scratch = (float *)malloc(n * sizeof(float));
    __syncthreads();
    Shape *shape = t % 2 ? (Shape *)new Square(t) : new Disc(t);
    scratch[n - 1 - t] = shape->area();
    delete shape;
    __syncthreads();
    out[blockIdx.x * n + t] = scratch[t];
    __syncthreads();
    if (t == 0) free(scratch);
}

/* Clocks go on, also from thread to thread behind a barrier. */
__global__ void times(long long *wide, unsigned int *narrow, double *x)
{
    int t = threadIdx.x;
    long long begin = clock64();
    clock_t first = clock();
    double sum = x[t];
    for (int i = 0; i < 20000; i++) sum = sum * 0.999 + 1;
    x[t] = sum;
    __syncthreads();
    wide[t] = clock64() - begin;
    narrow[t] = (unsigned int)(clock() - first);
}

__global__ void not_numbers(double *x, float *y) { x[threadIdx.x] = nan(""), y[threadIdx.x] = nanf("1"); }

__global__ void holds(const int *x, int n, int *out)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    assert(t < n && "a thread too many");
    out[t] = x[t] + 1;
}

int main()
{
    int *sums, *lengths;
    OK(cudaMallocManaged(&sums, 256)), OK(cudaMallocManaged(&lengths, 256));
    build<<<1, 64>>>();
    add_up<<<1, 64>>>(sums, lengths);
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < 64; t++) expect(lengths[t] == t && sums[t] == 100 * t * t + t * (t - 1) / 2, "lists");

    float *out;
    OK(cudaMallocManaged(&out, 4 * 48 * sizeof(float)));
    areas<<<4, 48>>>(out);
    OK(cudaDeviceSynchronize());
    for (int b = 0; b < 4; b++)
        for (int t = 0; t < 48; t++) {
            float side = 47 - t;
            near(out[48 * b + t], (47 - t) % 2 ? side * side : 3 * side * side, "areas");
        }

    long long *wide;
    unsigned int *narrow;
    double *x;
    OK(cudaMallocManaged(&wide, 32 * 8)), OK(cudaMallocManaged(&narrow, 32 * 4)), OK(cudaMallocManaged(&x, 32 * 8));
    for (int t = 0; t < 32; t++) x[t] = t;
    times<<<1, 32>>>(wide, narrow, x);
    OK(cudaDeviceSynchronize());
    /* 20,000 steps, each of which waits for the one before, take more than a microsecond on any machine. */
    for (int t = 0; t < 32; t++) expect(wide[t] > 1000 && narrow[t] > 1000, "clocks");

    not_numbers<<<1, 32>>>(x, out);
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < 32; t++) expect(std::isnan(x[t]) && std::isnan(out[t]), "not numbers");

    for (int i = 0; i < 64; i++) sums[i] = i;
    holds<<<2, 32>>>(sums, 64, lengths);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++) expect(lengths[i] == i + 1, "an assertion that holds");
    holds<<<2, 32>>>(sums, 60, lengths);
    expect(cudaDeviceSynchronize() == cudaErrorAssert, "an assertion that does not hold");
    expect(cudaGetLastError() == cudaErrorAssert && cudaMalloc(&x, 8) == cudaErrorAssert, "told ever after");
    return wrong;
}

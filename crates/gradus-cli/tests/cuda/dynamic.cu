/* Shared memory whose size the launch gives: its type has no elements, and it may have several names. */
#include "check.h"
#include <climits>

const int N = 64 * 1024, ROWS = 128;

__device__ int closed[ROWS];
extern __shared__ int words[];

template <int SIZE> static __device__ void last_warp(volatile int *s, int t)
{
    if (SIZE >= 64) s[t] = min(s[t], s[t + 32]);
    if (SIZE >= 32) s[t] = min(s[t], s[t + 16]);
    if (SIZE >= 16) s[t] = min(s[t], s[t + 8]);
    if (SIZE >= 8) s[t] = min(s[t], s[t + 4]);
    if (SIZE >= 4) s[t] = min(s[t], s[t + 2]);
    if (SIZE >= 2) s[t] = min(s[t], s[t + 1]);
}

/* The least number of the open rows: each thread keeps its own minimum where all threads can see it. */
template <int SIZE> __global__ void least(const int *in, int *out, int n)
{
    unsigned t = threadIdx.x, stride = 2 * SIZE * gridDim.x;
    words[t] = INT_MAX;
    for (unsigned i = blockIdx.x * 2 * SIZE + t; i < n; i += stride) {
        int one = closed[i % ROWS] ? INT_MAX : in[i];
        int other = closed[(i + SIZE) % ROWS] ? INT_MAX : in[i + SIZE];
        words[t] = min(words[t], min(one, other));
    }
    __syncthreads();
    if (SIZE >= 256) {
        if (t < 128) words[t] = min(words[t], words[t + 128]);
        __syncthreads();
    }
    if (SIZE >= 128) {
        if (t < 64) words[t] = min(words[t], words[t + 64]);
        __syncthreads();
    }
    if (t < 32) last_warp<SIZE>(words, t);
    if (t == 0) out[blockIdx.x] = words[0];
}

/* Two names of one memory: one thread stores by the first name, and another reads by the second. */
extern __shared__ __align__(128) unsigned char bytes[];
__global__ void renamed(const int *in, int *out)
{
    int t = threadIdx.x, n = blockDim.x;
    words[t] = in[t];
    bytes[4 * t] = 7;
    out[t] = words[t];
    __syncthreads();
    int next = (t + 1) % n;
    out[t] += bytes[4 * next] + 256 * bytes[4 * next + 1];
    if (t == 0) out[n] = (unsigned long long)bytes % 128;
}

template <int SIZE> static void check_least(const int *in, const std::vector<int> &numbers, int *out, const int *shut)
{
    const int blocks = 16;
    std::vector<int> found(blocks);
    least<SIZE><<<blocks, SIZE, SIZE * sizeof(int)>>>(in, out, N);
    OK(cudaMemcpy(found.data(), out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
    for (int b = 0; b < blocks; b++) {
        int wanted = INT_MAX;
        for (int from = b * 2 * SIZE; from < N; from += 2 * SIZE * blocks)
            for (int i = from; i < from + 2 * SIZE; i++)
                if (!shut[i % ROWS] && numbers[i] < wanted) wanted = numbers[i];
        expect(found[b] == wanted, "the least number");
    }
}

int main()
{
    std::vector<int> numbers(N);
    int shut[ROWS], *in, *out;
    unsigned state = 1;
    for (int &number : numbers) number = (state = state * 1664525 + 1013904223) >> 8;
    for (int i = 0; i < ROWS; i++) shut[i] = i % 16 != 5;
    OK(cudaMalloc(&in, N * sizeof(int)));
    OK(cudaMalloc(&out, 256 * sizeof(int)));
    OK(cudaMemcpy(in, numbers.data(), N * sizeof(int), cudaMemcpyHostToDevice));
    OK(cudaMemcpyToSymbol(closed, shut, sizeof shut));
    check_least<16>(in, numbers, out, shut);
    check_least<32>(in, numbers, out, shut);
    check_least<64>(in, numbers, out, shut);
    check_least<128>(in, numbers, out, shut);
    check_least<256>(in, numbers, out, shut);

    int found[65];
    renamed<<<1, 64, 64 * sizeof(int)>>>(in, out);
    OK(cudaMemcpy(found, out, sizeof found, cudaMemcpyDeviceToHost));
    for (int t = 0; t < 64; t++)
        expect(found[t] == (numbers[t] & ~255) + 7 + (numbers[(t + 1) % 64] & 0xff00) + 7, "two names");
    expect(found[64] == 0, "alignment");
    return wrong;
}

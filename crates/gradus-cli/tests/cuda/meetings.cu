/* Threads that meet in loops of all forms, with `continue`, `break` and `return` where the language allows them. */
#include "check.h"

/* Ahead of the condition, `continue` goes to it; one arm of the loop ends the kernel. */
__global__ void countdown(const int *start, int *rounds, int most)
{
    __shared__ int left;
    if (threadIdx.x == 0) left = start[blockIdx.x];
    __syncthreads();
    int n = 0;
    do {
        int seen = left;
        __syncthreads();
        if (threadIdx.x == 0) left = seen / 3;
        n++;
        __syncthreads();
        if (n < 2) continue;
        if (n > most) break;
        if (n < 0) __trap();
    } while (left != 0);
    if (threadIdx.x == 0) rounds[blockIdx.x] = n;
}

/* A lock that ends the program if it is broken: no further iteration follows. */
__global__ void guarded(int *lock, int *sum)
{
    while (atomicExch(lock, 1) != 0)
        if (*(volatile int *)lock > 1) __trap();
    __threadfence();
    *sum += 1;
    __threadfence();
    atomicExch(lock, 0);
}

/* Threads meet in the condition, and leave when none has anything to do. */
__global__ void settle(int *values)
{
    __shared__ int s[32];
    int t = threadIdx.x, mine = values[t];
    s[t] = mine;
    __syncthreads();
    while (__syncthreads_or(t > 0 && s[t - 1] > mine)) {
        int before = t > 0 ? s[t - 1] : mine;
        __syncthreads();
        mine = before > mine ? before : mine;
        s[t] = mine;
        if (values[32]) {
            __syncthreads();
            continue;
        }
        __syncthreads();
        if (values[33]) break;
    }
    values[t] = mine;
}

/* Some threads end for good inside of a loop in a loop; the others go on meeting. */
__global__ void fewer(int *out, int rounds)
{
    __shared__ int s[16];
    int t = threadIdx.x, own = t;
    s[t] = 0;
    __syncthreads();
    for (int i = 0;; i++) {
        if (i == rounds) break;
        int j = 0;
        while (true) {
            s[t] = own + i;
            __syncthreads();
            own += s[(t + 1) % 16];
            __syncthreads();
            if (++j == 2) break;
            if (t >= 12 - i) {
                out[t] = own;
                return;
            }
        }
    }
    out[t] = own;
}

int main()
{
    int start[4] = {1, 2, 100, 1 << 20}, *values;
    OK(cudaMallocManaged(&values, 64 * sizeof(int)));
    for (int most : {0, 1, 5, 50}) {
        for (int b = 0; b < 4; b++) values[b] = start[b];
        countdown<<<4, 40>>>(values, values + 4, most);
        OK(cudaDeviceSynchronize());
        for (int b = 0; b < 4; b++) {
            int n = 0, left = start[b];
            do {
                left /= 3, n++;
            } while (!(n >= 2 && n > most) && left != 0);
            expect(values[4 + b] == n, "a countdown");
        }
    }
    values[0] = values[1] = 0;
    guarded<<<2, 8>>>(values, values + 1);
    OK(cudaDeviceSynchronize());
    expect(values[1] == 16, "a lock");
    for (int way = 0; way < 2; way++) {
        for (int t = 0; t < 32; t++) values[t] = (t * 7 + 5) % 32;
        values[32] = way, values[33] = 0;
        settle<<<1, 32>>>(values);
        OK(cudaDeviceSynchronize());
        for (int t = 0, most = 0; t < 32; t++) {
            most = most > (t * 7 + 5) % 32 ? most : (t * 7 + 5) % 32;
            expect(values[t] == most, "greatest so far");
        }
    }
    fewer<<<1, 16>>>(values, 4);
    OK(cudaDeviceSynchronize());
    int own[16], s[16], live[16];
    for (int t = 0; t < 16; t++) own[t] = t, s[t] = 0, live[t] = 1;
    for (int i = 0; i < 4; i++)
        for (int j = 1; j <= 2; j++) {
            for (int t = 0; t < 16; t++)
                if (live[t]) s[t] = own[t] + i;
            for (int t = 0; t < 16; t++)
                if (live[t]) own[t] += s[(t + 1) % 16];
            for (int t = 0; t < 16; t++)
                if (j == 1 && t >= 12 - i) live[t] = 0;
        }
    for (int t = 0; t < 16; t++) expect(values[t] == own[t], "fewer and fewer threads");
    return wrong;
}

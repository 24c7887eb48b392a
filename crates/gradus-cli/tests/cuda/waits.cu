/* Threads that wait for each other in loops: locks, flags, and trees that many build at once. */
#include "check.h"

/* The idiom whose critical section stands inside of the branch. */
__global__ void lock_inside(int *lock, int *sum)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *(volatile int *)sum += threadIdx.x;
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

/* The one that waits first: another thread of the warp must get on for it to end. */
__global__ void lock_before(int *lock, int *sum)
{
    while (atomicCAS(lock, 0, 1) != 0)
        ;
    *(volatile int *)sum += threadIdx.x;
    __threadfence();
    atomicExch(lock, 0);
}

/* A lock that is held over a barrier of the threads that do not want it. */
__global__ void held(int *lock, int *out)
{
    __shared__ int value;
    if (threadIdx.x == 0)
        while (atomicExch(lock, 1) != 0)
            ;
    __syncthreads();
    if (threadIdx.x == 5)
        value = out[0];
    __syncthreads();
    if (threadIdx.x == 0) {
        out[0] = value + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

/* Votes of a block while one of its threads holds a lock: all warps of the block take part. */
__global__ void voted(int *lock, int *out)
{
    int t = threadIdx.x;
    if (t == 0)
        while (atomicExch(lock, 1) != 0)
            ;
    int some = __syncthreads_count(t % 3 == 0);
    int any = __syncthreads_or(t == 70), none = __syncthreads_or(t == 96);
    int all = __syncthreads_and(t < 96), most = __syncthreads_and(t != 95);
    out[blockIdx.x * blockDim.x + t] = some + 1000 * any + 2000 * none + 4000 * all + 8000 * most;
    if (t == 0)
        atomicExch(lock, 0);
}

/* Each thread waits for the one behind it, the last of a block for the next block. */
__global__ void backwards(volatile int *flags, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    while (i + 1 < n && flags[i + 1] == 0)
        ;
    flags[i] = i + 1 < n ? flags[i + 1] + 1 : 1;
}

/* A sum of all before, by what earlier blocks have said of theirs. */
__global__ void look_back(const int *in, int *out, volatile int *state, volatile int *total, int *ticket)
{
    __shared__ int part[64], before, block;
    if (threadIdx.x == 0)
        block = atomicAdd(ticket, 1);
    __syncthreads();
    int i = block * blockDim.x + threadIdx.x;
    part[threadIdx.x] = in[i];
    for (int step = 1; step < 64; step *= 2) {
        __syncthreads();
        int other = threadIdx.x >= step ? part[threadIdx.x - step] : 0;
        __syncthreads();
        part[threadIdx.x] += other;
    }
    __syncthreads();
    if (threadIdx.x == 63) {
        before = 0;
        if (block > 0) {
            while (state[block - 1] == 0)
                ;
            __threadfence();
            before = total[block - 1];
        }
        total[block] = before + part[63];
        __threadfence();
        state[block] = 1;
    }
    __syncthreads();
    out[i] = before + part[threadIdx.x];
}

/* A search tree: who finds a child that is being put in waits for it. -1 is none, -2 is locked. */
__global__ void tree(volatile int *child, const int *key, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x + 1, inc = gridDim.x * blockDim.x;
    bool fresh = true;
    int at = 0, side = 0;
    while (i < n) {
        if (fresh) {
            fresh = false;
            at = 0;
            side = key[i] > key[0];
        }
        int next = child[2 * at + side];
        while (next >= 0) {
            at = next;
            side = key[i] > key[at];
            next = child[2 * at + side];
        }
        if (next != -2 && atomicCAS((int *)&child[2 * at + side], -1, -2) == -1) {
            __threadfence();
            child[2 * at + side] = i;
            i += inc;
            fresh = true;
        }
    }
}

/* Sums over a tree from the leaves, whatever the order of the threads. */
__global__ void summed(const int *child, volatile int *sum, int n)
{
    // What this thread put in later comes first: it may hang below what it put in before.
    int inc = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = first + (n - 1 - first) / inc * inc; i >= 0; i -= inc) {
        int left = child[2 * i], right = child[2 * i + 1], own = 1;
        if (left >= 0) {
            int s;
            while ((s = sum[left]) == 0)
                ;
            own += s;
        }
        if (right >= 0) {
            int s;
            do {
                s = sum[right];
            } while (s == 0);
            own += s;
        }
        sum[i] = own;
    }
}

/* No waiting: an exchange of what was read is done if nobody comes between. */
__global__ void greatest(float *most, const float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int old = *(int *)most, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= x[i])
            break;
        old = atomicCAS((int *)most, assumed, __float_as_int(x[i]));
    } while (old != assumed);
}

template <class T> static T *memory(int n, T value)
{
    T *p;
    cudaMallocManaged(&p, n * sizeof(T));
    for (int i = 0; i < n; i++)
        p[i] = value;
    return p;
}

int main()
{
    int *lock = memory(1, 0), *sum = memory(1, 0);
    lock_inside<<<5, 70>>>(lock, sum);
    OK(cudaDeviceSynchronize());
    expect(*sum == 5 * 70 * 69 / 2, "a lock with what it guards inside of the branch");
    *sum = 0;
    lock_before<<<5, 70>>>(lock, sum);
    OK(cudaDeviceSynchronize());
    expect(*sum == 5 * 70 * 69 / 2, "a lock that is waited for first");
    *sum = 0;
    held<<<9, 40>>>(lock, sum);
    OK(cudaDeviceSynchronize());
    expect(*sum == 9, "a lock that is held over barriers");
    int *votes = memory(4 * 96, 0);
    voted<<<4, 96>>>(lock, votes);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 4 * 96; i++) expect(votes[i] == 32 + 1000 + 4000, "votes of a block");

    const int n = 1000;
    int *flags = memory(n, 0);
    backwards<<<8, 128>>>(flags, n);
    OK(cudaDeviceSynchronize());
    bool all = true;
    for (int i = 0; i < n; i++)
        all &= flags[i] == n - i;
    expect(all, "each waits for the one behind it");

    const int blocks = 40;
    int *in = memory(64 * blocks, 0), *out = memory(64 * blocks, 0);
    for (int i = 0; i < 64 * blocks; i++)
        in[i] = i % 7;
    int *state = memory(blocks, 0), *total = memory(blocks, 0), *ticket = memory(1, 0);
    look_back<<<blocks, 64>>>(in, out, state, total, ticket);
    OK(cudaDeviceSynchronize());
    all = true;
    for (int i = 0, s = 0; i < 64 * blocks; i++)
        all &= out[i] == (s += in[i]);
    expect(all, "sums with looks at earlier blocks");

    int *key = memory(n, 0), *child = memory(2 * n, -1), *sums = memory(n, 0);
    for (int i = 0; i < n; i++)
        key[i] = (i * 7919 + 500) % 1009;
    tree<<<4, 64>>>(child, key, n);
    OK(cudaDeviceSynchronize());
    summed<<<4, 64>>>(child, sums, n);
    OK(cudaDeviceSynchronize());
    expect(sums[0] == n, "a tree that many build, and its sums");

    float *x = memory(n, 0.0f), *most = memory(1, -1.0f);
    for (int i = 0; i < n; i++)
        x[i] = (i * 31) % 997;
    greatest<<<8, 128>>>(most, x, n);
    OK(cudaDeviceSynchronize());
    expect(*most == 996, "the greatest by exchanges");
    if (!wrong)
        printf("right\n");
    return wrong;
}

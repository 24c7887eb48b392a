/* Groups of threads: the block, tiles of it, those that stand in a branch; and what a warp matches and reduces. */
#include "check.h"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

/* Sums over tiles of 8, in two ways, and over the block, by the first threads of tiles. */
__global__ void tiles(const int *in, int *sums, int *same, int *whole)
{
    __shared__ int parts[32];
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int t = block.thread_rank(), sum = in[t];
    for (int far = tile.size() / 2; far > 0; far /= 2) sum += tile.shfl_down(sum, far);
    if (tile.thread_rank() == 0) sums[t / 8] = parts[t / 8] = sum;
    same[t] = cg::reduce(tile, in[t], cg::plus<int>());
    block.sync();
    if (t == 0) {
        int all = 0;
        for (unsigned int i = 0; i < block.size() / 8; i++) all += parts[i];
        *whole = all;
    }
}

/* One atomic operation, which the host would see, for all threads of a warp that come here; each gets its own place. */
__global__ void gathered(const int *in, int *out, int *count)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[t] % 3 == 0) {
        cg::coalesced_group active = cg::coalesced_threads();
        int first = 0;
        if (active.thread_rank() == 0) first = atomicAdd_system(count, (int)active.size());
        first = active.shfl(first, 0);
        out[first + active.thread_rank()] = in[t];
    }
}

__global__ void matched(const int *in, unsigned int *equal, int *all, int *reduced)
{
    int t = threadIdx.x;
    equal[t] = __match_any_sync(0xffffffffu, in[t] % 4);
    int every = 0;
    unsigned int mask = __match_all_sync(0xffffffffu, t / 32, &every);
    all[t] = every && mask == 0xffffffffu;
    reduced[2 * t] = __reduce_add_sync(0xffffffffu, in[t]);
    reduced[2 * t + 1] = __reduce_max_sync(0xffffffffu, in[t]);
}

int main()
{
    const int n = 128;
    int *in, *sums, *same, *whole, *out;
    unsigned int *equal;
    OK(cudaMallocManaged(&in, n * sizeof(int))), OK(cudaMallocManaged(&sums, n * sizeof(int)));
    OK(cudaMallocManaged(&same, n * sizeof(int))), OK(cudaMallocManaged(&whole, sizeof(int)));
    OK(cudaMallocManaged(&out, 2 * n * sizeof(int))), OK(cudaMallocManaged(&equal, n * sizeof(int)));
    for (int i = 0; i < n; i++) in[i] = (i * 29) % 53;
    tiles<<<1, n>>>(in, sums, same, whole);
    OK(cudaDeviceSynchronize());
    int all = 0;
    for (int i = 0; i < n / 8; i++) {
        int sum = 0;
        for (int j = 0; j < 8; j++) sum += in[8 * i + j];
        expect(sums[i] == sum, "a tile's sum");
        for (int j = 0; j < 8; j++) expect(same[8 * i + j] == sum, "a tile's sum in each thread");
        all += sum;
    }
    expect(*whole == all, "the block's sum");

    *whole = 0;
    gathered<<<2, 64>>>(in, out, whole);
    OK(cudaDeviceSynchronize());
    int wanted[53] = {}, found[53] = {}, many = 0;
    for (int i = 0; i < n; i++)
        if (in[i] % 3 == 0) wanted[in[i]]++, many++;
    expect(*whole == many, "how many");
    for (int i = 0; i < many; i++) found[out[i]]++;
    for (int i = 0; i < 53; i++) expect(found[i] == wanted[i], "which ones");

    matched<<<1, n>>>(in, equal, same, out);
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < n; t++) {
        unsigned int mask = 0;
        int sum = 0, most = 0;
        for (int lane = 0; lane < 32; lane++) {
            int other = in[t / 32 * 32 + lane];
            mask |= (unsigned int)(other % 4 == in[t] % 4) << lane;
            sum += other, most = std::max(most, other);
        }
        expect(equal[t] == mask && same[t] == 1, "matches");
        expect(out[2 * t] == sum && out[2 * t + 1] == most, "reductions");
    }
    return wrong;
}

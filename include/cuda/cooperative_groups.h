/* Cooperative groups: the block, tiles of a warp, the threads that are there, the grid. A group of part of a
   warp is its lanes; all it does is made of warp exchanges over them. */
#ifndef GRADUS_CUDA_COOPERATIVE_GROUPS_H
#define GRADUS_CUDA_COOPERATIVE_GROUPS_H
#include "gradus_cuda.h"

#ifdef __CUDA__
/* A barrier of the whole grid, which only a compiler can give; it is refused where it cannot be. */
extern "C" __device__ void __gr_grid_barrier();

namespace cooperative_groups {

#define GR_GROUP __device__ inline __attribute__((always_inline))

class grid_group {
  public:
    GR_GROUP void sync() const { __gr_grid_barrier(); }
    GR_GROUP bool is_valid() const { return true; }
    GR_GROUP dim3 group_dim() const { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    GR_GROUP dim3 dim_blocks() const { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    GR_GROUP dim3 block_index() const { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    GR_GROUP unsigned long long num_blocks() const { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    GR_GROUP unsigned long long block_rank() const
    { return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; }
    GR_GROUP unsigned long long num_threads() const
    { return num_blocks() * ((unsigned long long)blockDim.x * blockDim.y * blockDim.z); }
    GR_GROUP unsigned long long size() const { return num_threads(); }
    GR_GROUP unsigned long long thread_rank() const
    {
        return block_rank() * ((unsigned long long)blockDim.x * blockDim.y * blockDim.z) +
               (((unsigned long long)threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x);
    }
};

class thread_block {
  public:
    struct arrival_token {};
    GR_GROUP static void sync() { __syncthreads(); }
    /* All is done at the wait, which every thread of the block comes to. */
    GR_GROUP static arrival_token barrier_arrive() { return arrival_token(); }
    GR_GROUP static void barrier_wait(arrival_token &&) { __syncthreads(); }
    GR_GROUP static unsigned int thread_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
    GR_GROUP static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    GR_GROUP static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    GR_GROUP static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    GR_GROUP static dim3 dim_threads() { return group_dim(); }
    GR_GROUP static unsigned int num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    GR_GROUP static unsigned int size() { return num_threads(); }
};

GR_GROUP grid_group this_grid() { return grid_group(); }
GR_GROUP thread_block this_thread_block() { return thread_block(); }
GR_GROUP unsigned int gr_lane() { return thread_block::thread_rank() & 31; }

/* Lanes of one warp, numbered in their order: what tiles and coalesced groups share. */
class gr_lanes {
  protected:
    unsigned int mask;
    GR_GROUP explicit gr_lanes(unsigned int mask) : mask(mask) {}
    /* The lane of rank `rank`. */
    GR_GROUP int lane(int rank) const
    {
        if (mask == 0xffffffffu) return rank & 31;
        unsigned int rest = mask;
        for (int i = 0; i < rank; i++) rest &= rest - 1;
        return rest ? __ffs(rest) - 1 : 0;
    }
    /* Of a mask of lanes, the mask of their ranks. */
    GR_GROUP unsigned int ranks(unsigned int lanes) const
    {
        if (mask == 0xffffffffu) return lanes;
        unsigned int result = 0;
        int rank = 0;
        for (int i = 0; i < 32; i++)
            if (mask >> i & 1) result |= (lanes >> i & 1) << rank++;
        return result;
    }

  public:
    GR_GROUP unsigned int gr_mask() const { return mask; }
    GR_GROUP unsigned int num_threads() const { return __popc(mask); }
    GR_GROUP unsigned int size() const { return num_threads(); }
    GR_GROUP unsigned int thread_rank() const { return __popc(mask & ((1u << gr_lane()) - 1)); }
    GR_GROUP void sync() const { __syncwarp(mask); }
    GR_GROUP int any(int holds) const { return __any_sync(mask, holds); }
    GR_GROUP int all(int holds) const { return __all_sync(mask, holds); }
    GR_GROUP unsigned int ballot(int holds) const { return ranks(__ballot_sync(mask, holds)); }
    template <class T> GR_GROUP T shfl(T value, int from) const { return gr_exchange(value, lane(from)); }
    template <class T> GR_GROUP T shfl_down(T value, unsigned int by) const
    {
        unsigned int from = thread_rank() + by;
        return gr_exchange(value, from < num_threads() ? lane((int)from) : (int)gr_lane());
    }
    template <class T> GR_GROUP T shfl_up(T value, unsigned int by) const
    {
        unsigned int rank = thread_rank();
        return gr_exchange(value, rank >= by ? lane((int)(rank - by)) : (int)gr_lane());
    }
    template <class T> GR_GROUP T shfl_xor(T value, unsigned int with) const
    {
        unsigned int from = thread_rank() ^ with;
        return gr_exchange(value, from < num_threads() ? lane((int)from) : (int)gr_lane());
    }
    template <class T> GR_GROUP unsigned int match_any(T value) const { return ranks(__match_any_sync(mask, value)); }
    template <class T> GR_GROUP unsigned int match_all(T value, int &all) const { return ranks(__match_all_sync(mask, value, &all)); }

  private:
    /* The value of any type that a lane holds, word by word. */
    template <class T> GR_GROUP T gr_exchange(T value, int from) const
    {
        if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) {
            return __shfl_sync(mask, value, from);
        } else {
            unsigned int words[(sizeof(T) + 3) / 4] = {};
            __builtin_memcpy(words, &value, sizeof(T));
            for (unsigned int i = 0; i < (sizeof(T) + 3) / 4; i++) words[i] = __shfl_sync(mask, words[i], from);
            __builtin_memcpy(&value, words, sizeof(T));
            return value;
        }
    }
};

class coalesced_group : public gr_lanes {
    unsigned int number, count;

  public:
    GR_GROUP explicit coalesced_group(unsigned int mask, unsigned int number = 0, unsigned int count = 1)
        : gr_lanes(mask), number(number), count(count) {}
    GR_GROUP unsigned int meta_group_rank() const { return number; }
    GR_GROUP unsigned int meta_group_size() const { return count; }
};
GR_GROUP coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <unsigned int width, class parent = void> class thread_block_tile : public gr_lanes {
    static_assert(width <= 32 && (width & (width - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
    unsigned int number, count;

  public:
    GR_GROUP thread_block_tile(unsigned int number, unsigned int count)
        : gr_lanes(width == 32 ? 0xffffffffu : ((1u << (width & 31)) - 1) << (gr_lane() & ~(width - 1))), number(number), count(count) {}
    template <class other> GR_GROUP thread_block_tile(const thread_block_tile<width, other> &tile)
        : thread_block_tile(tile.meta_group_rank(), tile.meta_group_size()) {}
    GR_GROUP static constexpr unsigned int num_threads() { return width; }
    GR_GROUP static constexpr unsigned int size() { return width; }
    GR_GROUP static unsigned int thread_rank() { return gr_lane() & (width - 1); }
    GR_GROUP unsigned int meta_group_rank() const { return number; }
    GR_GROUP unsigned int meta_group_size() const { return count; }
    template <class T> GR_GROUP T shfl(T value, int from) const { return direct(value, [=](auto part) { return __shfl_sync(mask, part, from, width); }, [=](const gr_lanes &all) { return all.shfl(value, from & (int)(width - 1)); }); }
    template <class T> GR_GROUP T shfl_down(T value, unsigned int by) const { return direct(value, [=](auto part) { return __shfl_down_sync(mask, part, by, width); }, [=](const gr_lanes &all) { return all.shfl_down(value, by); }); }
    template <class T> GR_GROUP T shfl_up(T value, unsigned int by) const { return direct(value, [=](auto part) { return __shfl_up_sync(mask, part, by, width); }, [=](const gr_lanes &all) { return all.shfl_up(value, by); }); }
    template <class T> GR_GROUP T shfl_xor(T value, unsigned int with) const { return direct(value, [=](auto part) { return __shfl_xor_sync(mask, part, (int)with, width); }, [=](const gr_lanes &all) { return all.shfl_xor(value, with); }); }

  private:
    /* By one shuffle where the value fits, else as any value goes. */
    template <class T, class Whole, class Parts> GR_GROUP T direct(T value, Whole whole, Parts parts) const
    {
        if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) return whole(value);
        else return parts(*this);
    }
};
template <class parent> class thread_block_tile<1, parent> : public gr_lanes {
  public:
    GR_GROUP thread_block_tile(unsigned int, unsigned int) : gr_lanes(1u << gr_lane()) {}
};

/* A group whose kind is known at run time only. */
class thread_group {
    enum { block, lanes } kind;
    unsigned int mask;

  public:
    GR_GROUP thread_group(const thread_block &) : kind(block), mask(0) {}
    GR_GROUP thread_group(const gr_lanes &part) : kind(lanes), mask(part.gr_mask()) {}
    GR_GROUP unsigned int size() const { return kind == block ? thread_block::size() : __popc(mask); }
    GR_GROUP unsigned int num_threads() const { return size(); }
    GR_GROUP unsigned int thread_rank() const
    { return kind == block ? thread_block::thread_rank() : __popc(mask & ((1u << gr_lane()) - 1)); }
    GR_GROUP void sync() const { if (kind == block) __syncthreads(); else __syncwarp(mask); }
};

template <unsigned int width, class parent> GR_GROUP thread_block_tile<width, parent> tiled_partition(const parent &group)
{
    return thread_block_tile<width, parent>(group.thread_rank() / width, (unsigned int)((group.size() + width - 1) / width));
}
/* Tiles whose width is known at run time only. */
template <class parent> GR_GROUP coalesced_group tiled_partition(const parent &group, unsigned int width)
{
    unsigned int rank = group.thread_rank();
    if constexpr (std::is_base_of_v<gr_lanes, parent>) {
        unsigned int part = 0, place = 0;
        for (int i = 0; i < 32; i++)
            if (group.gr_mask() >> i & 1) part |= (unsigned int)(place++ / width == rank / width) << i;
        return coalesced_group(part, rank / width, (group.size() + width - 1) / width);
    } else {
        unsigned int mask = width >= 32 ? 0xffffffffu : ((1u << width) - 1) << (gr_lane() & ~(width - 1));
        return coalesced_group(mask, rank / width, (group.size() + width - 1) / width);
    }
}
template <class parent> GR_GROUP coalesced_group binary_partition(const parent &group, bool side)
{
    unsigned int with = __ballot_sync(group.gr_mask(), side) & group.gr_mask();
    return coalesced_group(side ? with : group.gr_mask() & ~with, side, 2);
}
template <class parent, class T> GR_GROUP coalesced_group labeled_partition(const parent &group, T label)
{
    return coalesced_group(__match_any_sync(group.gr_mask(), label));
}

template <class G> GR_GROUP void sync(const G &group) { group.sync(); }
template <class G> GR_GROUP unsigned int thread_rank(const G &group) { return group.thread_rank(); }
template <class G> GR_GROUP unsigned int group_size(const G &group) { return group.size(); }
template <class G, class F> GR_GROUP void invoke_one(const G &group, F function) { if (group.thread_rank() == 0) function(); }

} // namespace cooperative_groups

#include "cooperative_groups/reduce.h"
#include "cooperative_groups/scan.h"
#include "cooperative_groups/memcpy_async.h"
#undef GR_GROUP
#endif
#endif

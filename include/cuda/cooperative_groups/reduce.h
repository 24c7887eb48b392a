/* Reductions over a tile or a coalesced group; every thread gets the result. */
#ifndef GRADUS_CUDA_COOPERATIVE_GROUPS_REDUCE_H
#define GRADUS_CUDA_COOPERATIVE_GROUPS_REDUCE_H
#ifndef GR_GROUP
#include "../cooperative_groups.h"
#else
namespace cooperative_groups {
template <class T> struct plus { GR_GROUP T operator()(const T &a, const T &b) const { return a + b; } };
template <class T> struct less { GR_GROUP T operator()(const T &a, const T &b) const { return b < a ? b : a; } };
template <class T> struct greater { GR_GROUP T operator()(const T &a, const T &b) const { return a < b ? b : a; } };
template <class T> struct bit_and { GR_GROUP T operator()(const T &a, const T &b) const { return a & b; } };
template <class T> struct bit_or { GR_GROUP T operator()(const T &a, const T &b) const { return a | b; } };
template <class T> struct bit_xor { GR_GROUP T operator()(const T &a, const T &b) const { return a ^ b; } };

/* A tile folds in halves; any other group has one thread combine in order. */
template <unsigned int width, class parent, class T, class Op>
GR_GROUP T reduce(const thread_block_tile<width, parent> &group, T value, Op both)
{
    for (unsigned int by = width / 2; by > 0; by /= 2) value = both(value, group.shfl_xor(value, by));
    return value;
}
template <class T, class Op> GR_GROUP T reduce(const coalesced_group &group, T value, Op both)
{
    T result = group.shfl(value, 0);
    for (int rank = 1; rank < (int)group.size(); rank++) result = both(result, group.shfl(value, rank));
    return result;
}
/* Into memory, by one thread. */
template <class G, class T, class V, class Op> GR_GROUP void reduce_store_async(const G &group, T *to, V value, Op both)
{
    V result = reduce(group, value, both);
    if (group.thread_rank() == 0) *to = result;
}
} // namespace cooperative_groups
#endif
#endif

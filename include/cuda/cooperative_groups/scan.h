/* Prefix sums over a tile or a coalesced group. */
#ifndef GRADUS_CUDA_COOPERATIVE_GROUPS_SCAN_H
#define GRADUS_CUDA_COOPERATIVE_GROUPS_SCAN_H
#ifndef GR_GROUP
#include "../cooperative_groups.h"
#else
namespace cooperative_groups {
template <class G, class T, class Op> GR_GROUP T inclusive_scan(const G &group, T value, Op both)
{
    for (unsigned int by = 1; by < group.size(); by *= 2) {
        T before = group.shfl_up(value, by);
        if (group.thread_rank() >= by) value = both(before, value);
    }
    return value;
}
template <class G, class T> GR_GROUP T inclusive_scan(const G &group, T value) { return inclusive_scan(group, value, plus<T>()); }
template <class G, class T, class Op> GR_GROUP T exclusive_scan(const G &group, T value, Op both)
{
    T before = group.shfl_up(inclusive_scan(group, value, both), 1);
    return group.thread_rank() == 0 ? T() : before;
}
template <class G, class T> GR_GROUP T exclusive_scan(const G &group, T value) { return exclusive_scan(group, value, plus<T>()); }
} // namespace cooperative_groups
#endif
#endif

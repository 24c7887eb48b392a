/* Copies by a whole group; they are done when the group has waited. */
#ifndef GRADUS_CUDA_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define GRADUS_CUDA_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#ifndef GR_GROUP
#include "../cooperative_groups.h"
#else
namespace cooperative_groups {
template <class G, class T> GR_GROUP void memcpy_async(const G &group, T *to, const T *from, size_t bytes)
{
    const unsigned char *source = (const unsigned char *)from;
    unsigned char *target = (unsigned char *)to;
    size_t words = bytes / 4;
    bool aligned = (((size_t)source | (size_t)target) & 3) == 0;
    if (!aligned) words = 0;
    for (size_t i = group.thread_rank(); i < words; i += group.size()) ((unsigned int *)target)[i] = ((const unsigned int *)source)[i];
    for (size_t i = words * 4 + group.thread_rank(); i < bytes; i += group.size()) target[i] = source[i];
}
template <class G> GR_GROUP void wait(const G &group) { group.sync(); }
template <unsigned int behind, class G> GR_GROUP void wait_prior(const G &group) { group.sync(); }
} // namespace cooperative_groups
#endif
#endif

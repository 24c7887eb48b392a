/* Exchanges between the threads of a warp: shuffles, votes, matches, reductions. What a processor has
   instructions for is a builtin of clang, which the compiler knows; the rest is made of these. */
#ifndef GRADUS_CUDA_WARPS_H
#define GRADUS_CUDA_WARPS_H

#define GR_WARP static inline __device__ __attribute__((always_inline))

/* The last argument of a shuffle: the lanes of a segment, and the lane that bounds it. */
#define GR_SEGMENT(width, bound) (((32 - (width)) << 8) | (bound))

/* What a GPU exchanges in two halves goes as a whole here: a derivative could not follow its bits. */
#define GR_WHOLE(builtin)                                                                                        \
    extern "C" __device__ __attribute__((convergent, nothrow)) double __gr_shfl_##builtin##_f64(                 \
        unsigned int mask, double value, int which, int segment);                                                \
    extern "C" __device__ __attribute__((convergent, nothrow)) unsigned long long __gr_shfl_##builtin##_i64(     \
        unsigned int mask, unsigned long long value, int which, int segment);
GR_WHOLE(idx)
GR_WHOLE(up)
GR_WHOLE(down)
GR_WHOLE(bfly)
#undef GR_WHOLE

/* The segment of an upward shuffle is bounded below, the others' above. */
#define GR_SHUFFLES(name, builtin, bound, distance)                                                              \
    GR_WARP int name(unsigned int mask, int value, distance by, int width = 32)                                  \
    { return __nvvm_shfl_sync_##builtin##_i32(mask, value, by, GR_SEGMENT(width, bound)); }                      \
    GR_WARP float name(unsigned int mask, float value, distance by, int width = 32)                              \
    { return __nvvm_shfl_sync_##builtin##_f32(mask, value, by, GR_SEGMENT(width, bound)); }                      \
    GR_WARP unsigned int name(unsigned int mask, unsigned int value, distance by, int width = 32)                \
    { return (unsigned int)name(mask, (int)value, by, width); }                                                  \
    GR_WARP unsigned long long name(unsigned int mask, unsigned long long value, distance by, int width = 32)    \
    { return __gr_shfl_##builtin##_i64(mask, value, by, GR_SEGMENT(width, bound)); }                             \
    GR_WARP long long name(unsigned int mask, long long value, distance by, int width = 32)                      \
    { return (long long)name(mask, (unsigned long long)value, by, width); }                                      \
    GR_WARP unsigned long name(unsigned int mask, unsigned long value, distance by, int width = 32)              \
    { return (unsigned long)name(mask, (unsigned long long)value, by, width); }                                  \
    GR_WARP long name(unsigned int mask, long value, distance by, int width = 32)                                \
    { return (long)name(mask, (unsigned long long)value, by, width); }                                           \
    GR_WARP double name(unsigned int mask, double value, distance by, int width = 32)                            \
    { return __gr_shfl_##builtin##_f64(mask, value, by, GR_SEGMENT(width, bound)); }
GR_SHUFFLES(__shfl_sync, idx, 31, int)
GR_SHUFFLES(__shfl_up_sync, up, 0, unsigned int)
GR_SHUFFLES(__shfl_down_sync, down, 31, unsigned int)
GR_SHUFFLES(__shfl_xor_sync, bfly, 31, int)
#undef GR_SHUFFLES
#undef GR_SEGMENT

GR_WARP void __syncwarp(unsigned int mask = 0xffffffffu) { __nvvm_bar_warp_sync(mask); }
GR_WARP int __all_sync(unsigned int mask, int holds) { return __nvvm_vote_all_sync(mask, holds != 0); }
GR_WARP int __any_sync(unsigned int mask, int holds) { return __nvvm_vote_any_sync(mask, holds != 0); }
GR_WARP int __uni_sync(unsigned int mask, int holds) { return __nvvm_vote_uni_sync(mask, holds != 0); }
GR_WARP unsigned int __ballot_sync(unsigned int mask, int holds) { return __nvvm_vote_ballot_sync(mask, holds != 0); }
GR_WARP unsigned int __activemask() { return __nvvm_activemask(); }

/* The forms without a mask, of CUDA 8 and before: among the lanes that are there. */
template <class T> GR_WARP T __shfl(T value, int lane, int width = 32) { return __shfl_sync(__activemask(), value, lane, width); }
template <class T> GR_WARP T __shfl_up(T value, unsigned int by, int width = 32) { return __shfl_up_sync(__activemask(), value, by, width); }
template <class T> GR_WARP T __shfl_down(T value, unsigned int by, int width = 32) { return __shfl_down_sync(__activemask(), value, by, width); }
template <class T> GR_WARP T __shfl_xor(T value, int with, int width = 32) { return __shfl_xor_sync(__activemask(), value, with, width); }
GR_WARP int __all(int holds) { return __all_sync(__activemask(), holds); }
GR_WARP int __any(int holds) { return __any_sync(__activemask(), holds); }
GR_WARP unsigned int __ballot(int holds) { return __ballot_sync(__activemask(), holds); }

GR_WARP unsigned int __lane_id() { return __nvvm_read_ptx_sreg_laneid(); }

/* The lanes of `mask` whose value has the same bits as this lane's. */
template <class T> GR_WARP unsigned int __match_any_sync(unsigned int mask, T value)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "__match_any_sync takes values of 4 or 8 bytes");
    unsigned int same = 0;
    for (int lane = 0; lane < 32; lane++) {
        if (mask >> lane & 1) {
            T other = __shfl_sync(mask, value, lane);
            if (__builtin_memcmp(&other, &value, sizeof(T)) == 0) same |= 1u << lane;
        }
    }
    return same;
}

/* `mask` where all its lanes have a value with the same bits, else 0. */
template <class T> GR_WARP unsigned int __match_all_sync(unsigned int mask, T value, int *all)
{
    *all = __match_any_sync(mask, value) == mask;
    return *all ? mask : 0;
}

#define GR_REDUCE(name, type, both)                                                  \
    GR_WARP type __reduce_##name##_sync(unsigned int mask, type value)               \
    {                                                                                \
        bool first = true;                                                           \
        type result = value;                                                         \
        for (int lane = 0; lane < 32; lane++) {                                      \
            if (mask >> lane & 1) {                                                  \
                type a = result, b = __shfl_sync(mask, value, lane);                 \
                result = first ? b : (type)(both);                                   \
                first = false;                                                       \
            }                                                                        \
        }                                                                            \
        return result;                                                               \
    }
GR_REDUCE(add, unsigned int, a + b)
GR_REDUCE(add, int, (unsigned int)a + (unsigned int)b)
GR_REDUCE(min, unsigned int, b < a ? b : a)
GR_REDUCE(min, int, b < a ? b : a)
GR_REDUCE(max, unsigned int, a < b ? b : a)
GR_REDUCE(max, int, a < b ? b : a)
GR_REDUCE(and, unsigned int, a & b)
GR_REDUCE(or, unsigned int, a | b)
GR_REDUCE(xor, unsigned int, a ^ b)
#undef GR_REDUCE

/* The place of the `offset`-th set bit of `mask` from `base` on; all ones where there is none. */
GR_WARP unsigned int __fns(unsigned int mask, unsigned int base, int offset)
{
    int step = offset < 0 ? -1 : 1, left = offset < 0 ? -offset : offset;
    if (offset == 0) return mask >> base & 1 ? base : 0xffffffffu;
    for (int place = (int)base; place >= 0 && place < 32; place += step)
        if (mask >> place & 1 && --left == 0) return (unsigned int)place;
    return 0xffffffffu;
}
#undef GR_WARP

#endif

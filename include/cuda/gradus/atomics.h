/* Atomic read-modify-write functions: CUDA's names, types and scopes. All are relaxed, as CUDA's are; scopes
   make no difference where all threads share one coherent memory. */
#ifndef GRADUS_CUDA_ATOMICS_H
#define GRADUS_CUDA_ATOMICS_H

#define GR_ATOMIC static inline __device__ __attribute__((always_inline))

#define GR_FETCH_SCOPED(name, type, builtin, scope)                                                      \
    GR_ATOMIC type name(type *at, type value)                                                            \
    { return __scoped_atomic_fetch_##builtin(at, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_##scope); }
#define GR_FETCH(name, type, builtin)                                                                    \
    GR_FETCH_SCOPED(name, type, builtin, DEVICE)                                                         \
    GR_FETCH_SCOPED(name##_block, type, builtin, WRKGRP)                                                 \
    GR_FETCH_SCOPED(name##_system, type, builtin, SYSTEM)
#define GR_WORDS(name, builtin) GR_FETCH(name, int, builtin) GR_FETCH(name, unsigned int, builtin)
#define GR_LONGS(name, builtin) GR_FETCH(name, long long, builtin) GR_FETCH(name, unsigned long long, builtin)
GR_WORDS(atomicAdd, add)
GR_FETCH(atomicAdd, unsigned long long, add)
GR_FETCH(atomicAdd, float, add)
/* A template: programs that bring their own for GPUs without one ask for __CUDA_ARCH__ < 600, which also holds
   in the host's half, and theirs goes first. */
#pragma push_macro("GR_ATOMIC")
#undef GR_ATOMIC
#define GR_ATOMIC template <int = 0> static inline __device__ __attribute__((always_inline))
GR_FETCH(atomicAdd, double, add)
#pragma pop_macro("GR_ATOMIC")
GR_WORDS(atomicSub, sub)
GR_WORDS(atomicMin, min) GR_LONGS(atomicMin, min)
GR_WORDS(atomicMax, max) GR_LONGS(atomicMax, max)
GR_WORDS(atomicAnd, and) GR_LONGS(atomicAnd, and)
GR_WORDS(atomicOr, or) GR_LONGS(atomicOr, or)
GR_WORDS(atomicXor, xor) GR_LONGS(atomicXor, xor)
#undef GR_LONGS
#undef GR_WORDS
#undef GR_FETCH
#undef GR_FETCH_SCOPED

#define GR_EXCHANGE_SCOPED(name, type, scope)                                                            \
    GR_ATOMIC type name(type *at, type value)                                                            \
    {                                                                                                    \
        type old;                                                                                        \
        __scoped_atomic_exchange(at, &value, &old, __ATOMIC_RELAXED, __MEMORY_SCOPE_##scope);            \
        return old;                                                                                      \
    }
#define GR_EXCHANGE(type)                                                                                \
    GR_EXCHANGE_SCOPED(atomicExch, type, DEVICE)                                                         \
    GR_EXCHANGE_SCOPED(atomicExch_block, type, WRKGRP)                                                   \
    GR_EXCHANGE_SCOPED(atomicExch_system, type, SYSTEM)
GR_EXCHANGE(int)
GR_EXCHANGE(unsigned int)
GR_EXCHANGE(unsigned long long)
GR_EXCHANGE(float)
#undef GR_EXCHANGE
#undef GR_EXCHANGE_SCOPED

#define GR_COMPARE_SCOPED(name, type, scope)                                                             \
    GR_ATOMIC type name(type *at, type expected, type value)                                             \
    {                                                                                                    \
        __scoped_atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED,  \
                                           __MEMORY_SCOPE_##scope);                                      \
        return expected;                                                                                 \
    }
#define GR_COMPARE(type)                                                                                 \
    GR_COMPARE_SCOPED(atomicCAS, type, DEVICE)                                                           \
    GR_COMPARE_SCOPED(atomicCAS_block, type, WRKGRP)                                                     \
    GR_COMPARE_SCOPED(atomicCAS_system, type, SYSTEM)
GR_COMPARE(int)
GR_COMPARE(unsigned int)
GR_COMPARE(unsigned long long)
GR_COMPARE(unsigned short)
#undef GR_COMPARE
#undef GR_COMPARE_SCOPED

/* Counting up to `limit` and around, and down from it. */
#define GR_COUNT(suffix)                                                                                 \
    GR_ATOMIC unsigned int atomicInc##suffix(unsigned int *at, unsigned int limit)                       \
    { return __nvvm_atom_inc_gen_ui(at, limit); }                                                        \
    GR_ATOMIC unsigned int atomicDec##suffix(unsigned int *at, unsigned int limit)                       \
    { return __nvvm_atom_dec_gen_ui(at, limit); }
GR_COUNT()
GR_COUNT(_block)
GR_COUNT(_system)
#undef GR_COUNT
#undef GR_ATOMIC

#endif

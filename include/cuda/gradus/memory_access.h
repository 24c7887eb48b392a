/* Loads and stores with a hint, questions about address spaces, and shifts over two words. On one memory with
   the machine's own caches a hint says nothing. */
#ifndef GRADUS_CUDA_MEMORY_ACCESS_H
#define GRADUS_CUDA_MEMORY_ACCESS_H

#define GR_ACCESS static inline __device__ __attribute__((always_inline))
template <class T> GR_ACCESS T __ldg(const T *from) { return *from; }
template <class T> GR_ACCESS T __ldca(const T *from) { return *from; }
template <class T> GR_ACCESS T __ldcg(const T *from) { return *from; }
template <class T> GR_ACCESS T __ldcs(const T *from) { return *from; }
template <class T> GR_ACCESS T __ldlu(const T *from) { return *from; }
template <class T> GR_ACCESS T __ldcv(const T *from) { return *(const volatile T *)from; }
template <class T, class V> GR_ACCESS void __stwb(T *to, V value) { *to = value; }
template <class T, class V> GR_ACCESS void __stcg(T *to, V value) { *to = value; }
template <class T, class V> GR_ACCESS void __stcs(T *to, V value) { *to = value; }
template <class T, class V> GR_ACCESS void __stwt(T *to, V value) { *to = value; }

GR_ACCESS unsigned int __isShared(const void *p) { return __nvvm_isspacep_shared(p); }
GR_ACCESS unsigned int __isGlobal(const void *p) { return __nvvm_isspacep_global(p); }
GR_ACCESS unsigned int __isConstant(const void *p) { return __nvvm_isspacep_const(p); }
GR_ACCESS unsigned int __isLocal(const void *p) { return __nvvm_isspacep_local(p); }
GR_ACCESS size_t __cvta_generic_to_shared(const void *p) { return (size_t)p; }
GR_ACCESS size_t __cvta_generic_to_global(const void *p) { return (size_t)p; }
GR_ACCESS size_t __cvta_generic_to_constant(const void *p) { return (size_t)p; }
GR_ACCESS size_t __cvta_generic_to_local(const void *p) { return (size_t)p; }
GR_ACCESS void *__cvta_shared_to_generic(size_t p) { return (void *)p; }
GR_ACCESS void *__cvta_global_to_generic(size_t p) { return (void *)p; }

GR_ACCESS unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int by)
{
    return (unsigned int)(((((unsigned long long)high << 32) | low) << (by & 31)) >> 32);
}
GR_ACCESS unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int by)
{
    return by >= 32 ? low : __funnelshift_l(low, high, by);
}
GR_ACCESS unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int by)
{
    return (unsigned int)((((unsigned long long)high << 32) | low) >> (by & 31));
}
GR_ACCESS unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int by)
{
    return by >= 32 ? high : __funnelshift_r(low, high, by);
}
#undef GR_ACCESS

#endif

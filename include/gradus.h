/* gradus.h: derivatives by call, for programs compiled with `gradus cc` or `gradus c++`.
 *
 *     #include <gradus.h>
 *     double f(const double *x, int n);
 *     gradus_vjp(f, gradus_dup, x, x_adj, gradus_const, n);       adds the gradient into x_adj
 *
 * After the function come its arguments in order, each with a word about it before it:
 *
 *     gradus_const, x            x is inactive
 *     gradus_dup, x, x_shadow    x has a shadow: memory for its tangent or adjoint beside a pointer,
 *                                the tangent itself beside a number (forward)
 *     gradus_dupnoneed, x, x_shadow   the same, and nobody reads what x points to afterwards
 *     gradus_out, x              x is a number, its adjoint is returned (reverse)
 *
 * Split mode, with the tape in your hands:
 *
 *     void *tape = gradus_augmented(f, gradus_dup, x, x_adj, gradus_const, n);
 *     gradus_return(f, gradus_dup, x, x_adj, gradus_const, n, 1.0, tape);
 *
 * runs f and leaves a tape; then adds the gradient. Both take the same words and arguments, the second
 * the result's cotangent and the tape behind them. In between memory may change. A tape serves once.
 *
 * Without a word a number is gradus_out in reverse and gradus_dup in forward mode, a pointer
 * gradus_dup, an integer gradus_const. Adjoints are added to, never overwritten. The calls are
 * replaced at compile time: none of these functions and words exists at run time. */
#ifndef GRADUS_H
#define GRADUS_H

/* Device code in CUDA may request derivatives, too. */
#ifdef __CUDACC__
#define GRADUS_BOTH __host__ __device__
#else
#define GRADUS_BOTH
#endif
#ifdef __CUDA_ARCH__
#define GRADUS_WORD extern __device__ int
#else
#define GRADUS_WORD extern int
#endif

#ifdef __cplusplus
extern "C" {
#endif

GRADUS_WORD gradus_const, gradus_dup, gradus_dupnoneed, gradus_out;
/* Words of other tools. */
#if defined(__clang__)
#define GRADUS_NO_WORD(text) GRADUS_WORD __attribute__((unavailable(text)))
GRADUS_NO_WORD("write gradus_dup, x, x_shadow for a pointer, gradus_out, x for a number") gradus_active;
GRADUS_NO_WORD("write gradus_const, x") gradus_inactive;
GRADUS_NO_WORD("write gradus_dup, x, x_shadow") gradus_duplicated;
#undef GRADUS_NO_WORD
#endif
/* Before a number: so many tangents or adjoints at once, one shadow after the other. */
GRADUS_WORD gradus_width;
/* Split mode: the tape; the bytes of its memory, gradus_tape_bytes(f, words...), where you give it;
 * before a pointer: nobody writes there between the two calls. */
GRADUS_WORD gradus_tape, gradus_allocated, gradus_not_overwritten;
/* Products with a zero seed are zero, whatever the other factor. */
GRADUS_WORD gradus_strong_zero;
/* The function's own result comes first in what is returned. */
GRADUS_WORD gradus_primal_return;

#ifdef __cplusplus
}

/* C++: the type of what is returned is given in angle brackets. */
template <typename Result = void, typename... Arguments>
GRADUS_BOTH Result __gradus_vjp(Arguments...);
template <typename Result = void, typename... Arguments>
GRADUS_BOTH Result __gradus_jvp(Arguments...);

template <typename Result = void *, typename... Arguments>
GRADUS_BOTH Result __gradus_augmentfwd(Arguments...);
template <typename Result = void, typename... Arguments>
GRADUS_BOTH Result __gradus_reverse(Arguments...);
template <typename Result = unsigned long, typename... Arguments>
GRADUS_BOTH Result __gradus_augmentsize(Arguments...);

#define gradus_augmented(f, ...) __gradus_augmentfwd<void *>((void *)(f), __VA_ARGS__)
#define gradus_return(f, ...) __gradus_reverse<void>((void *)(f), __VA_ARGS__)
#define gradus_return_double(f, ...) __gradus_reverse<double>((void *)(f), __VA_ARGS__)
#define gradus_tape_bytes(...) __gradus_augmentsize<unsigned long>((void *)__VA_ARGS__)

#define gradus_vjp(f, ...) __gradus_vjp<void>((void *)(f), __VA_ARGS__)
#define gradus_vjp_double(f, ...) __gradus_vjp<double>((void *)(f), __VA_ARGS__)
#define gradus_vjp_float(f, ...) __gradus_vjp<float>((void *)(f), __VA_ARGS__)
#define gradus_jvp(f, ...) __gradus_jvp<void>((void *)(f), __VA_ARGS__)
#define gradus_jvp_double(f, ...) __gradus_jvp<double>((void *)(f), __VA_ARGS__)
#define gradus_jvp_float(f, ...) __gradus_jvp<float>((void *)(f), __VA_ARGS__)

#else

/* Reverse mode: what is returned is the adjoint of the only gradus_out argument. For several,
 * declare `struct S __gradus_vjp_S(void *, ...)`: any name that begins so will do. */
void __gradus_vjp(void *function, ...);
double __gradus_vjp_double(void *function, ...);
float __gradus_vjp_float(void *function, ...);
/* Forward mode: what is returned is the tangent of the result. */
void __gradus_jvp(void *function, ...);
double __gradus_jvp_double(void *function, ...);
float __gradus_jvp_float(void *function, ...);

/* Split mode: what is returned is the tape; as gradus_vjp; the bytes of a tape. */
void *__gradus_augmentfwd(void *function, ...);
void __gradus_reverse(void *function, ...);
double __gradus_reverse_double(void *function, ...);
unsigned long __gradus_augmentsize(void *function, ...);

#define gradus_augmented(f, ...) __gradus_augmentfwd((void *)(f), __VA_ARGS__)
#define gradus_return(f, ...) __gradus_reverse((void *)(f), __VA_ARGS__)
#define gradus_return_double(f, ...) __gradus_reverse_double((void *)(f), __VA_ARGS__)
#define gradus_tape_bytes(...) __gradus_augmentsize((void *)__VA_ARGS__)

#define gradus_vjp(f, ...) __gradus_vjp((void *)(f), __VA_ARGS__)
#define gradus_vjp_double(f, ...) __gradus_vjp_double((void *)(f), __VA_ARGS__)
#define gradus_vjp_float(f, ...) __gradus_vjp_float((void *)(f), __VA_ARGS__)
#define gradus_jvp(f, ...) __gradus_jvp((void *)(f), __VA_ARGS__)
#define gradus_jvp_double(f, ...) __gradus_jvp_double((void *)(f), __VA_ARGS__)
#define gradus_jvp_float(f, ...) __gradus_jvp_float((void *)(f), __VA_ARGS__)

#endif

/* Registrations, at file scope (docs/howto/custom-derivatives.md): derivatives of one's own, functions without
 * derivatives, functions like those of the C library, allocators (the number of the argument with the
 * bytes, and what frees). */
#define GRADUS_KEEP __attribute__((used)) static
#define GRADUS_GRADIENT(f, augmented, reverse) \
    GRADUS_KEEP void *__gradus_register_gradient_##f[3] = {(void *)f, (void *)augmented, (void *)reverse}
#define GRADUS_DERIVATIVE(f, jvp) \
    GRADUS_KEEP void *__gradus_register_derivative_##f[2] = {(void *)f, (void *)jvp}
#define GRADUS_INACTIVE(f) GRADUS_KEEP void *__gradus_inactivefn_##f[1] = {(void *)f}
#define GRADUS_LIKE(f, name) GRADUS_KEEP void *__gradus_function_like_##f[2] = {(void *)f, (void *)name}
#define GRADUS_ALLOCATION(f, bytes, give) \
    GRADUS_KEEP void *__gradus_allocation_like_##f[4] = {(void *)f, (void *)bytes, (void *)"-1", (void *)give}

#endif

/* One of candle's sources of elementwise kernels, named by the macros of the compilation. */
#include "inputs.h"
#include SOURCE
const size_t N = 40;
/* Five rows of eight that stand column by column. */
#define STRIDED 2, sizes({5, 8, 1, 5})

#define AFFINE(suffix, T)                                                                                           \
    {                                                                                                               \
        T *x = input<T>(N, 1), *y = fresh<T>(N);                                                                    \
        affine_##suffix<<<2, 16>>>(N, 0, nullptr, x, y, T(3.0f), T(2.0f));                                          \
        say("affine_" #suffix, y, N);                                                                               \
        affine_##suffix<<<2, 16>>>(N, STRIDED, x, y, T(3.0f), T(2.0f));                                             \
        say("affine_strided_" #suffix, y, N);                                                                       \
    }
#define UNARY(name, suffix, T)                                                                                      \
    {                                                                                                               \
        T *x = input<T>(N, 1), *y = fresh<T>(N);                                                                    \
        u##name##_##suffix<<<2, 16>>>(N, 0, nullptr, x, y);                                                         \
        say("u" #name "_" #suffix, y, N);                                                                           \
    }
#define UNARY1(name, suffix, T)                                                                                     \
    {                                                                                                               \
        T *x = input<T>(N, 1), *y = fresh<T>(N);                                                                    \
        u##name##_##suffix<<<2, 16>>>(N, 0, nullptr, T(2.0f), x, y);                                                \
        say("u" #name "_" #suffix, y, N);                                                                           \
    }
#define UNARIES(suffix, T)                                                                                          \
    UNARY(neg, suffix, T) UNARY(recip, suffix, T) UNARY(exp, suffix, T) UNARY(log, suffix, T) UNARY(sin, suffix, T) \
    UNARY(cos, suffix, T) UNARY(tanh, suffix, T) UNARY(erf, suffix, T) UNARY(ceil, suffix, T)                       \
    UNARY(floor, suffix, T) UNARY(round, suffix, T) UNARY(normcdf, suffix, T) UNARY(abs, suffix, T)                 \
    UNARY(sqr, suffix, T) UNARY(sqrt, suffix, T) UNARY(gelu, suffix, T) UNARY(gelu_erf, suffix, T)                  \
    UNARY(relu, suffix, T) UNARY(silu, suffix, T) UNARY(sign, suffix, T) UNARY(sigmoid, suffix, T)                  \
    UNARY1(elu, suffix, T) UNARY1(powf, suffix, T)
#define BINARY(name, suffix, T, R)                                                                                  \
    {                                                                                                               \
        T *x = input<T>(N, 1), *y = input<T>(N, 2);                                                                 \
        R *z = fresh<R>(N);                                                                                         \
        name##_##suffix<<<2, 16>>>(N, 0, nullptr, x, y, z);                                                         \
        say(#name "_" #suffix, z, N);                                                                               \
        /* The second operand stands column by column, then the first. */                                           \
        name##_##suffix<<<2, 16>>>(N, 2, sizes({5, 8, 8, 1, 1, 5}), x, y, z);                                       \
        say(#name "_right_" #suffix, z, N);                                                                         \
        name##_##suffix<<<2, 16>>>(N, 2, sizes({5, 8, 1, 5, 8, 1}), x, y, z);                                       \
        say(#name "_left_" #suffix, z, N);                                                                          \
    }
#define SUMS(suffix, T) BINARY(badd, suffix, T, T) BINARY(bmul, suffix, T, T) BINARY(bsub, suffix, T, T)
#define ORDERS(suffix, T)                                                                                           \
    BINARY(bmaximum, suffix, T, T) BINARY(bminimum, suffix, T, T)                                                   \
    BINARY(eq, suffix, T, uint8_t) BINARY(ne, suffix, T, uint8_t) BINARY(lt, suffix, T, uint8_t)                    \
    BINARY(le, suffix, T, uint8_t) BINARY(gt, suffix, T, uint8_t) BINARY(ge, suffix, T, uint8_t)
#define BINARIES(suffix, T) SUMS(suffix, T) BINARY(bdiv, suffix, T, T) ORDERS(suffix, T)
#define CAST(from, F, to, T)                                                                                        \
    {                                                                                                               \
        F *x = input<F>(N, 1);                                                                                      \
        T *y = fresh<T>(N);                                                                                         \
        cast_##from##_##to<<<2, 16>>>(N, 0, nullptr, x, y);                                                         \
        say("cast_" #from "_" #to, y, N);                                                                           \
        cast_##from##_##to<<<2, 16>>>(N, STRIDED, x, y);                                                            \
        say("cast_strided_" #from "_" #to, y, N);                                                                   \
    }
#define WHERE(ids, I, suffix, T)                                                                                    \
    {                                                                                                               \
        I *which = fresh<I>(N);                                                                                     \
        for (size_t i = 0; i < N; i++) which[i] = i % 3 == 0;                                                       \
        T *x = input<T>(N, 1), *y = input<T>(N, 2), *z = fresh<T>(N);                                               \
        where_##ids##_##suffix<<<2, 16>>>(N, 2, sizes({5, 8, 8, 1, 8, 1, 8, 1}), which, x, y, z);                   \
        say("where_" #ids "_" #suffix, z, N);                                                                       \
        where_##ids##_##suffix<<<2, 16>>>(N, 2, sizes({5, 8, 8, 1, 1, 5, 8, 1}), which, x, y, z);                   \
        say("where_strided_" #ids "_" #suffix, z, N);                                                               \
    }
#define FILL(suffix, T)                                                                                             \
    {                                                                                                               \
        T *y = fresh<T>(N);                                                                                         \
        fill_##suffix<<<2, 16>>>(y, T(3.0f), N);                                                                    \
        say("fill_" #suffix, y, N);                                                                                 \
        T *x = input<T>(N, 1);                                                                                      \
        copy2d_##suffix<<<2, 16>>>(x, y, 4, 5, 8, 10);                                                              \
        say("copy2d_" #suffix, y, N);                                                                               \
        const_set_##suffix<<<2, 16>>>(10, 2, sizes({5, 2, 4, 20}), T(1.0f), y);                                     \
        say("const_set_" #suffix, y, N);                                                                            \
    }

int main()
{
#ifdef IS_AFFINE
    AFFINE(f32, float) AFFINE(f64, double) AFFINE(f16, __half) AFFINE(bf16, __nv_bfloat16)
    AFFINE(f8_e4m3, __nv_fp8_e4m3) AFFINE(u8, uint8_t) AFFINE(u32, uint32_t) AFFINE(i16, int16_t)
    AFFINE(i32, int32_t) AFFINE(i64, int64_t)
#endif
#ifdef IS_UNARY
    UNARIES(f32, float) UNARIES(f64, double) UNARIES(f16, __half) UNARIES(bf16, __nv_bfloat16)
    UNARIES(fp8_e4m3, __nv_fp8_e4m3)
    UNARY(copy, u8, uint8_t) UNARY(copy, i64, int64_t) UNARY(copy, bf16, __nv_bfloat16)
#endif
#ifdef IS_BINARY
    BINARIES(f32, float) BINARIES(f64, double) BINARIES(f16, __half) BINARIES(bf16, __nv_bfloat16)
    BINARIES(f8_e4m3, __nv_fp8_e4m3)
    SUMS(u8, uint8_t) SUMS(u32, uint32_t) SUMS(i64, int64_t) ORDERS(u8, uint8_t) ORDERS(i64, int64_t)
#endif
#ifdef IS_CAST
    CAST(f32, float, f64, double) CAST(f64, double, f32, float) CAST(f32, float, f16, __half)
    CAST(f16, __half, f32, float) CAST(f32, float, bf16, __nv_bfloat16) CAST(bf16, __nv_bfloat16, f32, float)
    CAST(f32, float, f8_e4m3, __nv_fp8_e4m3) CAST(f8_e4m3, __nv_fp8_e4m3, f32, float)
    CAST(u8, uint8_t, f32, float) CAST(u8, uint8_t, f16, __half) CAST(u32, uint32_t, bf16, __nv_bfloat16)
    CAST(u8, uint8_t, f8_e4m3, __nv_fp8_e4m3) CAST(i64, int64_t, u8, uint8_t)
    /* Every number of eight bits, and numbers between and beyond them. */
    __nv_fp8_e4m3 *all = fresh<__nv_fp8_e4m3>(256);
    for (int i = 0; i < 256; i++) all[i].__x = (__nv_fp8_storage_t)i;
    float *wide = fresh<float>(4096);
    cast_f8_e4m3_f32<<<4, 64>>>(256, 0, nullptr, all, wide);
    say("eight_bits", wide, 256);
    for (int i = 0; i < 4096; i++) wide[i] = (float)((i % 2 ? -1 : 1) * (double)(i * i) / 32768);
    __nv_fp8_e4m3 *narrow = fresh<__nv_fp8_e4m3>(4096);
    cast_f32_f8_e4m3<<<4, 64>>>(4096, 0, nullptr, wide, narrow);
    say("to_eight_bits", narrow, 4096);
#endif
#ifdef IS_TERNARY
    WHERE(u8, uint8_t, f32, float) WHERE(u32, uint32_t, f64, double) WHERE(i64, int64_t, f16, __half)
    WHERE(u8, uint8_t, bf16, __nv_bfloat16) WHERE(i16, int16_t, fp8_e4m3, __nv_fp8_e4m3)
    WHERE(i64, int64_t, i64, int64_t) WHERE(u32, uint32_t, u8, uint8_t)
#endif
#ifdef IS_FILL
    FILL(f32, float) FILL(f64, double) FILL(f16, __half) FILL(bf16, __nv_bfloat16) FILL(f8_e4m3, __nv_fp8_e4m3)
    FILL(u8, uint8_t) FILL(u32, uint32_t) FILL(i64, int64_t)
#endif
}

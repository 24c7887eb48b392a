/* candle's kernels that move elements to other places: convolutions, pools, scalings; and those by indices. */
#include "inputs.h"
#include SOURCE

/* Images (2, 3, 6, 7), kernels (4, 3, 3, 2) or, transposed, (3, 4, 3, 2); lines (2, 3, 13), kernels (4, 3, 5). */
#define WINDOWS(suffix, T)                                                                                          \
    {                                                                                                               \
        T *image = input<T>(252, 1), *kernel = input<T>(72, 2), *y = fresh<T>(2000);                                \
        const size_t *two = sizes({2, 3, 6, 7, 126, 42, 7, 1, 4, 3, 3, 2, 18, 6, 2, 1});                            \
        const size_t *turned = sizes({2, 3, 6, 7, 126, 42, 7, 1, 3, 4, 3, 2, 24, 6, 2, 1});                         \
        const size_t *one = sizes({2, 3, 13, 39, 13, 1, 4, 3, 5, 15, 5, 1});                                        \
        const size_t *one_turned = sizes({2, 3, 13, 39, 13, 1, 3, 4, 5, 20, 5, 1});                                 \
        /* stride 2, padding 1, dilation 1: h (6+2-3)/2+1 = 3, w (7+2-2)/2+1 = 4 */                                 \
        conv2d_##suffix<<<3, 64>>>(252, 4, 3, 2, 1, 1, two, image, kernel, y), say("conv2d_" #suffix, y, 96);       \
        /* stride 2, padding 1, no dilation: l (13+2-5)/2+1 = 6 */                                                  \
        conv1d_##suffix<<<1, 64>>>(78, 6, 2, 1, 1, one, image, kernel, y), say("conv1d_" #suffix, y, 48);           \
        /* transposed, stride 2, padding 1, dilation 2: h 5*2+2*2+1-2 = 13, w 6*2+2*1+1-2 = 13, l 12*2+4*2+1-2 = 31 */ \
        conv_transpose2d_##suffix<<<22, 64>>>(252, 13, 13, 2, 1, 0, 2, turned, image, kernel, y);                   \
        say("conv_transpose2d_" #suffix, y, 1352);                                                                  \
        conv_transpose1d_##suffix<<<4, 64>>>(78, 31, 2, 1, 0, 2, one_turned, image, kernel, y);                     \
        say("conv_transpose1d_" #suffix, y, 248);                                                                   \
        /* windows of 2 by 3 at every second place: 3 by 3 */                                                       \
        avg_pool2d_##suffix<<<1, 64>>>(252, 2, 3, 2, 2, two, image, y), say("avg_pool2d_" #suffix, y, 54);          \
        max_pool2d_##suffix<<<1, 64>>>(252, 2, 3, 2, 2, two, image, y), say("max_pool2d_" #suffix, y, 54);          \
        upsample_nearest2d_##suffix<<<14, 64>>>(9, 14, 6.0 / 9, 7.0 / 14, two, image, y);                           \
        say("upsample_nearest2d_" #suffix, y, 756);                                                                 \
        upsample_bilinear2d_##suffix<<<14, 64>>>(14, 9, false, false, 0, false, 0, two, image, y);                  \
        say("upsample_bilinear2d_" #suffix, y, 756);                                                                \
        /* kernels 3 by 2, stride 2, padding 1 */                                                                   \
        im2col_##suffix<<<7, 64>>>(432, 3, 4, 3, 2, 2, 1, 1, two, image, y), say("im2col_" #suffix, y, 432);        \
        im2col1d_##suffix<<<1, 64>>>(36, 6, 5, 2, 1, 1, one, image, y), say("im2col1d_" #suffix, y, 180);           \
        /* (2, 5, 3, 4) with stride 2: l 4*2+4 = 12 */                                                              \
        col2im1d_##suffix<<<2, 64>>>(72, 12, 5, 3, 4, 2, image, y), say("col2im1d_" #suffix, y, 72);                \
    }
/* (2, 5, 4); indices into the middle, some of which are none. */
#define MOVED(name, I, suffix, T)                                                                                   \
    {                                                                                                               \
        T *x = input<T>(40, 1), *z = fresh<T>(48);                                                                  \
        I *ids = fresh<I>(48);                                                                                      \
        for (size_t i = 0; i < 48; i++) ids[i] = i % 7 == 5 ? max_value<I>() : (I)(i * 3 % 5);                      \
        is_##name##_##suffix<<<1, 32>>>(48, 3, sizes({2, 5, 4, 20, 4, 1}), ids, x, z, 2, 5, 6, 4);                  \
        say("is_" #name "_" #suffix, z, 48);                                                                        \
        gather_##name##_##suffix<<<2, 32>>>(48, ids, x, z, 2, 5, 6, 4), say("gather_" #name "_" #suffix, z, 48);    \
        T *from = input<T>(48, 2);                                                                                  \
        T *y = input<T>(40, 1);                                                                                     \
        ia_##name##_##suffix<<<1, 32>>>(ids, 6, from, y, 2, 6, 5, 4), say("ia_" #name "_" #suffix, y, 40);          \
        y = input<T>(40, 1);                                                                                        \
        sa_##name##_##suffix<<<1, 32>>>(ids, from, y, 2, 6, 5, 4), say("sa_" #name "_" #suffix, y, 40);             \
        y = input<T>(40, 1);                                                                                        \
        s_##name##_##suffix<<<1, 32>>>(ids, from, y, 2, 6, 5, 4), say("s_" #name "_" #suffix, y, 40);               \
    }

int main()
{
#ifdef IS_CONV
    WINDOWS(f32, float) WINDOWS(f64, double) WINDOWS(f16, __half) WINDOWS(bf16, __nv_bfloat16) WINDOWS(u32, uint32_t)
#endif
#ifdef IS_INDEXING
    MOVED(i64, int64_t, f32, float) MOVED(u32, uint32_t, f64, double) MOVED(u8, uint8_t, f16, __half)
    MOVED(i64, int64_t, bf16, __nv_bfloat16) MOVED(u8, uint8_t, u8, uint8_t) MOVED(u32, uint32_t, i64, int64_t)
    MOVED(i64, int64_t, u32, uint32_t)
#endif
}

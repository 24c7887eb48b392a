/* candle's kernels over rows: sums, extremes and their places, softmax, norms, turns, and sorting. */
#include "inputs.h"
#include SOURCE
const size_t ROWS = 6, COLUMNS = 45;

#define REDUCE(suffix, T)                                                                                           \
    {                                                                                                               \
        const size_t *rows = sizes({ROWS, COLUMNS, COLUMNS, 1}), *columns = sizes({COLUMNS, ROWS, 1, COLUMNS});     \
        T *x = input<T>(ROWS * COLUMNS, 1), *y = fresh<T>(COLUMNS);                                                 \
        uint32_t *at = fresh<uint32_t>(COLUMNS);                                                                    \
        fast_sum_##suffix<<<ROWS, 64>>>(ROWS * COLUMNS, COLUMNS, 2, rows, x, y), say("sum_" #suffix, y, ROWS);      \
        fast_min_##suffix<<<ROWS, 64>>>(ROWS * COLUMNS, COLUMNS, 2, rows, x, y), say("min_" #suffix, y, ROWS);      \
        fast_max_##suffix<<<ROWS, 32>>>(ROWS * COLUMNS, COLUMNS, 2, rows, x, y), say("max_" #suffix, y, ROWS);      \
        fast_argmin_##suffix<<<ROWS, 64>>>(ROWS * COLUMNS, COLUMNS, 2, rows, x, at);                                \
        say("argmin_" #suffix, at, ROWS);                                                                           \
        fast_argmax_##suffix<<<ROWS, 32>>>(ROWS * COLUMNS, COLUMNS, 2, rows, x, at);                                \
        say("argmax_" #suffix, at, ROWS);                                                                           \
        fast_sum_##suffix<<<COLUMNS, 32>>>(ROWS * COLUMNS, ROWS, 2, columns, x, y);                                 \
        say("column_sum_" #suffix, y, COLUMNS);                                                                     \
        fast_sum_small_##suffix<<<2, 32>>>(COLUMNS, ROWS, 2, columns, x, y);                                        \
        say("column_sum_small_" #suffix, y, COLUMNS);                                                               \
    }
/* The last dimension is added up, by atomics. */
#define SUM(suffix, T)                                                                                              \
    {                                                                                                               \
        T *x = input<T>(ROWS * COLUMNS, 1), *y = fresh<T>(ROWS);                                                    \
        sum_##suffix<<<3, 64>>>(ROWS * COLUMNS, 2, 1, sizes({ROWS, COLUMNS, COLUMNS, 1, COLUMNS, 1}), x, y);        \
        say("atomic_sum_" #suffix, y, ROWS);                                                                        \
    }
#define NORMS(suffix, T)                                                                                            \
    {                                                                                                               \
        const int all = ROWS * COLUMNS;                                                                             \
        T *x = input<T>(all, 1), *y = fresh<T>(all), *alpha = input<T>(COLUMNS, 2), *beta = input<T>(COLUMNS, 3);   \
        softmax_##suffix<<<dim3(ROWS), dim3(1, 32)>>>(x, y, COLUMNS), say("softmax_" #suffix, y, all);              \
        rmsnorm_##suffix<<<ROWS, 32>>>(x, y, alpha, COLUMNS, 32, 1e-5f), say("rmsnorm_" #suffix, y, all);           \
        layernorm_##suffix<<<ROWS, 1024>>>(x, y, alpha, beta, COLUMNS, 1024, 1e-5f);                                \
        say("layernorm_" #suffix, y, all);                                                                          \
        layernorm_##suffix<<<ROWS, 32>>>(x, y, (T *)nullptr, (T *)nullptr, COLUMNS, 32, 1e-5f);                     \
        say("layernorm_plain_" #suffix, y, all);                                                                    \
        T *cosine = input<T>(20, 2), *sine = input<T>(20, 3);                                                       \
        rope_##suffix<<<4, 32>>>(x, cosine, sine, y, 6, 40, 8, 0), say("rope_" #suffix, y, 240);                    \
        rope_i_##suffix<<<3, 64>>>(x, cosine, sine, y, 6, 40, 0), say("rope_i_" #suffix, y, 240);                   \
        rope_thd_##suffix<<<4, 32>>>(x, cosine, sine, y, 2, 5, 3, 8, 0), say("rope_thd_" #suffix, y, 240);          \
    }
#define SORT(suffix, T)                                                                                             \
    {                                                                                                               \
        T *x = input<T>(ROWS * COLUMNS, 1);                                                                         \
        uint32_t *y = fresh<uint32_t>(ROWS * COLUMNS);                                                              \
        asort_asc_##suffix<<<ROWS, 64, 64 * 4>>>(x, y, COLUMNS, 64), say("ascending_" #suffix, y, ROWS * COLUMNS);  \
        asort_desc_##suffix<<<ROWS, 16, 64 * 4>>>(x, y, COLUMNS, 64);                                               \
        say("descending_" #suffix, y, ROWS * COLUMNS);                                                              \
    }

int main()
{
#ifdef IS_REDUCE
    REDUCE(f32, float) REDUCE(f64, double) REDUCE(f16, __half) REDUCE(bf16, __nv_bfloat16) REDUCE(u8, uint8_t)
    REDUCE(u32, uint32_t) REDUCE(i64, int64_t)
    SUM(f32, float) SUM(f64, double) SUM(u32, uint32_t) SUM(f16, __half) SUM(bf16, __nv_bfloat16)
    NORMS(f32, float) NORMS(f64, double) NORMS(f16, __half) NORMS(bf16, __nv_bfloat16)
#endif
#ifdef IS_SORT
    SORT(f32, float) SORT(f64, double) SORT(f16, __half) SORT(bf16, __nv_bfloat16) SORT(u8, uint8_t)
    SORT(u32, uint32_t) SORT(i64, int64_t)
#endif
}

/* candle's kernels of numbers of few bits: what quantises for its tiled products, and the product with experts' rows
   of eight bits. */
#include "inputs.h"
#include SOURCE

#ifdef IS_MMQ_GGUF_MMQ_QUANTIZE
const int64_t ROWS = 3, COLUMNS = 512, BLOCKS = ROWS * COLUMNS / 128;

/* Blocks of 128 numbers, the rows' first ones first; `scales` numbers of `T` before the quants. */
template <class T, class F> void quantise(const char *name, const char *scales_name, F launch, int scales)
{
    block_q8_1_mmq *y = fresh<block_q8_1_mmq>(BLOCKS);
    launch(input<float>(ROWS * COLUMNS, 1), nullptr, y, 0, COLUMNS, COLUMNS, 0, 0, COLUMNS, ROWS, 1, 1, nullptr);
    int8_t *quants = fresh<int8_t>(BLOCKS * 128);
    T *kept = fresh<T>(BLOCKS * scales);
    if (cudaDeviceSynchronize() != cudaSuccess) abort();
    for (int64_t b = 0; b < BLOCKS; b++) {
        memcpy(quants + b * 128, y[b].qs, 128);
        memcpy((void *)(kept + b * scales), (void *)&y[b].d4, scales * sizeof(T));
    }
    say(name, quants, BLOCKS * 128), say(scales_name, kept, BLOCKS * scales);
}
int main()
{
    quantise<float>("d4_quants", "d4_scales_f32", launch_mmq_quantize_q8_1_D4, 4);
    quantise<__half>("ds4_quants", "ds4_scales_f16", launch_mmq_quantize_q8_1_DS4, 8);
    quantise<__half>("d2s6_quants", "d2s6_scales_f16", launch_mmq_quantize_q8_1_D2S6, 8);
}
#endif

#ifdef IS_MOE_MOE_GGUF
const int EXPERTS = 2, TOKENS = 4, OUT = 5, IN = 96;

int main()
{
    block_q8_0 *weights = fresh<block_q8_0>(EXPERTS * OUT * IN / QK8_0);
    for (int i = 0; i < EXPERTS * OUT * IN; i++) {
        block_q8_0 &block = weights[i / QK8_0];
        block.d = __float2half((float)(1 + i / QK8_0 % 4) / 8);
        block.qs[i % QK8_0] = (int8_t)(i * 37 % 31 - 15);
    }
    int32_t *tokens = fresh<int32_t>(TOKENS), *experts = fresh<int32_t>(TOKENS);
    for (int m = 0; m < TOKENS; m++) tokens[m] = (m * 3 + 2) % TOKENS, experts[m] = m / 2;
    float *scales = input<float>(TOKENS, 3), *y = fresh<float>(TOKENS * OUT);
    moe_gemm_gguf(input<float>(TOKENS * IN, 1), weights, tokens, experts, scales, y, EXPERTS, 1, TOKENS, OUT, IN, 0,
                  nullptr);
    say("experts_f16", y, TOKENS * OUT);
}
#endif

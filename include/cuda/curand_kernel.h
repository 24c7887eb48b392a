/* Random numbers in kernels: XORWOW (Marsaglia 2003), Philox4x32-10 (Salmon et al. 2011), MRG32k3a (L'Ecuyer
   1999), with cuRAND's subsequences of 2^67, 2^66 and 2^76 numbers, and the distributions on them. Skipping
   far ahead is gradus-rt's. */
#ifndef GRADUS_CUDA_CURAND_KERNEL_H
#define GRADUS_CUDA_CURAND_KERNEL_H
#include "gradus_cuda.h"

#define GR_RANDOM static __inline__ __host__ __device__

/* What a normal distribution keeps of the second number of each pair. */
struct gr_pairs { int has_float, has_double; float rest; double rest_double; };

struct curandStateXORWOW { unsigned int d, v[5]; struct gr_pairs pairs; };
struct curandStateMRG32k3a { unsigned int s1[3], s2[3]; struct gr_pairs pairs; };
struct curandStatePhilox4_32_10 { uint4 ctr, output; uint2 key; unsigned int STATE; struct gr_pairs pairs; };
typedef struct curandStateXORWOW curandStateXORWOW_t;
typedef struct curandStateXORWOW curandState_t;
typedef struct curandStateXORWOW curandState;
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

#ifdef __CUDA__
extern "C" __host__ __device__ void __gr_xorwow_skip(unsigned int *state, unsigned long long subsequences, unsigned long long numbers);
extern "C" __host__ __device__ void __gr_mrg32k3a_skip(unsigned int *state, unsigned long long subsequences, unsigned long long numbers);

GR_RANDOM void gr_no_pairs(gr_pairs *pairs)
{
    pairs->has_float = pairs->has_double = 0;
    pairs->rest = 0;
    pairs->rest_double = 0;
}

GR_RANDOM void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset, curandStateXORWOW *state)
{
    unsigned int t0 = 1099087573u * ((unsigned int)seed ^ 0xaad26b49u);
    unsigned int t1 = 2591861531u * ((unsigned int)(seed >> 32) ^ 0xf7dcefddu);
    state->d = 6615241u + t1 + t0;
    state->v[0] = 123456789u + t0;
    state->v[1] = 362436069u ^ t0;
    state->v[2] = 521288629u + t1;
    state->v[3] = 88675123u ^ t1;
    state->v[4] = 5783321u + t0;
    gr_no_pairs(&state->pairs);
    if (subsequence != 0 || offset != 0) __gr_xorwow_skip(&state->d, subsequence, offset);
}
GR_RANDOM unsigned int curand(curandStateXORWOW *state)
{
    unsigned int t = state->v[0] ^ (state->v[0] >> 2);
    state->v[0] = state->v[1];
    state->v[1] = state->v[2];
    state->v[2] = state->v[3];
    state->v[3] = state->v[4];
    state->v[4] = (state->v[4] ^ (state->v[4] << 4)) ^ (t ^ (t << 1));
    state->d += 362437u;
    return state->v[4] + state->d;
}
GR_RANDOM void skipahead(unsigned long long count, curandStateXORWOW *state) { __gr_xorwow_skip(&state->d, 0, count); }
GR_RANDOM void skipahead_sequence(unsigned long long count, curandStateXORWOW *state) { __gr_xorwow_skip(&state->d, count, 0); }

GR_RANDOM void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset, curandStateMRG32k3a *state)
{
    const unsigned long long m1 = 4294967087ull, m2 = 4294944443ull;
    for (int i = 0; i < 3; i++) state->s1[i] = state->s2[i] = 12345u;
    if (seed != 0) {
        unsigned int x1 = (unsigned int)seed ^ 0x55555555u, x2 = (unsigned int)(seed >> 32) ^ 0xaaaaaaaau;
        for (int i = 0; i < 3; i++) {
            state->s1[i] = (unsigned int)(((unsigned long long)(i == 1 ? x2 : x1) * state->s1[i]) % m1);
            state->s2[i] = (unsigned int)(((unsigned long long)(i == 1 ? x1 : x2) * state->s2[i]) % m2);
        }
    }
    gr_no_pairs(&state->pairs);
    if (subsequence != 0 || offset != 0) __gr_mrg32k3a_skip(state->s1, subsequence, offset);
}
/* In [1, 2^32 - 209]. */
GR_RANDOM unsigned int gr_mrg32k3a(curandStateMRG32k3a *state)
{
    const long long m1 = 4294967087ll, m2 = 4294944443ll;
    long long p1 = (1403580ll * state->s1[1] - 810728ll * state->s1[0]) % m1;
    if (p1 < 0) p1 += m1;
    state->s1[0] = state->s1[1];
    state->s1[1] = state->s1[2];
    state->s1[2] = (unsigned int)p1;
    long long p2 = (527612ll * state->s2[2] - 1370589ll * state->s2[0]) % m2;
    if (p2 < 0) p2 += m2;
    state->s2[0] = state->s2[1];
    state->s2[1] = state->s2[2];
    state->s2[2] = (unsigned int)p2;
    return (unsigned int)(p1 <= p2 ? p1 - p2 + m1 : p1 - p2);
}
GR_RANDOM unsigned int curand(curandStateMRG32k3a *state)
{
    return (unsigned int)(gr_mrg32k3a(state) * 1.000000048662);
}
GR_RANDOM void skipahead(unsigned long long count, curandStateMRG32k3a *state) { __gr_mrg32k3a_skip(state->s1, 0, count); }
GR_RANDOM void skipahead_subsequence(unsigned long long count, curandStateMRG32k3a *state) { __gr_mrg32k3a_skip(state->s1, count, 0); }

GR_RANDOM uint4 gr_philox(uint4 counter, uint2 key)
{
    for (int round = 0; round < 10; round++) {
        unsigned long long a = 0xd2511f53ull * counter.x, b = 0xcd9e8d57ull * counter.z;
        counter = make_uint4((unsigned int)(b >> 32) ^ counter.y ^ key.x, (unsigned int)b,
                             (unsigned int)(a >> 32) ^ counter.w ^ key.y, (unsigned int)a);
        key.x += 0x9e3779b9u;
        key.y += 0xbb67ae85u;
    }
    return counter;
}
GR_RANDOM void gr_philox_add(curandStatePhilox4_32_10 *state, unsigned long long blocks)
{
    unsigned long long low = ((unsigned long long)state->ctr.y << 32 | state->ctr.x) + blocks;
    if (low < blocks && ++state->ctr.z == 0) state->ctr.w++;
    state->ctr.x = (unsigned int)low;
    state->ctr.y = (unsigned int)(low >> 32);
}
GR_RANDOM void skipahead(unsigned long long count, curandStatePhilox4_32_10 *state)
{
    unsigned int place = state->STATE + (unsigned int)(count & 3);
    gr_philox_add(state, (count >> 2) + (place >> 2));
    state->STATE = place & 3;
    state->output = gr_philox(state->ctr, state->key);
}
GR_RANDOM void skipahead_sequence(unsigned long long count, curandStatePhilox4_32_10 *state)
{
    unsigned long long high = ((unsigned long long)state->ctr.w << 32 | state->ctr.z) + count;
    state->ctr.z = (unsigned int)high;
    state->ctr.w = (unsigned int)(high >> 32);
    state->output = gr_philox(state->ctr, state->key);
}
GR_RANDOM void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset, curandStatePhilox4_32_10 *state)
{
    state->ctr = make_uint4(0, 0, (unsigned int)subsequence, (unsigned int)(subsequence >> 32));
    state->key = make_uint2((unsigned int)seed, (unsigned int)(seed >> 32));
    state->STATE = 0;
    gr_no_pairs(&state->pairs);
    skipahead(offset, state);
}
GR_RANDOM unsigned int curand(curandStatePhilox4_32_10 *state)
{
    unsigned int place = state->STATE++;
    unsigned int result = place == 0 ? state->output.x : place == 1 ? state->output.y : place == 2 ? state->output.z : state->output.w;
    if (state->STATE == 4) {
        state->STATE = 0;
        gr_philox_add(state, 1);
        state->output = gr_philox(state->ctr, state->key);
    }
    return result;
}
GR_RANDOM uint4 curand4(curandStatePhilox4_32_10 *state)
{
    unsigned int a = curand(state), b = curand(state), c = curand(state), d = curand(state);
    return make_uint4(a, b, c, d);
}

/* Uniform in (0, 1]. */
GR_RANDOM float gr_uniform(unsigned int x) { return x * 2.3283064e-10f + (2.3283064e-10f / 2.0f); }
GR_RANDOM double gr_uniform_double(unsigned int x, unsigned int y)
{
    unsigned long long bits = (unsigned long long)x ^ ((unsigned long long)y << 21);
    return bits * 1.1102230246251565e-16 + 1.1102230246251565e-16 / 2.0;
}
GR_RANDOM float curand_uniform(curandStateXORWOW *state) { return gr_uniform(curand(state)); }
GR_RANDOM float curand_uniform(curandStatePhilox4_32_10 *state) { return gr_uniform(curand(state)); }
GR_RANDOM float curand_uniform(curandStateMRG32k3a *state) { return (float)(gr_mrg32k3a(state) * 2.3283065498378288e-10); }
GR_RANDOM double curand_uniform_double(curandStateMRG32k3a *state) { return gr_mrg32k3a(state) * 2.3283065498378288e-10; }
GR_RANDOM double curand_uniform_double(curandStateXORWOW *state)
{
    unsigned int x = curand(state), y = curand(state);
    return gr_uniform_double(x, y);
}
GR_RANDOM double curand_uniform_double(curandStatePhilox4_32_10 *state)
{
    unsigned int x = curand(state), y = curand(state);
    return gr_uniform_double(x, y);
}
GR_RANDOM float4 curand_uniform4(curandStatePhilox4_32_10 *state)
{
    uint4 x = curand4(state);
    return make_float4(gr_uniform(x.x), gr_uniform(x.y), gr_uniform(x.z), gr_uniform(x.w));
}
GR_RANDOM double2 curand_uniform2_double(curandStatePhilox4_32_10 *state)
{
    uint4 x = curand4(state);
    return make_double2(gr_uniform_double(x.x, x.y), gr_uniform_double(x.z, x.w));
}

/* Two normal numbers of two uniform ones (Box and Muller 1958). */
GR_RANDOM float2 gr_box_muller(unsigned int x, unsigned int y)
{
    float u = gr_uniform(x), v = y * 2.3283064e-10f * 6.2831855f + (2.3283064e-10f * 6.2831855f / 2.0f);
    float radius = ::sqrtf(-2.0f * ::logf(u));
    return make_float2(radius * ::sinf(v), radius * ::cosf(v));
}
GR_RANDOM double2 gr_box_muller_double(double u, double v)
{
    double radius = ::sqrt(-2.0 * ::log(u)), angle = v * 6.283185307179586;
    return make_double2(radius * ::sin(angle), radius * ::cos(angle));
}
template <class S> GR_RANDOM float2 curand_normal2(S *state)
{
    if constexpr (std::is_same_v<S, curandStateMRG32k3a>) {
        float u = curand_uniform(state), v = curand_uniform(state) * 6.2831855f;
        float radius = ::sqrtf(-2.0f * ::logf(u));
        return make_float2(radius * ::sinf(v), radius * ::cosf(v));
    } else {
        unsigned int x = curand(state), y = curand(state);
        return gr_box_muller(x, y);
    }
}
template <class S> GR_RANDOM double2 curand_normal2_double(S *state)
{
    double u = curand_uniform_double(state), v = curand_uniform_double(state);
    return gr_box_muller_double(u, v);
}
template <class S> GR_RANDOM float curand_normal(S *state)
{
    if (state->pairs.has_float) {
        state->pairs.has_float = 0;
        return state->pairs.rest;
    }
    float2 both = curand_normal2(state);
    state->pairs.has_float = 1;
    state->pairs.rest = both.y;
    return both.x;
}
template <class S> GR_RANDOM double curand_normal_double(S *state)
{
    if (state->pairs.has_double) {
        state->pairs.has_double = 0;
        return state->pairs.rest_double;
    }
    double2 both = curand_normal2_double(state);
    state->pairs.has_double = 1;
    state->pairs.rest_double = both.y;
    return both.x;
}
GR_RANDOM float4 curand_normal4(curandStatePhilox4_32_10 *state)
{
    uint4 x = curand4(state);
    float2 a = gr_box_muller(x.x, x.y), b = gr_box_muller(x.z, x.w);
    return make_float4(a.x, a.y, b.x, b.y);
}
template <class S> GR_RANDOM float curand_log_normal(S *state, float mean, float deviation)
{ return ::expf(mean + deviation * curand_normal(state)); }
template <class S> GR_RANDOM double curand_log_normal_double(S *state, double mean, double deviation)
{ return ::exp(mean + deviation * curand_normal_double(state)); }
template <class S> GR_RANDOM float2 curand_log_normal2(S *state, float mean, float deviation)
{
    float2 both = curand_normal2(state);
    return make_float2(::expf(mean + deviation * both.x), ::expf(mean + deviation * both.y));
}
template <class S> GR_RANDOM float4 curand_log_normal4(S *state, float mean, float deviation)
{
    float4 all = curand_normal4(state);
    return make_float4(::expf(mean + deviation * all.x), ::expf(mean + deviation * all.y),
                       ::expf(mean + deviation * all.z), ::expf(mean + deviation * all.w));
}

/* Poisson: products of uniform numbers below 30 (Knuth), transformed rejection above (Hoermann's PTRS 1993). */
template <class S> GR_RANDOM unsigned int curand_poisson(S *state, double mean)
{
    if (mean < 30.0) {
        double limit = ::exp(-mean), product = curand_uniform_double(state);
        unsigned int count = 0;
        while (product > limit) {
            product *= curand_uniform_double(state);
            count++;
        }
        return count;
    }
    double b = 0.931 + 2.53 * ::sqrt(mean), a = -0.059 + 0.02483 * b;
    double scale = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2.0);
    for (;;) {
        double u = curand_uniform_double(state) - 0.5, v = curand_uniform_double(state);
        double us = 0.5 - ::fabs(u), k = ::floor((2.0 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= squeeze) return (unsigned int)k;
        if (k < 0.0 || (us < 0.013 && v > us)) continue;
        if (::log(v * scale / (a / (us * us) + b)) <= k * ::log(mean) - mean - ::lgamma(k + 1.0)) return (unsigned int)k;
    }
}
template <class S> GR_RANDOM uint4 curand_poisson4(S *state, double mean)
{
    unsigned int a = curand_poisson(state, mean), b = curand_poisson(state, mean);
    unsigned int c = curand_poisson(state, mean), d = curand_poisson(state, mean);
    return make_uint4(a, b, c, d);
}
#endif
#undef GR_RANDOM
#endif

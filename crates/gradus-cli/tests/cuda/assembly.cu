/* Assembly of the GPU inside of kernels, beside C++ that says the same. */
#include "check.h"
#include <string>

#define ONE(name, text) \
    __device__ unsigned name(unsigned a, unsigned b, unsigned c) \
    { unsigned r; asm(text : "=r"(r) : "r"(a), "r"(b), "r"(c)); return r; }
ONE(bfe_u, "bfe.u32 %0, %1, %2, %3;")
ONE(bfe_s, "bfe.s32 %0, %1, %2, %3;")
ONE(mad, "mad.lo.u32 %0, %1, %2, %3;")
ONE(mul_high, "{ .reg .u32 t; mul.hi.u32 t, %1, %2; add.u32 %0, t, %3; }")
ONE(permuted, "prmt.b32 %0, %1, %2, %3;")
ONE(choice, "lop3.b32 %0, %1, %2, %3, 0xCA;")
ONE(funnel, "shf.l.wrap.b32 %0, %1, %2, %3;")
ONE(shifted, "{ shl.b32 %0, %1, %2;\n\t add.u32 %0, %0, %3; }")
ONE(most, "max.s32 %0, %1, %2; // the third is not read\n")
ONE(selected, "{ .reg .pred p; setp.lt.s32 p, %1, %2; selp.u32 %0, %3, 7, p; }")
ONE(sum_if, "{ .reg .pred p<2>; setp.ge.u32 p1, %1, %2; mov.u32 %0, %3; @!p1 add.u32 %0, %0, 1000; }")
ONE(tripled, "vadd.u32.u32.u32.add %0, %1, %2, %3;")

__device__ unsigned part(unsigned a, unsigned at, unsigned count)
{
    unsigned long long wide = at >= 32 ? 0 : a >> at;
    return (unsigned)(count >= 32 ? wide : wide & ((1ull << count) - 1));
}
__device__ unsigned signed_part(unsigned a, unsigned at, unsigned count)
{
    int down = (int)a >> (at > 31 ? 31 : at);
    if (count == 0) return 0;
    return count >= 32 ? (unsigned)down : (unsigned)((int)((unsigned)down << (32 - count)) >> (32 - count));
}

__global__ void words(const unsigned *x, int n, unsigned *bad)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    unsigned a = x[t], b = x[(t + 1) % n], c = x[(t + 2) % n], small = c % 40, width = b % 40;
    if (bfe_u(a, small, width) != part(a, small, width)) bad[0] = 1;
    if (bfe_s(a, small, width) != signed_part(a, small, width)) bad[1] = 1;
    if (mad(a, b, c) != a * b + c) bad[2] = 1;
    if (mul_high(a, b, c) != __umulhi(a, b) + c) bad[3] = 1;
    if (permuted(a, b, c & 0x7777) != __byte_perm(a, b, c & 0x7777)) bad[4] = 1;
    if (choice(a, b, c) != ((a & b) | (~a & c))) bad[5] = 1;
    if (funnel(a, b, c) != __funnelshift_l(a, b, c)) bad[6] = 1;
    if (shifted(a, small, c) != (small > 31 ? 0 : a << small) + c) bad[7] = 1;
    if (most(a, b, c) != (unsigned)max((int)a, (int)b)) bad[8] = 1;
    if (selected(a, b, c) != ((int)a < (int)b ? c : 7)) bad[9] = 1;
    if (sum_if(a, b, c) != (a >= b ? c : c + 1000)) bad[10] = 1;
    if (tripled(a, b, c) != a + b + c) bad[11] = 1;
    unsigned low, high, bits = a;
    asm("mov.b64 {%0, %1}, %2;" : "=r"(low), "=r"(high) : "l"((unsigned long long)a << 32 | b));
    if (low != b || high != a) bad[12] = 1;
    asm("bfi.b32 %0, %1, %0, %2, 5;" : "+r"(bits) : "r"(b), "r"(small));
    unsigned mask = small > 31 ? 0 : 31u << small;
    if (bits != ((a & ~mask) | (small > 31 ? 0 : (b & 31) << small))) bad[13] = 1;
    float f = (float)a, g, h;
    asm("fma.rn.f32 %0, %2, %2, 0f3f800000;\n sqrt.rn.f32 %1, %2;" : "=f"(g), "=f"(h) : "f"(f));
    if (g != fmaf(f, f, 1) || h != sqrtf(f)) bad[14] = 1;
    int whole;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(whole) : "f"(-2.5f));
    if (whole != -2) bad[15] = 1;
}

__global__ void memory(unsigned *x, unsigned long long *y, unsigned *count)
{
    int t = threadIdx.x;
    unsigned a, b;
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(x + 2 * t));
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" : : "l"(x + 2 * t), "r"(b), "r"(a) : "memory");
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %0, 5;\n @p st.relaxed.gpu.u64 [%1+8], %2; }"
                 : : "r"(t), "l"(y + 2 * t), "l"(77ull) : "memory");
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(a) : "l"(x + 2 * t) : "memory");
    x[2 * t] = a + 1;
    asm volatile("red.global.add.u32 [%0], %1;" : : "l"(count), "r"(t) : "memory");
    asm volatile("atom.global.cas.b32 %0, [%1], 0, %2;" : "=r"(a) : "l"(count + 1), "r"(t + 1) : "memory");
}

__global__ void together(const int *x, int *sums, unsigned *ballots, int *lanes)
{
    __shared__ int all[64];
    int t = threadIdx.x, value = x[t];
    /* The sum of all lanes before, within eight: the predicate says whether there is such a lane. */
    for (int by = 1; by < 8; by *= 2)
        asm volatile("{ .reg .s32 r0; .reg .pred p; shfl.sync.up.b32 r0|p, %0, %1, %2, 0xffffffff;"
                     " @p add.s32 %0, r0, %0; }" : "+r"(value) : "r"(by), "r"(24 << 8));
    all[t] = value;
    asm volatile("bar.sync 0;");
    sums[t] = all[63 - t];
    unsigned mask, before;
    asm volatile("{ .reg .pred p; setp.gt.s32 p, %1, 3; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                 : "=r"(mask) : "r"(x[t]));
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(before));
    ballots[t] = mask & before;
    asm("mov.u32 %0, %%laneid;" : "=r"(lanes[t]));
    if (t == 40) asm volatile("exit;");
    lanes[t] += 100;
}

int main()
{
    const int n = 4096;
    unsigned *x, *bad;
    OK(cudaMallocManaged(&x, n * sizeof *x));
    OK(cudaMallocManaged(&bad, 16 * sizeof *bad));
    OK(cudaMemset(bad, 0, 16 * sizeof *bad));
    unsigned state = 1;
    for (int i = 0; i < n; i++) x[i] = state = state * 1664525u + 1013904223u;
    words<<<n / 128, 128>>>(x, n, bad);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++) near(bad[i], 0, ("instruction " + std::to_string(i)).c_str());

    unsigned long long *y;
    OK(cudaMallocManaged(&y, 64 * sizeof *y));
    OK(cudaMemset(y, 0, 64 * sizeof *y));
    std::vector<unsigned> old(x, x + 64);
    bad[0] = bad[1] = 0;
    memory<<<1, 32>>>(x, y, bad);
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < 32; t++) {
        expect(x[2 * t] == old[2 * t + 1] + 1 && x[2 * t + 1] == old[2 * t], "pairs change places");
        expect(y[2 * t + 1] == (t < 5 ? 77 : 0) && y[2 * t] == 0, "stores under a predicate");
    }
    expect(bad[0] == 31 * 32 / 2, "sums in memory");
    expect(bad[1] >= 1 && bad[1] <= 32, "an exchange");

    int *in, *sums, *lanes;
    OK(cudaMallocManaged(&in, 64 * sizeof *in));
    OK(cudaMallocManaged(&sums, 64 * sizeof *sums));
    OK(cudaMallocManaged(&lanes, 64 * sizeof *lanes));
    for (int t = 0; t < 64; t++) in[t] = t * t % 7;
    together<<<1, 64>>>(in, sums, x, lanes);
    OK(cudaDeviceSynchronize());
    for (int t = 0; t < 64; t++) {
        int other = 63 - t, sum = 0;
        for (int lane = other & ~7; lane <= other; lane++) sum += in[lane];
        near(sums[t], sum, "sums of lanes");
        unsigned mask = 0;
        for (int lane = t & ~31; lane < t; lane++) mask |= (in[lane] > 3) << (lane & 31);
        near(x[t], mask, "votes of the lanes before");
        near(lanes[t], (t & 31) + (t == 40 ? 0 : 100), "a thread that ends");
    }
    return wrong;
}

/* Assembly of the GPU at the edges of what its manual defines: each number below is the manual's. */
#include "check.h"
#include <cstring>
#include <string>

typedef unsigned u32;
typedef unsigned long long u64;

__global__ void whole(const u32 *x, u32 *r, u64 *w)
{
    u32 one = x[1], least = x[2], all = x[3];
    /* What is tied to a result has two names. */
    asm("add.u32 %0, %1, %2;" : "=r"(r[0]) : "0"(one), "r"(4));
    r[1] = 5;
    asm("add.u32 %0, %0, %1;" : "+r"(r[1]) : "r"(one));
    /* Divisions that C++ leaves open end, and other lines are not deleted for their sake. */
    asm("div.s32 %0, %1, %2;" : "=r"(r[2]) : "r"(least), "r"(all));
    asm("rem.s32 %0, %1, %2;" : "=r"(r[3]) : "r"(least), "r"(all));
    asm("div.s32 %0, %1, %2;" : "=r"(r[4]) : "r"(7u - 14 * one), "r"(2));
    asm("rem.s32 %0, %1, %2;" : "=r"(r[5]) : "r"(7u - 14 * one), "r"(2));
    asm volatile("{ .reg .u32 t; div.u32 t, %0, %1; rem.s32 t, %0, %1; }" : : "r"(one), "r"(one - 1));
    r[6] = one - 1 == 0 ? 77 : 78;
    asm("div.u32 %0, %1, %2;" : "=r"(r[7]) : "r"(all), "r"(one + 1));
    /* Shifts take all there is. */
    asm("shl.b32 %0, %1, %2;" : "=r"(r[8]) : "r"(all), "r"(32));
    asm("shr.s32 %0, %1, %2;" : "=r"(r[9]) : "r"(least), "r"(1000));
    asm("shr.u32 %0, %1, %2;" : "=r"(r[10]) : "r"(all), "r"(all));
    asm("shf.r.clamp.b32 %0, %1, %2, %3;" : "=r"(r[11]) : "r"(0x11111111), "r"(0x22222222), "r"(40));
    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(r[12]) : "r"(0x11111111), "r"(0x22222222), "r"(36));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r[13]) : "r"(0x40000000), "r"(28), "r"(3));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r[14]) : "r"(least), "r"(40), "r"(3));
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r[15]) : "r"(all), "r"(256 + 30), "r"(8));
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r[16]) : "r"(0x807f0102), "r"(0x11223344), "r"(0x7b84));
    asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(r[17]) : "r"(0xf0), "r"(0xcc), "r"(0xaa), "n"(0x1e));
    asm("clz.b32 %0, %1;" : "=r"(r[18]) : "r"(0));
    /* A name in an inner scope is another register. */
    asm("{ .reg .u32 t; mov.u32 t, %1; { .reg .u32 t; mov.u32 t, 9; } add.u32 %0, t, 1; /* 2 */ }"
        : "=r"(r[19]) : "r"(one));
    /* Carries within one statement. */
    asm("add.cc.u32 %0, %2, %4; addc.u32 %1, %3, %5;"
        : "=&r"(r[20]), "=r"(r[21]) : "r"(0xffffffff), "r"(1), "r"(2), "r"(3));
    asm("sub.cc.u32 %0, %2, %4; subc.u32 %1, %3, %5;"
        : "=&r"(r[22]), "=r"(r[23]) : "r"(1), "r"(9), "r"(2), "r"(3));
    asm("{ .reg .u32 c; mad.lo.cc.u32 %0, %3, %4, %5; madc.hi.cc.u32 %1, %3, %4, 0xffffffff;"
        " addc.u32 %2, 0, 0; }"
        : "=&r"(r[24]), "=&r"(r[25]), "=r"(r[26]) : "r"(0xffffffff), "r"(0xffffffff), "r"(0xffffffff));
    asm("add.cc.u64 %0, %2, %3; addc.cc.u64 %1, %2, %2;"
        : "=&l"(w[0]), "=l"(w[1]) : "l"(~0ull), "l"(1ull));
    asm("mul.hi.s64 %0, %1, %2;" : "=l"(w[2]) : "l"(-3ll), "l"(5ll));
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(w[3]) : "r"(-3), "r"(5), "l"(1ll));
    /* A comparison, its opposite, and what else must hold. */
    asm("{ .reg .pred p, q, c; setp.ne.u32 c, %2, 0; setp.lt.and.s32 p|q, %3, %4, c;"
        " selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }"
        : "=r"(r[27]), "=r"(r[28]) : "r"(0), "r"(3), "r"(4));
    asm("{ .reg .pred p, q, c; setp.ne.u32 c, %2, 0; setp.lt.or.s32 p|q, %3, %4, !c;"
        " selp.u32 %0, 1, 0, p; selp.u32 %1, 1, 0, q; }"
        : "=r"(r[29]), "=r"(r[30]) : "r"(1), "r"(4), "r"(3));
    /* Nothing but a value that nobody knows. */
    r[31] = 12;
    asm volatile("" : "+r"(r[31]));
}

__global__ void numbers(const float *x, float *r, u32 *i, u64 *w)
{
    float nan = x[0], tiny = x[1], zero = x[2], inf = x[3], two = x[4];
    double wide = nan;
    asm("min.f32 %0, %1, %2;" : "=f"(r[0]) : "f"(nan), "f"(two));
    asm("max.f32 %0, %1, %2;" : "=f"(r[1]) : "f"(two), "f"(nan));
    asm("min.f32 %0, %1, %2;" : "=f"(r[2]) : "f"(zero), "f"(-zero));
    asm("max.f32 %0, %1, %2;" : "=f"(r[3]) : "f"(-zero), "f"(zero));
    asm("add.ftz.f32 %0, %1, %2;" : "=f"(r[4]) : "f"(-tiny), "f"(-zero));
    asm("add.f32 %0, %1, %2;" : "=f"(r[5]) : "f"(tiny), "f"(zero));
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(r[6]) : "f"(1.5e-38f * two), "f"(0.25f));
    asm("fma.rn.ftz.f32 %0, %1, %2, %3;" : "=f"(r[7]) : "f"(tiny), "f"(1e20f * two), "f"(two));
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r[8]) : "f"(-tiny));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r[9]) : "f"(-66 * two));
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(r[10]) : "f"(-zero));
    asm("lg2.approx.f32 %0, %1;" : "=f"(r[11]) : "f"(zero));
    asm("cvt.rn.ftz.f32.f64 %0, %1;" : "=f"(r[12]) : "d"(1e-40 * two));
    asm("cvt.ftz.f64.f32 %0, %1;" : "=d"(wide) : "f"(tiny));
    r[13] = wide == 0;
    asm("add.f64 %0, %1, 0d3FF0000000000000;" : "=d"(wide) : "d"((double)two));
    r[14] = wide;
    asm("add.f32 %0, %1, 0f3f800000;" : "=f"(r[15]) : "f"(two));
    /* Whole numbers of what fits none. */
    wide = nan;
    asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(i[0]) : "f"(nan));
    asm("cvt.rzi.s32.f64 %0, %1;" : "=r"(i[1]) : "d"(wide));
    asm("cvt.rni.u32.f64 %0, %1;" : "=r"(i[2]) : "d"(wide));
    asm("cvt.rzi.s64.f32 %0, %1;" : "=l"(w[0]) : "f"(nan));
    asm("cvt.rzi.u64.f64 %0, %1;" : "=l"(w[1]) : "d"(wide));
    asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(i[3]) : "f"(inf));
    asm("cvt.rzi.u32.f32 %0, %1;" : "=r"(i[4]) : "f"(-two));
    asm("cvt.rmi.s32.f32 %0, %1;" : "=r"(i[5]) : "f"(-1.25f * two));
    asm("cvt.rzi.s64.f32 %0, %1;" : "=l"(w[2]) : "f"(-inf));
    asm("cvt.rpi.ftz.s32.f32 %0, %1;" : "=r"(i[6]) : "f"(tiny));
    asm("cvt.rpi.s32.f32 %0, %1;" : "=r"(i[7]) : "f"(tiny));
    i[8] = __double2int_rz(wide);
    w[3] = __float2ull_rn(nan);
    /* Ordered and unordered comparisons. */
#define COMPARED(how, a, b, at) \
    asm("{ .reg .pred p; setp." how ".f32 p, %1, %2; selp.u32 %0, 1, 0, p; }" : "=r"(i[at]) : "f"(a), "f"(b))
    COMPARED("ne", nan, two, 9);
    COMPARED("neu", nan, two, 10);
    COMPARED("equ", nan, two, 11);
    COMPARED("geu", nan, two, 12);
    COMPARED("ge", nan, two, 13);
    COMPARED("num", nan, two, 14);
    COMPARED("nan", two, nan, 15);
    COMPARED("eq.ftz", tiny, zero, 16);
    COMPARED("eq", tiny, zero, 17);
}

static u32 bits(float x)
{
    u32 word;
    memcpy(&word, &x, sizeof word);
    return word;
}

int main()
{
    u32 *x, *r;
    u64 *w;
    float *f, *g;
    OK(cudaMallocManaged(&x, 4 * sizeof *x));
    OK(cudaMallocManaged(&r, 32 * sizeof *r));
    OK(cudaMallocManaged(&w, 4 * sizeof *w));
    OK(cudaMallocManaged(&f, 5 * sizeof *f));
    OK(cudaMallocManaged(&g, 16 * sizeof *g));
    x[1] = 1, x[2] = 0x80000000, x[3] = 0xffffffff;
    const u32 words[32] = {
        5, 6, 0x80000000, 0, (u32)-3, (u32)-1, 77, 0x7fffffff,
        0, 0xffffffff, 0, 0x22222222, 0x21111111, 0xfffffffc, 0xffffffff, 3,
        0x11ff0044, 0x1e, 32, 2, 1, 5, 0xffffffff, 5,
        0, 0xfffffffe, 1, 0, 0, 0, 1, 12,
    };
    const u64 wides[4] = {0, ~0ull, ~0ull, (u64)-14};
    whole<<<1, 1>>>(x, r, w);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 32; i++) near(r[i], words[i], ("word " + std::to_string(i)).c_str());
    for (int i = 0; i < 4; i++) expect(w[i] == wides[i], ("wide word " + std::to_string(i)).c_str());

    f[0] = NAN, f[1] = 1e-40f, f[2] = 0, f[3] = INFINITY, f[4] = 2;
    const float numbers_of[16] = {
        2, 2, -0.0f, 0, -0.0f, 1e-40f, 0, 2,
        -INFINITY, 0, -INFINITY, -INFINITY, 0, 1, 3, 3,
    };
    const u32 counts[18] = {
        0, 0x80000000, 0x80000000, 0x7fffffff, 0, (u32)-3, 0, 1, 0x80000000,
        0, 1, 1, 1, 0, 0, 1, 1, 0,
    };
    const u64 longs[4] = {1ull << 63, 1ull << 63, 1ull << 63, 1ull << 63};
    numbers<<<1, 1>>>(f, g, r, w);
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++)
        expect(bits(g[i]) == bits(numbers_of[i]), ("number " + std::to_string(i)).c_str());
    for (int i = 0; i < 18; i++) near(r[i], counts[i], ("count " + std::to_string(i)).c_str());
    for (int i = 0; i < 4; i++) expect(w[i] == longs[i], ("long " + std::to_string(i)).c_str());
    return wrong;
}

/* Cooperative groups, half and bfloat16, complex numbers. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;

__global__ void groups(float *f, half *h)
{
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    auto quarter = cg::tiled_partition<8>(warp);
    cg::thread_group chosen = cg::tiled_partition(block, 16);
    cg::coalesced_group there = cg::coalesced_threads();
    f[0] = cg::reduce(warp, f[1], cg::plus<float>()) + cg::inclusive_scan(quarter, f[2]);
    f[1] = quarter.shfl_xor(f[1], 4) + (float)warp.shfl(h[0], 3) + there.shfl(make_double2(1, 2), 0).x + chosen.size();
    if (warp.thread_rank() == 0 && warp.any(f[0] > 0)) atomicAdd(&f[2], (float)warp.meta_group_rank());
    cg::sync(block);
    there.sync(), chosen.sync();
}
__global__ void halves(half *h, half2 *p, __nv_bfloat16 *b, cuDoubleComplex *z)
{
    h[0] = __hadd(h[1], __float2half(2.0f)) * h[2] + half(1.0f);
    p[0] = __hfma2(p[1], p[2], __halves2half2(h[0], h[1]));
    b[0] = b[1] / __float2bfloat16(3.0f);
    if (__hgt(h[0], h[1]) && b[0] > b[1]) atomicAdd(h, h[1]), atomicAdd(p, p[1]);
    h[3] = hexp(h[1]), h[4] = 0, h[4] += h[3], h[5] = __shfl_down_sync(~0u, h[4], 1);
    float both = __half2float(h[2]) + __bfloat162float(b[2]) + (float)h[3] + __low2float(p[0]);
    z[0] = cuCmul(cuCadd(z[1], make_cuDoubleComplex(both, 1)), cuCdiv(z[2], z[3]));
    z[1].x = cuCabs(z[0]);
}
int main()
{
    half h = __float2half(1.5f);
    groups<<<1, 64>>>(nullptr, nullptr);
    halves<<<1, 64>>>(nullptr, nullptr, nullptr, nullptr);
    return (int)(float)(h + h);
}

/* A kernel with shared memory and barriers, for blocks of `B` threads. */
__global__ void norms(const double *x, double *out, int n)
{
    __shared__ double part[B];
    int t = threadIdx.x, i = blockIdx.x * B + t;
    part[t] = i < n ? x[i] * x[i] * x[i] : 0;
    __syncthreads();
    for (int s = B / 2; s > 0; s >>= 1) {
        if (t < s) part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = sqrt(1 + part[0] * part[0]);
}

/* A host function that launches a kernel with shared memory and barriers: its derivatives are asked for by name. */
#define B 64

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

extern "C" double energy(const double *x, int n)
{
    int blocks = (n + B - 1) / B;
    double *dx, *out, y[64], all = 0;
    cudaMalloc(&dx, n * sizeof(double));
    cudaMalloc(&out, blocks * sizeof(double));
    cudaMemcpy(dx, x, n * sizeof(double), cudaMemcpyHostToDevice);
    norms<<<blocks, B>>>(dx, out, n);
    cudaMemcpy(y, out, blocks * sizeof(double), cudaMemcpyDeviceToHost);
    for (int b = 0; b < blocks; b++) all += y[b];
    cudaFree(dx);
    cudaFree(out);
    return all;
}

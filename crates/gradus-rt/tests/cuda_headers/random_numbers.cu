/* cuRAND on both sides, the samples' helpers. */
#include <curand.h>
#include <curand_kernel.h>
#include <helper_cuda.h>
#include <helper_functions.h>

__global__ void numbers(float *out, curandState *a, curandStatePhilox4_32_10_t *b, curandStateMRG32k3a *c)
{
    curand_init(1234, threadIdx.x, 0, a), curand_init(1, 2, 3, b), curand_init(1, 2, 3, c);
    out[0] = curand_uniform(a) + curand_normal(a) + (float)curand_uniform_double(a) + curand(a);
    out[1] = curand_normal4(b).x + curand_uniform4(b).w + curand_log_normal(b, 1.0f, 2.0f);
    out[2] = (float)curand_normal_double(c) + curand_poisson(c, 12.0);
    skipahead(10, a), skipahead(11, b);
}
int main(int argc, char **argv)
{
    StopWatchInterface *timer = NULL;
    sdkCreateTimer(&timer), sdkStartTimer(&timer);
    findCudaDevice(argc, (const char **)argv);
    curandGenerator_t generator;
    checkCudaErrors(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
    numbers<<<1, 1>>>(nullptr, nullptr, nullptr, nullptr);
    sdkStopTimer(&timer);
    return curandDestroyGenerator(generator);
}

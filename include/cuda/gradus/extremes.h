/* min and max over all pairs of arithmetic types, as CUDA overloads them for host and device. */
#ifndef GRADUS_CUDA_EXTREMES_H
#define GRADUS_CUDA_EXTREMES_H

#define GR_EXTREMES(where, first, second, result)                                                       \
    where static inline result max(first a, second b) { return (result)a < (result)b ? (result)b : (result)a; } \
    where static inline result min(first a, second b) { return (result)b < (result)a ? (result)b : (result)a; }
#define GR_MIXED(where, signed, unsigned)                                                               \
    GR_EXTREMES(where, signed, unsigned, unsigned) GR_EXTREMES(where, unsigned, signed, unsigned)
#define GR_INTEGERS(where)                                                                              \
    GR_EXTREMES(where, unsigned int, unsigned int, unsigned int)                                        \
    GR_MIXED(where, int, unsigned int)                                                                  \
    GR_EXTREMES(where, long, long, long)                                                                \
    GR_EXTREMES(where, unsigned long, unsigned long, unsigned long)                                     \
    GR_MIXED(where, long, unsigned long)                                                                \
    GR_EXTREMES(where, long long, long long, long long)                                                 \
    GR_EXTREMES(where, unsigned long long, unsigned long long, unsigned long long)                      \
    GR_MIXED(where, long long, unsigned long long)

GR_INTEGERS(__device__)
GR_INTEGERS(__host__)
GR_EXTREMES(__host__, int, int, int)

/* Of a number and NaN, CUDA's min and max give the number. */
#define GR_FLOATS(where, first, second, result, suffix)                                                 \
    where static inline result max(first a, second b) { return __builtin_fmax##suffix(a, b); }          \
    where static inline result min(first a, second b) { return __builtin_fmin##suffix(a, b); }
GR_FLOATS(__host__, float, float, float, f)
GR_FLOATS(__host__, double, double, double, )
GR_FLOATS(__host__, float, double, double, )
GR_FLOATS(__host__, double, float, double, )
__device__ static inline float max(float a, float b) { return ::fmaxf(a, b); }
__device__ static inline float min(float a, float b) { return ::fminf(a, b); }
__device__ static inline double max(double a, double b) { return ::fmax(a, b); }
__device__ static inline double min(double a, double b) { return ::fmin(a, b); }
__device__ static inline double max(float a, double b) { return ::fmax((double)a, b); }
__device__ static inline double min(float a, double b) { return ::fmin((double)a, b); }
__device__ static inline double max(double a, float b) { return ::fmax(a, (double)b); }
__device__ static inline double min(double a, float b) { return ::fmin(a, (double)b); }

#undef GR_FLOATS
#undef GR_INTEGERS
#undef GR_MIXED
#undef GR_EXTREMES

static inline __host__ unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
static inline __host__ unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
static inline __host__ long long llmin(long long a, long long b) { return min(a, b); }
static inline __host__ long long llmax(long long a, long long b) { return max(a, b); }
static inline __host__ unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
static inline __host__ unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

/* The fused forms of compute capability 9. */
static inline __host__ __device__ int __vimax_s32_relu(int a, int b) { int m = a < b ? b : a; return m < 0 ? 0 : m; }
static inline __host__ __device__ int __vimin_s32_relu(int a, int b) { int m = b < a ? b : a; return m < 0 ? 0 : m; }
static inline __host__ __device__ int __vimax3_s32(int a, int b, int c) { int m = a < b ? b : a; return m < c ? c : m; }
static inline __host__ __device__ int __vimin3_s32(int a, int b, int c) { int m = b < a ? b : a; return c < m ? c : m; }
static inline __host__ __device__ unsigned int __vimax3_u32(unsigned int a, unsigned int b, unsigned int c) { unsigned int m = a < b ? b : a; return m < c ? c : m; }
static inline __host__ __device__ unsigned int __vimin3_u32(unsigned int a, unsigned int b, unsigned int c) { unsigned int m = b < a ? b : a; return c < m ? c : m; }
static inline __host__ __device__ int __vimax3_s32_relu(int a, int b, int c) { int m = __vimax3_s32(a, b, c); return m < 0 ? 0 : m; }
static inline __host__ __device__ int __vimin3_s32_relu(int a, int b, int c) { int m = __vimin3_s32(a, b, c); return m < 0 ? 0 : m; }
static inline __host__ __device__ int __viaddmax_s32(int a, int b, int c) { int s = (int)((unsigned)a + (unsigned)b); return s < c ? c : s; }
static inline __host__ __device__ int __viaddmin_s32(int a, int b, int c) { int s = (int)((unsigned)a + (unsigned)b); return c < s ? c : s; }
static inline __host__ __device__ unsigned int __viaddmax_u32(unsigned int a, unsigned int b, unsigned int c) { unsigned int s = a + b; return s < c ? c : s; }
static inline __host__ __device__ unsigned int __viaddmin_u32(unsigned int a, unsigned int b, unsigned int c) { unsigned int s = a + b; return c < s ? c : s; }
static inline __host__ __device__ int __viaddmax_s32_relu(int a, int b, int c) { int m = __viaddmax_s32(a, b, c); return m < 0 ? 0 : m; }
static inline __host__ __device__ int __viaddmin_s32_relu(int a, int b, int c) { int m = __viaddmin_s32(a, b, c); return m < 0 ? 0 : m; }

#endif

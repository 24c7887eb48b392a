/* A floating-point type of 16 bits, its pairs, and CUDA's functions on both. Included once for each type, with
   GR_SMALL and GR_PAIR the types, GR_RAW the type of their bits, GR_NAME what functions call it, and two
   functions, gr_widen(GR_RAW) and gr_narrow_GR_NAME(float or double). Sums, products, quotients and roots of
   such numbers computed in float and rounded again are the correctly rounded ones. No include guard. */

#define GR_H static __inline__ __host__ __device__ __attribute__((always_inline))
#define GR_D static __inline__ __device__ __attribute__((always_inline))
#define GR_JOIN3_(a, b, c) a##b##c
#define GR_JOIN3(a, b, c) GR_JOIN3_(a, b, c)
#define GR_F(before, after) GR_JOIN3(before, GR_NAME, after)
#define gr_narrow GR_F(gr_narrow_, )

struct __align__(2) GR_SMALL {
    GR_RAW bits;
    GR_SMALL() = default;
    __host__ __device__ constexpr GR_SMALL(GR_RAWS raw) : bits(raw.x) {}
    __host__ __device__ GR_SMALL(float x) : bits(gr_narrow(x)) {}
    __host__ __device__ GR_SMALL(double x) : bits(gr_narrow(x)) {}
    template <class T, class = std::enable_if_t<std::is_integral_v<T>>> __host__ __device__ GR_SMALL(T x) : bits(gr_narrow((double)x)) {}
    __host__ __device__ operator float() const { return GR_F(gr_widen_, )(bits); }
    __host__ __device__ operator GR_RAWS() const { return GR_RAWS{bits}; }
    template <class T> __host__ __device__ GR_SMALL &operator=(T x) { return *this = GR_SMALL(x); }
};
struct __align__(4) GR_PAIR {
    GR_SMALL x, y;
    GR_PAIR() = default;
    __host__ __device__ GR_PAIR(GR_SMALL x, GR_SMALL y) : x(x), y(y) {}
};

#define GR_OPERATOR(op)                                                                                             \
    GR_H GR_SMALL operator op(const GR_SMALL &a, const GR_SMALL &b) { return GR_SMALL((float)a op(float) b); }      \
    GR_H GR_SMALL &operator op##=(GR_SMALL &a, const GR_SMALL &b) { return a = a op b; }                            \
    GR_H GR_PAIR operator op(const GR_PAIR &a, const GR_PAIR &b) { return GR_PAIR(a.x op b.x, a.y op b.y); }        \
    GR_H GR_PAIR &operator op##=(GR_PAIR &a, const GR_PAIR &b) { return a = a op b; }
GR_OPERATOR(+)
GR_OPERATOR(-)
GR_OPERATOR(*)
GR_OPERATOR(/)
#undef GR_OPERATOR
#define GR_OPERATOR(op)                                                                                             \
    GR_H bool operator op(const GR_SMALL &a, const GR_SMALL &b) { return (float)a op(float) b; }                    \
    GR_H bool operator op(const GR_PAIR &a, const GR_PAIR &b) { return a.x op b.x && a.y op b.y; }
GR_OPERATOR(==)
GR_OPERATOR(!=)
GR_OPERATOR(<)
GR_OPERATOR(>)
GR_OPERATOR(<=)
GR_OPERATOR(>=)
#undef GR_OPERATOR
GR_H GR_SMALL operator-(const GR_SMALL &a) { return GR_SMALL(-(float)a); }
GR_H GR_SMALL operator+(const GR_SMALL &a) { return a; }
GR_H GR_PAIR operator-(const GR_PAIR &a) { return GR_PAIR(-a.x, -a.y); }
GR_H GR_SMALL &operator++(GR_SMALL &a) { return a = GR_SMALL((float)a + 1.0f); }
GR_H GR_SMALL &operator--(GR_SMALL &a) { return a = GR_SMALL((float)a - 1.0f); }

/* Conversions. */
GR_H GR_SMALL GR_F(__float2, )(float x) { return GR_SMALL(x); }
GR_H GR_SMALL GR_F(__float2, _rn)(float x) { return GR_SMALL(x); }
GR_H GR_SMALL GR_F(__double2, )(double x) { return GR_SMALL(x); }
GR_H float GR_F(__, 2float)(GR_SMALL x) { return x; }
GR_H GR_PAIR GR_F(__float2, 2_rn)(float x) { return GR_PAIR(x, x); }
GR_H GR_PAIR GR_F(__floats2, 2_rn)(float x, float y) { return GR_PAIR(x, y); }
GR_H GR_PAIR GR_F(__float22, 2_rn)(float2 x) { return GR_PAIR(x.x, x.y); }
GR_H float2 GR_F(__, 22float2)(GR_PAIR x) { return make_float2(x.x, x.y); }
GR_H GR_PAIR GR_F(__halves2, 2)(GR_SMALL x, GR_SMALL y) { return GR_PAIR(x, y); }
GR_H GR_PAIR GR_JOIN3(make_, GR_NAME, 2)(GR_SMALL x, GR_SMALL y) { return GR_PAIR(x, y); }
GR_H GR_PAIR GR_F(__low2, 2)(GR_PAIR x) { return GR_PAIR(x.x, x.x); }
GR_H GR_PAIR GR_F(__high2, 2)(GR_PAIR x) { return GR_PAIR(x.y, x.y); }
GR_H GR_SMALL GR_F(__low2, )(GR_PAIR x) { return x.x; }
GR_H GR_SMALL GR_F(__high2, )(GR_PAIR x) { return x.y; }
GR_H float __low2float(GR_PAIR x) { return x.x; }
GR_H float __high2float(GR_PAIR x) { return x.y; }
GR_H GR_PAIR __lowhigh2highlow(GR_PAIR x) { return GR_PAIR(x.y, x.x); }
GR_H GR_PAIR GR_F(__lows2, 2)(GR_PAIR a, GR_PAIR b) { return GR_PAIR(a.x, b.x); }
GR_H GR_PAIR GR_F(__highs2, 2)(GR_PAIR a, GR_PAIR b) { return GR_PAIR(a.y, b.y); }
GR_H unsigned short GR_F(__, _as_ushort)(GR_SMALL x) { return __builtin_bit_cast(unsigned short, x.bits); }
GR_H short GR_F(__, _as_short)(GR_SMALL x) { return __builtin_bit_cast(short, x.bits); }
GR_H GR_SMALL GR_F(__ushort_as_, )(unsigned short x) { return GR_SMALL(GR_RAWS{__builtin_bit_cast(GR_RAW, x)}); }
GR_H GR_SMALL GR_F(__short_as_, )(short x) { return GR_SMALL(GR_RAWS{__builtin_bit_cast(GR_RAW, x)}); }
/* Between integers and these, nearest even unless the name says towards zero, up or down. */
#define GR_INTEGER(name, type)                                                                                      \
    GR_H GR_SMALL GR_F(__##name##2, _rn)(type x) { return GR_SMALL(x); }                                            \
    GR_H type GR_F(__, 2##name##_rn)(GR_SMALL x) { return (type)__builtin_rintf(x); }                               \
    GR_H type GR_F(__, 2##name##_rz)(GR_SMALL x) { return (type)(float)x; }                                         \
    GR_H type GR_F(__, 2##name##_ru)(GR_SMALL x) { return (type)__builtin_ceilf(x); }                               \
    GR_H type GR_F(__, 2##name##_rd)(GR_SMALL x) { return (type)__builtin_floorf(x); }
GR_INTEGER(int, int)
GR_INTEGER(uint, unsigned int)
GR_INTEGER(short, short)
GR_INTEGER(ushort, unsigned short)
GR_INTEGER(ll, long long)
GR_INTEGER(ull, unsigned long long)
#undef GR_INTEGER

/* Arithmetic by name. */
#define GR_BOTH(name, value)                                                                                        \
    GR_H GR_SMALL name(GR_SMALL a, GR_SMALL b) { return value; }                                                    \
    GR_H GR_PAIR name##2(GR_PAIR a, GR_PAIR b) { return GR_PAIR(name(a.x, b.x), name(a.y, b.y)); }
GR_H GR_SMALL gr_saturate(GR_SMALL x) { float v = x; return v > 1.0f ? GR_SMALL(1.0f) : v > 0.0f ? x : GR_SMALL(0.0f); }
GR_H GR_PAIR gr_saturate(GR_PAIR x) { return GR_PAIR(gr_saturate(x.x), gr_saturate(x.y)); }
GR_BOTH(__hadd, a + b)
GR_BOTH(__hsub, a - b)
GR_BOTH(__hmul, a * b)
GR_BOTH(__hmax, GR_SMALL(__builtin_fmaxf(a, b)))
GR_BOTH(__hmin, GR_SMALL(__builtin_fminf(a, b)))
#undef GR_BOTH
GR_H GR_SMALL __hadd_rn(GR_SMALL a, GR_SMALL b) { return a + b; }
GR_H GR_SMALL __hsub_rn(GR_SMALL a, GR_SMALL b) { return a - b; }
GR_H GR_SMALL __hmul_rn(GR_SMALL a, GR_SMALL b) { return a * b; }
GR_H GR_SMALL __hdiv(GR_SMALL a, GR_SMALL b) { return a / b; }
GR_H GR_PAIR __h2div(GR_PAIR a, GR_PAIR b) { return a / b; }
GR_H GR_SMALL __hadd_sat(GR_SMALL a, GR_SMALL b) { return gr_saturate(a + b); }
GR_H GR_SMALL __hsub_sat(GR_SMALL a, GR_SMALL b) { return gr_saturate(a - b); }
GR_H GR_SMALL __hmul_sat(GR_SMALL a, GR_SMALL b) { return gr_saturate(a * b); }
GR_H GR_PAIR __hadd2_sat(GR_PAIR a, GR_PAIR b) { return gr_saturate(a + b); }
GR_H GR_PAIR __hsub2_sat(GR_PAIR a, GR_PAIR b) { return gr_saturate(a - b); }
GR_H GR_PAIR __hmul2_sat(GR_PAIR a, GR_PAIR b) { return gr_saturate(a * b); }
/* In double, where no product or sum is rounded before the last step. */
GR_H GR_SMALL __hfma(GR_SMALL a, GR_SMALL b, GR_SMALL c) { return GR_SMALL((double)(float)a * (double)(float)b + (double)(float)c); }
GR_H GR_SMALL __hfma_sat(GR_SMALL a, GR_SMALL b, GR_SMALL c) { return gr_saturate(__hfma(a, b, c)); }
GR_H GR_SMALL __hfma_relu(GR_SMALL a, GR_SMALL b, GR_SMALL c) { return __hmax(__hfma(a, b, c), GR_SMALL(0.0f)); }
GR_H GR_PAIR __hfma2(GR_PAIR a, GR_PAIR b, GR_PAIR c) { return GR_PAIR(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
GR_H GR_PAIR __hfma2_sat(GR_PAIR a, GR_PAIR b, GR_PAIR c) { return gr_saturate(__hfma2(a, b, c)); }
GR_H GR_PAIR __hfma2_relu(GR_PAIR a, GR_PAIR b, GR_PAIR c) { return __hmax2(__hfma2(a, b, c), GR_PAIR(0.0f, 0.0f)); }
GR_H GR_SMALL __hneg(GR_SMALL a) { return -a; }
GR_H GR_PAIR __hneg2(GR_PAIR a) { return -a; }
GR_H GR_SMALL __habs(GR_SMALL a) { return GR_SMALL(__builtin_fabsf(a)); }
GR_H GR_PAIR __habs2(GR_PAIR a) { return GR_PAIR(__habs(a.x), __habs(a.y)); }
GR_H bool __hisnan(GR_SMALL a) { return (float)a != (float)a; }
GR_H int __hisinf(GR_SMALL a) { float x = a; return x == __builtin_inff() ? 1 : x == -__builtin_inff() ? -1 : 0; }
GR_H GR_PAIR __hisnan2(GR_PAIR a) { return GR_PAIR(__hisnan(a.x) ? 1.0f : 0.0f, __hisnan(a.y) ? 1.0f : 0.0f); }
GR_H GR_SMALL __hmax_nan(GR_SMALL a, GR_SMALL b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmax(a, b); }
GR_H GR_SMALL __hmin_nan(GR_SMALL a, GR_SMALL b) { return __hisnan(a) ? a : __hisnan(b) ? b : __hmin(a, b); }

/* Comparisons; the ones with a `u` hold where an operand is NaN. */
#define GR_COMPARISON(name, op)                                                                                     \
    GR_H bool __h##name(GR_SMALL a, GR_SMALL b) { return a op b && !__hisnan(a) && !__hisnan(b); }                  \
    GR_H bool __h##name##u(GR_SMALL a, GR_SMALL b) { return a op b || __hisnan(a) || __hisnan(b); }                 \
    GR_H GR_PAIR __h##name##2(GR_PAIR a, GR_PAIR b)                                                                 \
    { return GR_PAIR(__h##name(a.x, b.x) ? 1.0f : 0.0f, __h##name(a.y, b.y) ? 1.0f : 0.0f); }                       \
    GR_H GR_PAIR __h##name##u2(GR_PAIR a, GR_PAIR b)                                                                \
    { return GR_PAIR(__h##name##u(a.x, b.x) ? 1.0f : 0.0f, __h##name##u(a.y, b.y) ? 1.0f : 0.0f); }                 \
    GR_H bool __hb##name##2(GR_PAIR a, GR_PAIR b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }            \
    GR_H bool __hb##name##u2(GR_PAIR a, GR_PAIR b) { return __h##name##u(a.x, b.x) && __h##name##u(a.y, b.y); }
GR_COMPARISON(eq, ==)
GR_COMPARISON(ne, !=)
GR_COMPARISON(lt, <)
GR_COMPARISON(gt, >)
GR_COMPARISON(le, <=)
GR_COMPARISON(ge, >=)
#undef GR_COMPARISON

/* Mathematics. */
#define GR_FUNCTION(name, value)                                                                                    \
    GR_H GR_SMALL h##name(GR_SMALL a) { float x = a; return GR_SMALL(value); }                                      \
    GR_H GR_PAIR h2##name(GR_PAIR a) { return GR_PAIR(h##name(a.x), h##name(a.y)); }
GR_FUNCTION(sqrt, ::sqrtf(x))
GR_FUNCTION(rsqrt, 1.0f / ::sqrtf(x))
GR_FUNCTION(rcp, 1.0f / x)
GR_FUNCTION(exp, ::expf(x))
GR_FUNCTION(exp2, ::exp2f(x))
GR_FUNCTION(exp10, ::expf(x * 2.302585093f))
GR_FUNCTION(log, ::logf(x))
GR_FUNCTION(log2, ::log2f(x))
GR_FUNCTION(log10, ::log10f(x))
GR_FUNCTION(sin, ::sinf(x))
GR_FUNCTION(cos, ::cosf(x))
GR_FUNCTION(tanh, ::tanhf(x))
GR_FUNCTION(ceil, ::ceilf(x))
GR_FUNCTION(floor, ::floorf(x))
GR_FUNCTION(trunc, ::truncf(x))
GR_FUNCTION(rint, ::rintf(x))
#undef GR_FUNCTION

/* Between threads. */
#define GR_SHUFFLE(name, distance)                                                                                  \
    GR_D GR_SMALL name(unsigned int mask, GR_SMALL value, distance by, int width = 32)                              \
    { return GR_F(__ushort_as_, )((unsigned short)name(mask, (unsigned int)GR_F(__, _as_ushort)(value), by, width)); } \
    GR_D GR_PAIR name(unsigned int mask, GR_PAIR value, distance by, int width = 32)                                \
    { return __builtin_bit_cast(GR_PAIR, name(mask, __builtin_bit_cast(unsigned int, value), by, width)); }
GR_SHUFFLE(__shfl_sync, int)
GR_SHUFFLE(__shfl_up_sync, unsigned int)
GR_SHUFFLE(__shfl_down_sync, unsigned int)
GR_SHUFFLE(__shfl_xor_sync, int)
#undef GR_SHUFFLE
#define GR_ADD(type, word)                                                                                          \
    GR_D type atomicAdd(type *at, type value)                                                                       \
    {                                                                                                               \
        word *bits = (word *)at, old = *(volatile word *)at, seen;                                                  \
        do {                                                                                                        \
            seen = old;                                                                                             \
            old = atomicCAS(bits, seen, __builtin_bit_cast(word, __builtin_bit_cast(type, seen) + value));          \
        } while (old != seen);                                                                                      \
        return __builtin_bit_cast(type, old);                                                                       \
    }
GR_ADD(GR_SMALL, unsigned short)
GR_ADD(GR_PAIR, unsigned int)
#undef GR_ADD
#undef gr_narrow
#undef GR_F
#undef GR_JOIN3
#undef GR_JOIN3_
#undef GR_D
#undef GR_H

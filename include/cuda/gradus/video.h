/* Arithmetic on the halves and bytes of a word: the functions of libdevice that clang's `__vadd2` and its kin
   call. Each is the plain loop over the parts. */
#ifndef GRADUS_CUDA_VIDEO_H
#define GRADUS_CUDA_VIDEO_H

/* The `bits` bits of part `i` of `word`, as signed or unsigned. */
template <int bits> static inline __device__ int gr_part_s(unsigned int word, int i) { return (int)(word << (32 - bits * (i + 1))) >> (32 - bits); }
template <int bits> static inline __device__ int gr_part_u(unsigned int word, int i) { return (int)(word << (32 - bits * (i + 1)) >> (32 - bits)); }
template <int bits> static inline __device__ unsigned int gr_placed(int value, int i) { return ((unsigned int)value & (0xffffffffu >> (32 - bits))) << (bits * i); }
static inline __device__ int gr_within(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

#define GR_PARTS(name, bits, sign, value)                                                            \
    extern "C" inline __device__ unsigned int __nv_##name(unsigned int left, unsigned int right)     \
    {                                                                                                \
        unsigned int result = 0;                                                                     \
        for (int i = 0; i < 32 / bits; i++) {                                                        \
            const int low = -(1 << (bits - 1)), high = -low - 1, all = (1 << bits) - 1;              \
            int a = gr_part_##sign<bits>(left, i), b = gr_part_##sign<bits>(right, i);               \
            (void)low, (void)high, (void)all, (void)a, (void)b;                                      \
            result |= gr_placed<bits>(value, i);                                                     \
        }                                                                                            \
        return result;                                                                               \
    }
#define GR_PARTS1(name, bits, value)                                                                 \
    extern "C" inline __device__ unsigned int __nv_##name(unsigned int word)                         \
    {                                                                                                \
        unsigned int result = 0;                                                                     \
        for (int i = 0; i < 32 / bits; i++) {                                                        \
            const int high = (1 << (bits - 1)) - 1;                                                  \
            int a = gr_part_s<bits>(word, i);                                                        \
            (void)high;                                                                              \
            result |= gr_placed<bits>(value, i);                                                     \
        }                                                                                            \
        return result;                                                                               \
    }
#define GR_SUMS(name, bits, sign)                                                                    \
    extern "C" inline __device__ unsigned int __nv_##name(unsigned int left, unsigned int right)     \
    {                                                                                                \
        unsigned int sum = 0;                                                                        \
        for (int i = 0; i < 32 / bits; i++) {                                                        \
            int a = gr_part_##sign<bits>(left, i), b = gr_part_##sign<bits>(right, i);               \
            sum += (unsigned int)(a < b ? b - a : a - b);                                            \
        }                                                                                            \
        return sum;                                                                                  \
    }
GR_PARTS1(vabs2, 16, a < 0 ? -a : a)
GR_PARTS1(vabsss2, 16, a < 0 ? (-a > high ? high : -a) : a)
GR_PARTS1(vneg2, 16, -a)
GR_PARTS1(vnegss2, 16, -a > high ? high : -a)
GR_PARTS(vabsdiffs2, 16, s, a < b ? b - a : a - b)
GR_PARTS(vabsdiffu2, 16, u, a < b ? b - a : a - b)
GR_PARTS(vadd2, 16, u, a + b)
GR_PARTS(vaddss2, 16, s, gr_within(a + b, low, high))
GR_PARTS(vaddus2, 16, u, gr_within(a + b, 0, all))
GR_PARTS(vsub2, 16, u, a - b)
GR_PARTS(vsubss2, 16, s, gr_within(a - b, low, high))
GR_PARTS(vsubus2, 16, u, gr_within(a - b, 0, all))
GR_PARTS(vavgs2, 16, s, (a + b + (a + b >= 0)) >> 1)
GR_PARTS(vavgu2, 16, u, (a + b + 1) >> 1)
GR_PARTS(vhaddu2, 16, u, (a + b) >> 1)
GR_PARTS(vmaxs2, 16, s, a < b ? b : a)
GR_PARTS(vmaxu2, 16, u, a < b ? b : a)
GR_PARTS(vmins2, 16, s, b < a ? b : a)
GR_PARTS(vminu2, 16, u, b < a ? b : a)
GR_PARTS(vcmpeq2, 16, u, a == b ? all : 0)
GR_PARTS(vseteq2, 16, u, a == b)
GR_PARTS(vcmpne2, 16, u, a != b ? all : 0)
GR_PARTS(vsetne2, 16, u, a != b)
GR_PARTS(vcmpges2, 16, s, a >= b ? all : 0)
GR_PARTS(vsetges2, 16, s, a >= b)
GR_PARTS(vcmpgeu2, 16, u, a >= b ? all : 0)
GR_PARTS(vsetgeu2, 16, u, a >= b)
GR_PARTS(vcmpgts2, 16, s, a > b ? all : 0)
GR_PARTS(vsetgts2, 16, s, a > b)
GR_PARTS(vcmpgtu2, 16, u, a > b ? all : 0)
GR_PARTS(vsetgtu2, 16, u, a > b)
GR_PARTS(vcmples2, 16, s, a <= b ? all : 0)
GR_PARTS(vsetles2, 16, s, a <= b)
GR_PARTS(vcmpleu2, 16, u, a <= b ? all : 0)
GR_PARTS(vsetleu2, 16, u, a <= b)
GR_PARTS(vcmplts2, 16, s, a < b ? all : 0)
GR_PARTS(vsetlts2, 16, s, a < b)
GR_PARTS(vcmpltu2, 16, u, a < b ? all : 0)
GR_PARTS(vsetltu2, 16, u, a < b)
GR_SUMS(vsads2, 16, s)
GR_SUMS(vsadu2, 16, u)
GR_PARTS1(vabs4, 8, a < 0 ? -a : a)
GR_PARTS1(vabsss4, 8, a < 0 ? (-a > high ? high : -a) : a)
GR_PARTS1(vneg4, 8, -a)
GR_PARTS1(vnegss4, 8, -a > high ? high : -a)
GR_PARTS(vabsdiffs4, 8, s, a < b ? b - a : a - b)
GR_PARTS(vabsdiffu4, 8, u, a < b ? b - a : a - b)
GR_PARTS(vadd4, 8, u, a + b)
GR_PARTS(vaddss4, 8, s, gr_within(a + b, low, high))
GR_PARTS(vaddus4, 8, u, gr_within(a + b, 0, all))
GR_PARTS(vsub4, 8, u, a - b)
GR_PARTS(vsubss4, 8, s, gr_within(a - b, low, high))
GR_PARTS(vsubus4, 8, u, gr_within(a - b, 0, all))
GR_PARTS(vavgs4, 8, s, (a + b + (a + b >= 0)) >> 1)
GR_PARTS(vavgu4, 8, u, (a + b + 1) >> 1)
GR_PARTS(vhaddu4, 8, u, (a + b) >> 1)
GR_PARTS(vmaxs4, 8, s, a < b ? b : a)
GR_PARTS(vmaxu4, 8, u, a < b ? b : a)
GR_PARTS(vmins4, 8, s, b < a ? b : a)
GR_PARTS(vminu4, 8, u, b < a ? b : a)
GR_PARTS(vcmpeq4, 8, u, a == b ? all : 0)
GR_PARTS(vseteq4, 8, u, a == b)
GR_PARTS(vcmpne4, 8, u, a != b ? all : 0)
GR_PARTS(vsetne4, 8, u, a != b)
GR_PARTS(vcmpges4, 8, s, a >= b ? all : 0)
GR_PARTS(vsetges4, 8, s, a >= b)
GR_PARTS(vcmpgeu4, 8, u, a >= b ? all : 0)
GR_PARTS(vsetgeu4, 8, u, a >= b)
GR_PARTS(vcmpgts4, 8, s, a > b ? all : 0)
GR_PARTS(vsetgts4, 8, s, a > b)
GR_PARTS(vcmpgtu4, 8, u, a > b ? all : 0)
GR_PARTS(vsetgtu4, 8, u, a > b)
GR_PARTS(vcmples4, 8, s, a <= b ? all : 0)
GR_PARTS(vsetles4, 8, s, a <= b)
GR_PARTS(vcmpleu4, 8, u, a <= b ? all : 0)
GR_PARTS(vsetleu4, 8, u, a <= b)
GR_PARTS(vcmplts4, 8, s, a < b ? all : 0)
GR_PARTS(vsetlts4, 8, s, a < b)
GR_PARTS(vcmpltu4, 8, u, a < b ? all : 0)
GR_PARTS(vsetltu4, 8, u, a < b)
GR_SUMS(vsads4, 8, s)
GR_SUMS(vsadu4, 8, u)
#undef GR_SUMS
#undef GR_PARTS1
#undef GR_PARTS

#endif

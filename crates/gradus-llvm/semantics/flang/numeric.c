// Models of real numbers (`SPACING`, `SCALE`, …), `MOD` and `MODULO`.

double nextafter(double, double);
float nextafterf(float, float);
double frexp(double, int *);
float frexpf(float, int *);
double ldexp(double, int);
float ldexpf(float, int);

#define IS_INFINITE(x) (__builtin_fabs(x) == __builtin_inf())

// Models of real numbers. Spacing is the distance to the next number: at least the smallest normal number;
// for the largest number the distance to its predecessor. The result for an infinity is not a number, and
// the exponent of infinities and of results that are not numbers is the largest integer.
#define MODEL(real, suffix, digits, tiny)                                                                  \
  BODY real spacing_##real(real x) {                                                                       \
    real size = __builtin_fabs##suffix(x);                                                                 \
    if (size == __builtin_inf())                                                                           \
      return __builtin_nan##suffix("");                                                                    \
    real above = nextafter##suffix(size, __builtin_inf());                                                 \
    real below = nextafter##suffix(size, 0);                                                               \
    real gap = above == __builtin_inf() ? size - below : above - size;                                     \
    return __builtin_elementwise_maximum(gap, (real)tiny);                                                 \
  }                                                                                                        \
  BODY real fraction_##real(real x) {                                                                      \
    int exponent;                                                                                          \
    return IS_INFINITE(x) ? __builtin_nan##suffix("") : frexp##suffix(x, &exponent);                       \
  }                                                                                                        \
  BODY real rrspacing_##real(real x) {                                                                     \
    return ldexp##suffix(__builtin_fabs##suffix(fraction_##real(x)), digits);                              \
  }                                                                                                        \
  BODY real scale_##real(real x, int64_t by) { return ldexp##suffix(x, min(max(by, -9999), 9999)); }       \
  BODY real set_exponent_##real(real x, int64_t to) {                                                      \
    return ldexp##suffix(fraction_##real(x), min(max(to, -9999), 9999));                                   \
  }                                                                                                        \
  BODY int32_t exponent_##real(real x) {                                                                   \
    int exponent;                                                                                          \
    if (IS_INFINITE(x) || x != x)                                                                          \
      return INT32_MAX;                                                                                    \
    frexp##suffix(x, &exponent);                                                                           \
    return exponent;                                                                                       \
  }

MODEL(float, f, 24, 0x1p-126f)
MODEL(double, , 53, 0x1p-1022)

// A remainder of zero has the sign that flang-rt gives it: by an integer, `MOD` of zero is -0, and `MODULO`
// has the sign of the second operand; by another number, `MODULO` of zero has the product of both signs.
// `MODULO` by an infinity is not a number.
#define REMAINDER(real, suffix)                                                                            \
  BODY real mod_##real(real of, real by) {                                                                 \
    return of == 0 && is_integer(by) ? (real)-0.0 : __builtin_fmod##suffix(of, by);                        \
  }                                                                                                        \
  BODY real modulo_##real(real of, real by) {                                                              \
    if (IS_INFINITE(by))                                                                                   \
      return __builtin_nan##suffix("");                                                                    \
    real rest = __builtin_fmod##suffix(of, by);                                                            \
    bool turned = of == 0 && __builtin_signbit(of) && !is_integer(by);                                     \
    if (rest == 0)                                                                                         \
      return __builtin_copysign##suffix(0, turned ? -by : by);                                             \
    return (rest < 0) != (by < 0) ? rest + by : rest;                                                      \
  }

PART bool is_integer(double x) {
  return __builtin_fabs(x) < 0x1p63 && (double)(int64_t)x == x;
}

REMAINDER(float, f)
REMAINDER(double, )

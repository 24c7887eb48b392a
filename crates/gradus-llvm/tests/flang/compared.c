// Compares the bodies of `semantics/flang` with flang's run-time library on generated arguments.
#include "../../semantics/flang_rt.c"

#include "compared.h"

#include <math.h>

void _FortranAAssign(struct descriptor *, const struct descriptor *, const char *, int);
void _FortranASpread(struct descriptor *, const struct descriptor *, int, int64_t, const char *, int);
void _FortranATranspose(struct descriptor *, const struct descriptor *, const char *, int);
void _FortranAReshape(struct descriptor *, const struct descriptor *, const struct descriptor *,
                      const struct descriptor *, const struct descriptor *, const char *, int);
void _FortranAPack(struct descriptor *, const struct descriptor *, const struct descriptor *,
                   const struct descriptor *, const char *, int);
void _FortranAUnpack(struct descriptor *, const struct descriptor *, const struct descriptor *,
                     const struct descriptor *, const char *, int);
void _FortranACshift(struct descriptor *, const struct descriptor *, const struct descriptor *, int, const char *,
                     int);
void _FortranACshiftVector(struct descriptor *, const struct descriptor *, int64_t, const char *, int);
void _FortranAEoshift(struct descriptor *, const struct descriptor *, const struct descriptor *,
                      const struct descriptor *, int, const char *, int);
void _FortranAEoshiftVector(struct descriptor *, const struct descriptor *, int64_t, const struct descriptor *,
                            const char *, int);
bool _FortranAIsContiguous(const struct descriptor *);
float _FortranANorm2_4(const struct descriptor *, const char *, int, int);
void _FortranANorm2Dim(struct descriptor *, const struct descriptor *, int, const char *, int);
double _FortranANorm2_8(const struct descriptor *, const char *, int, int);
double _FortranASpacing8(double);
double _FortranARRSpacing8(double);
double _FortranAFraction8(double);
double _FortranAScale8(double, int64_t);
double _FortranASetExponent8(double, int64_t);
int32_t _FortranAExponent8_4(double);
float _FortranASpacing4(float);
float _FortranARRSpacing4(float);
float _FortranAFraction4(float);
float _FortranAScale4(float, int64_t);
float _FortranASetExponent4(float, int64_t);
int32_t _FortranAExponent4_4(float);
double _FortranAModReal8(double, double, const char *, int);
double _FortranAModuloReal8(double, double, const char *, int);
float _FortranAModReal4(float, float, const char *, int);
float _FortranAModuloReal4(float, float, const char *, int);

// Equal bits, or neither is a number.
#define DECLARE_REDUCTION(name)                                                                            \
  double _FortranA##name##Real8(const struct descriptor *, const char *, int, int, const struct descriptor *); \
  float _FortranA##name##Real4(const struct descriptor *, const char *, int, int, const struct descriptor *); \
  void _FortranA##name##Dim(struct descriptor *, const struct descriptor *, int, const char *, int,        \
                            const struct descriptor *);
DECLARE_REDUCTION(Sum)
DECLARE_REDUCTION(Product)
DECLARE_REDUCTION(Maxval)
DECLARE_REDUCTION(Minval)
#define DECLARE_LOCATION(name)                                                                             \
  void _FortranA##name##Real8(struct descriptor *, const struct descriptor *, int, const char *, int,      \
                              const struct descriptor *, bool);                                            \
  void _FortranA##name##Real4(struct descriptor *, const struct descriptor *, int, const char *, int,      \
                              const struct descriptor *, bool);                                            \
  void _FortranA##name##Dim(struct descriptor *, const struct descriptor *, int, int, const char *, int,   \
                            const struct descriptor *, bool);
DECLARE_LOCATION(Maxloc)
DECLARE_LOCATION(Minloc)
double _FortranADotProductReal8(const struct descriptor *, const struct descriptor *, const char *, int);
float _FortranADotProductReal4(const struct descriptor *, const struct descriptor *, const char *, int);
#define DECLARE_MATMUL(name)                                                                               \
  void _FortranA##name(struct descriptor *, const struct descriptor *, const struct descriptor *, const char *, int);
DECLARE_MATMUL(MatmulReal8Real8)
DECLARE_MATMUL(MatmulReal4Real4)
DECLARE_MATMUL(MatmulTransposeReal8Real8)
DECLARE_MATMUL(MatmulTransposeReal4Real4)

static bool same_double(double a, double b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

static void compare_assignment(int type) {
  int64_t rank = between(0, 3), n[RANK_MAX], m[RANK_MAX];
  random_extents(rank, n);
  random_extents(rank, m);
  struct descriptor from = generated(type, rank, n);
  bool allocatable = between(0, 1);
  struct descriptor ours = empty(type, rank, allocatable ? ALLOCATABLE : 0), theirs = ours;
  if (!allocatable || between(0, 1)) {
    struct descriptor old = generated(type, rank, n);
    contiguous_strides(n, rank, ours.size, m);
    for (int64_t d = 0; d < rank; d++)
      ours.dim[d] = theirs.dim[d] = (struct dimension){old.dim[d].lower, n[d], m[d]};
    int64_t bytes = max(count_elements(n, rank), 1) * ours.size;
    ours.base = calloc(bytes, 1);
    theirs.base = calloc(bytes, 1);
  }
  assign(&ours, &from, rank, layout_of(type), 0);
  _FortranAAssign(&theirs, &from, "", 0);
  expect_same(&ours, &theirs, "assignment");
  // Overlapping sides: a reversal in place.
  if (rank == 1 && ours.base && n[0] > 1) {
    struct descriptor mine = ours, other = theirs;
    mine.base += (n[0] - 1) * mine.dim[0].stride;
    other.base += (n[0] - 1) * other.dim[0].stride;
    mine.dim[0].stride = -mine.dim[0].stride;
    other.dim[0].stride = -other.dim[0].stride;
    assign(&ours, &mine, 1, layout_of(type), 0);
    _FortranAAssign(&theirs, &other, "", 0);
    expect_same(&ours, &theirs, "overlapping assignment");
  }
  // A scalar to each element.
  struct descriptor scalar = generated(type, 0, n);
  if (ours.base && rank > 0) {
    assign(&ours, &scalar, rank, layout_of(type), 1);
    _FortranAAssign(&theirs, &scalar, "", 0);
    expect_same(&ours, &theirs, "scalar assignment");
  }
}

static void compare_spread(int type) {
  int64_t rank = between(0, 4), n[RANK_MAX];
  random_extents(rank, n);
  struct descriptor from = generated(type, rank, n);
  struct descriptor ours = empty(type, rank + 1, ALLOCATABLE), theirs = ours;
  int dim = between(1, rank + 1);
  int64_t copies = between(-1, 3);
  spread(&ours, &from, dim, copies, "", 0, rank + 1, layout_of(type));
  _FortranASpread(&theirs, &from, dim, copies, "", 0);
  expect_same(&ours, &theirs, "spread");
}

static void compare_transpose(int type) {
  int64_t n[RANK_MAX];
  random_extents(2, n);
  struct descriptor from = generated(type, 2, n);
  struct descriptor ours = empty(type, 2, ALLOCATABLE), theirs = ours;
  transpose(&ours, &from, "", 0, layout_of(type));
  _FortranATranspose(&theirs, &from, "", 0);
  expect_same(&ours, &theirs, "transpose");
}

static void compare_reshape(int type) {
  int64_t from_rank = between(1, 3), n[RANK_MAX], rank = between(1, 4), m[RANK_MAX], o[RANK_MAX], p[RANK_MAX];
  random_extents(from_rank, n);
  random_extents(rank, m);
  int64_t pad_rank = between(1, 2);
  p[0] = between(1, 3);
  p[1] = between(1, 2);
  struct descriptor from = generated(type, from_rank, n), pad = generated(type, pad_rank, p);
  for (int64_t d = 0; d < rank; d++) {
    int64_t other = between(0, d);
    o[d] = o[other];
    o[other] = d + 1;
  }
  struct descriptor shape = integer_vector(rank, m, between(0, 1) ? 4 : 8);
  struct descriptor order = integer_vector(rank, o, between(0, 1) ? 4 : 8);
  bool padded = between(0, 1) || count_elements(n, from_rank) < count_elements(m, rank);
  const struct descriptor *pads = padded ? &pad : NULL, *orders = between(0, 1) ? &order : NULL;
  struct descriptor ours = empty(type, rank, ALLOCATABLE), theirs = ours;
  reshape(&ours, &from, &shape, pads, orders, "", 0, rank, from_rank, pad_rank, layout_of(type));
  _FortranAReshape(&theirs, &from, &shape, pads, orders, "", 0);
  expect_same(&ours, &theirs, "reshape");
}

static void compare_packing(int type) {
  static const int64_t sizes[] = {1, 2, 4, 8};
  int64_t rank = between(1, 3), n[RANK_MAX], size = sizes[between(0, 3)], mask_rank = between(0, 3) ? rank : 0;
  random_extents(rank, n);
  struct descriptor from = generated(type, rank, n), mask = random_mask(mask_rank, n, size);
  int64_t all = count_elements(n, rank) + between(0, 2);
  struct descriptor vector = generated(type, 1, &all);
  const struct descriptor *filled = between(0, 1) ? &vector : NULL;
  struct descriptor ours = empty(type, 1, ALLOCATABLE), theirs = ours;
  pack(&ours, &from, &mask, filled, "", 0, rank, layout_of(type), mask_rank, between(0, 1) ? size : 0);
  _FortranAPack(&theirs, &from, &mask, filled, "", 0);
  expect_same(&ours, &theirs, "pack");

  struct descriptor whole = random_mask(rank, n, size), scalar = generated(type, 0, n);
  int64_t field_rank = between(0, 1) ? rank : 0;
  const struct descriptor *field = field_rank ? &from : &scalar;
  ours = theirs = empty(type, rank, ALLOCATABLE);
  unpack(&ours, &vector, &whole, field, "", 0, rank, layout_of(type), size, field_rank);
  _FortranAUnpack(&theirs, &vector, &whole, field, "", 0);
  expect_same(&ours, &theirs, "unpack");
}

// Removes the dimension `dim`.
static int64_t without(const int64_t *n, int64_t rank, int dim, int64_t *left) {
  for (int64_t d = 0, k = 0; d < rank; d++)
    if (d != dim - 1)
      left[k++] = n[d];
  return rank - 1;
}

static void compare_shifts(int type) {
  int64_t rank = between(2, 4), n[RANK_MAX], left[RANK_MAX], values[256];
  random_extents(rank, n);
  int dim = between(1, rank);
  int64_t others = without(n, rank, dim, left), count = max(count_elements(left, others), 1);
  struct descriptor from = generated(type, rank, n), boundary = generated(type, others, left);
  for (int64_t at = 0; at < count; at++)
    values[at] = between(-6, 6);
  bool scalar = between(0, 1);
  struct descriptor shift = integer_vector(count, values, between(0, 1) ? 4 : 8);
  shift.rank = scalar ? 0 : others;
  int64_t stride[RANK_MAX];
  contiguous_strides(left, others, shift.size, stride);
  for (int64_t d = 0; d < others; d++)
    shift.dim[d] = (struct dimension){1, left[d], stride[d]};
  struct descriptor ours = empty(type, rank, ALLOCATABLE), theirs = ours;
  cshift(&ours, &from, &shift, dim, "", 0, rank, layout_of(type), shift.rank);
  _FortranACshift(&theirs, &from, &shift, dim, "", 0);
  expect_same(&ours, &theirs, "cshift");

  struct descriptor constant = generated(type, 0, n);
  int64_t boundary_rank = between(0, 1) ? others : 0;
  const struct descriptor *edge = between(0, 2) == 0 ? NULL : boundary_rank ? &boundary : &constant;
  ours = theirs = empty(type, rank, ALLOCATABLE);
  eoshift(&ours, &from, &shift, edge, dim, "", 0, rank, layout_of(type), shift.rank, boundary_rank);
  _FortranAEoshift(&theirs, &from, &shift, edge, dim, "", 0);
  expect_same(&ours, &theirs, "eoshift");

  struct descriptor vector = generated(type, 1, n);
  int64_t by = between(-6, 6);
  ours = theirs = empty(type, 1, ALLOCATABLE);
  cshift_vector(&ours, &vector, by, "", 0, layout_of(type));
  _FortranACshiftVector(&theirs, &vector, by, "", 0);
  expect_same(&ours, &theirs, "cshift of a vector");
  const struct descriptor *end = between(0, 1) ? &constant : NULL;
  ours = theirs = empty(type, 1, ALLOCATABLE);
  eoshift_vector(&ours, &vector, by, end, "", 0, layout_of(type));
  _FortranAEoshiftVector(&theirs, &vector, by, end, "", 0);
  expect_same(&ours, &theirs, "eoshift of a vector");
}

// Small integers and infinities are special cases of remainders.
static double random_operand(void) {
  int64_t choice = between(0, 9);
  return choice < 5 ? random_number() : choice < 9 ? (double)between(-6, 6) : between(0, 1) ? INFINITY : -INFINITY;
}

static void compare_numbers(void) {
  int64_t rank = between(1, 3), n[RANK_MAX];
  random_extents(rank, n);
  struct descriptor of = generated(0, rank, n);
  expect(same_double(norm2_double(&of, rank), _FortranANorm2_8(&of, "", 0, 0)), "norm2");
  expect(is_contiguous(&of, rank) == _FortranAIsContiguous(&of), "is_contiguous");
  double x = random_operand(), y = random_operand();
  int64_t by = between(-80, 80);
#define COMPARE_MODEL(real, kind)                                                                          \
  expect(same_double(spacing_##real(x), _FortranASpacing##kind(x)), "spacing");                            \
  expect(same_double(rrspacing_##real(x), _FortranARRSpacing##kind(x)), "rrspacing");                      \
  expect(same_double(fraction_##real(x), _FortranAFraction##kind(x)), "fraction");                         \
  expect(same_double(scale_##real(x, by), _FortranAScale##kind(x, by)), "scale");                          \
  expect(same_double(set_exponent_##real(x, by), _FortranASetExponent##kind(x, by)), "set_exponent");      \
  expect(exponent_##real(x) == _FortranAExponent##kind##_4(x), "exponent");
  COMPARE_MODEL(float, 4)
  COMPARE_MODEL(double, 8)
  if (y != 0 && (float)y != 0) {
    expect(same_double(mod_double(x, y), _FortranAModReal8(x, y, "", 0)), "mod");
    expect(same_double(modulo_double(x, y), _FortranAModuloReal8(x, y, "", 0)), "modulo");
    expect(same_double(mod_float(x, y), _FortranAModReal4(x, y, "", 0)), "mod of floats");
    expect(same_double(modulo_float(x, y), _FortranAModuloReal4(x, y, "", 0)), "modulo of floats");
  }
}

// Zeros with both signs count as equal: the library stops a product at its first zero.
static bool same_product(double a, double b) { return same_double(a, b) || b == 0; }

#define COMPARE_REDUCTION(name, Name, real, kind, same)                                                    \
  expect(same(name##_##real(&of, "", 0, 0, mask, rank, mask_rank, size),                                   \
              _FortranA##Name##Real##kind(&of, "", 0, 0, mask)),                                           \
         #name);
#define COMPARE_ALONG(name, Name, real)                                                                    \
  ours = theirs = empty(type, rank - 1, ALLOCATABLE);                                                      \
  name##_dim_##real(&ours, &of, dim, "", 0, mask, rank, mask_rank, size);                                  \
  _FortranA##Name##Dim(&theirs, &of, dim, "", 0, mask);                                                    \
  expect_same(&ours, &theirs, #name " along a dimension");
#define COMPARE_LOCATION(name, Name, real, kind)                                                           \
  ours = theirs = empty(2, 1, ALLOCATABLE);                                                                \
  name##_##real(&ours, &of, integer_kind, "", 0, mask, back, rank, mask_rank, size);                       \
  _FortranA##Name##Real##kind(&theirs, &of, integer_kind, "", 0, mask, back);                              \
  expect_same(&ours, &theirs, #name);                                                                      \
  ours = theirs = empty(2, rank - 1, ALLOCATABLE);                                                         \
  name##_dim_##real(&ours, &of, integer_kind, dim, "", 0, mask, back, rank, mask_rank, size);              \
  _FortranA##Name##Dim(&theirs, &of, integer_kind, dim, "", 0, mask, back);                                \
  expect_same(&ours, &theirs, #name " along a dimension");
#define COMPARE_PRODUCT(body, Name, real, x_rank, y_rank, transposed, x, y)                                \
  ours = theirs = empty(type, x_rank + y_rank - 2, ALLOCATABLE);                                           \
  body##_##real(&ours, x, y, "", 0, x_rank, y_rank, transposed);                                           \
  _FortranA##Name(&theirs, x, y, "", 0);                                                                   \
  expect_same(&ours, &theirs, #Name);
#define COMPARE_REDUCTIONS(real, kind)                                                                     \
  {                                                                                                        \
    COMPARE_REDUCTION(sum, Sum, real, kind, same_double)                                                   \
    COMPARE_REDUCTION(product, Product, real, kind, same_product)                                          \
    COMPARE_REDUCTION(maxval, Maxval, real, kind, same_double)                                             \
    COMPARE_REDUCTION(minval, Minval, real, kind, same_double)                                             \
    COMPARE_ALONG(sum, Sum, real)                                                                          \
    COMPARE_ALONG(maxval, Maxval, real)                                                                    \
    COMPARE_ALONG(minval, Minval, real)                                                                    \
    COMPARE_LOCATION(maxloc, Maxloc, real, kind)                                                           \
    COMPARE_LOCATION(minloc, Minloc, real, kind)                                                           \
    expect(same_double(norm2_##real(&of, rank), _FortranANorm2_##kind(&of, "", 0, 0)), "norm2");           \
    ours = theirs = empty(type, rank - 1, ALLOCATABLE);                                                    \
    norm2_dim_##real(&ours, &of, dim, "", 0, rank);                                                        \
    _FortranANorm2Dim(&theirs, &of, dim, "", 0);                                                           \
    expect_same(&ours, &theirs, "norm2 along a dimension");                                                \
    expect(same_double(dot_product_##real(&u, &v, "", 0), _FortranADotProductReal##kind(&u, &v, "", 0)),   \
           "dot_product");                                                                                 \
    COMPARE_PRODUCT(matmul, MatmulReal##kind##Real##kind, real, 2, 2, 0, &a, &b)                           \
    COMPARE_PRODUCT(matmul, MatmulReal##kind##Real##kind, real, 2, 1, 0, &a, &u)                           \
    COMPARE_PRODUCT(matmul, MatmulReal##kind##Real##kind, real, 1, 2, 0, &u, &b)                           \
    COMPARE_PRODUCT(matmul, MatmulTransposeReal##kind##Real##kind, real, 2, 2, 1, &c, &b)                  \
    COMPARE_PRODUCT(matmul, MatmulTransposeReal##kind##Real##kind, real, 2, 1, 1, &c, &u)                  \
  }

static void compare_reductions(int type) {
  static const int64_t sizes[] = {1, 2, 4, 8};
  int64_t rank = between(1, 3), n[RANK_MAX], size = sizes[between(0, 3)], mask_rank = between(0, 3) ? rank : 0;
  random_extents(rank, n);
  int dim = between(1, rank);
  bool back = between(0, 1);
  int integer_kind = sizes[between(0, 3)];
  special_numbers = false;
  struct descriptor of = generated(type, rank, n), some = random_mask(mask_rank, n, size), ours, theirs;
  int64_t k = between(0, 4), m = between(1, 4), l = between(1, 4);
  struct descriptor a = generated(type, 2, (int64_t[]){m, k}), b = generated(type, 2, (int64_t[]){k, l});
  struct descriptor c = generated(type, 2, (int64_t[]){k, m}), u = generated(type, 1, &k), v = generated(type, 1, &k);
  special_numbers = true;
  const struct descriptor *mask = between(0, 1) ? &some : NULL;
  if (type == 0)
    COMPARE_REDUCTIONS(double, 8)
  else
    COMPARE_REDUCTIONS(float, 4)
}

int main(void) {
  for (int run = 0; run < 4000 && failures < 20; run++) {
    int type = run % TYPES;
    compare_assignment(type);
    compare_spread(type);
    compare_transpose(type);
    compare_reshape(type);
    compare_packing(type);
    compare_shifts(type);
    compare_numbers();
    compare_reductions(run % 2);
  }
  if (failures == 0)
    puts("same");
  return failures != 0;
}

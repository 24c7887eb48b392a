// Reductions (flang-rt's `reduction.h`): to a scalar, and along a dimension to an array of rank - 1.

// An array without its dimension `dim`: the shape and the strides of its lines.
struct lines {
  int64_t n[RANK_MAX], stride[RANK_MAX];
};

PART struct lines lines_of(const struct descriptor *of, int64_t rank, int32_t dim) {
  struct lines lines;
  EACH_DIMENSION(d, rank - 1) {
    const struct dimension *kept = &of->dim[d < dim - 1 ? d : d + 1];
    lines.n[d] = kept->extent;
    lines.stride[d] = kept->stride;
  }
  return lines;
}

// A vector along the dimension `dim`, with an optional mask.
struct line {
  char *base, *mask;
  int64_t n, stride, mask_stride, mask_size;
};

PART bool is_masked(const struct line *line, int64_t at) {
  return line->mask && load_integer(line->mask + at * line->mask_stride, line->mask_size) == 0;
}

// Runs statements for each line of the array `of` with an optional mask. The subscripts of the line are `i`.
#define EACH_LINE(of, rank, dim, mask_of, mask_rank, mask_bytes, lines, line, ...)                         \
  {                                                                                                        \
    struct lines mask_lines = {0};                                                                         \
    struct line line = {0};                                                                                \
    line.n = of->dim[dim - 1].extent;                                                                      \
    line.stride = of->dim[dim - 1].stride;                                                                 \
    if (mask_of && mask_rank) {                                                                            \
      mask_lines = lines_of(mask_of, rank, dim);                                                           \
      line.mask_stride = mask_of->dim[dim - 1].stride;                                                     \
    }                                                                                                      \
    if (mask_of)                                                                                           \
      line.mask_size = mask_bytes ? mask_bytes : mask_of->size;                                            \
    EACH_ELEMENT(rank - 1, lines.n, i, {                                                                   \
      line.base = place(of->base, i, lines.stride, rank - 1);                                              \
      if (mask_of)                                                                                         \
        line.mask = place(mask_of->base, i, mask_lines.stride, rank - 1);                                  \
      __VA_ARGS__                                                                                          \
    })                                                                                                     \
  }

// Runs statements for each element `x` of the array `of` under an optional mask.
#define EACH_MASKED(of, rank, mask_of, mask_rank, mask_size, real, x, ...)                                 \
  {                                                                                                        \
    int64_t n[RANK_MAX], stride[RANK_MAX];                                                                 \
    load_extents(of, rank, n);                                                                             \
    load_strides(of, rank, stride);                                                                        \
    char *base = of->base;                                                                                 \
    struct mask mask = {0};                                                                                \
    if (mask_of)                                                                                           \
      mask = load_mask(mask_of, rank, mask_rank, mask_size);                                               \
    EACH_ELEMENT(rank, n, i, {                                                                             \
      if (!mask_of || is_set(&mask, i, rank)) {                                                            \
        real x = *(real *)place(base, i, stride, rank);                                                    \
        __VA_ARGS__                                                                                        \
      }                                                                                                    \
    })                                                                                                     \
  }

// A reduction of numbers: `START` declares its state, `STEP` adds the number `x`, `RESULT` is its value.
#define REDUCTION(name, real, START, STEP, RESULT)                                                         \
  BODY real name##_##real(const struct descriptor *of, const char *file, int32_t source_line, int32_t dim, \
                          const struct descriptor *mask_of, int64_t rank, int64_t mask_rank,               \
                          int64_t mask_size) {                                                             \
    START EACH_MASKED(of, rank, mask_of, mask_rank, mask_size, real, x, STEP) return RESULT;               \
  }                                                                                                        \
  BODY void name##_dim_##real(struct descriptor *to, const struct descriptor *of, int32_t dim,             \
                              const char *file, int32_t source_line, const struct descriptor *mask_of,     \
                              int64_t rank, int64_t mask_rank, int64_t mask_size) {                        \
    struct lines lines = lines_of(of, rank, dim);                                                          \
    int64_t dense[RANK_MAX];                                                                               \
    char *new = new_result(to, of, lines.n, rank - 1, sizeof(real));                                       \
    contiguous_strides(lines.n, rank - 1, sizeof(real), dense);                                            \
    EACH_LINE(of, rank, dim, mask_of, mask_rank, mask_size, lines, line, {                                 \
      START for (int64_t at = 0; at < line.n; at++) if (!is_masked(&line, at)) {                           \
        real x = *(real *)(line.base + at * line.stride);                                                  \
        STEP                                                                                               \
      }                                                                                                    \
      *(real *)place(new, i, dense, rank - 1) = RESULT;                                                    \
    })                                                                                                     \
    to->base = new;                                                                                        \
  }

// Compensated (Kahan) summation.
#define SUM_START(real)                                                                                    \
  real sum = 0;                                                                                            \
  real correction = 0;
#define SUM_STEP(real)                                                                                     \
  real next = x - correction;                                                                              \
  real old = sum;                                                                                          \
  sum = old + next;                                                                                        \
  correction = IS_INFINITE(sum) ? 0 : (sum - old) - next;

// The first number is taken even if it is not a number.
#define EXTREMUM_START(real, identity)                                                                     \
  real found = identity;                                                                                   \
  bool none = true;
#define EXTREMUM_STEP(order)                                                                               \
  if (none || found != found || x order found)                                                             \
    found = x;                                                                                             \
  none = false;

#define REDUCTIONS(real, largest)                                                                          \
  REDUCTION(sum, real, SUM_START(real), SUM_STEP(real), sum)                                               \
  REDUCTION(product, real, real product = 1;, product *= x;, product)                                      \
  REDUCTION(maxval, real, EXTREMUM_START(real, -largest), EXTREMUM_STEP(>), found)                         \
  REDUCTION(minval, real, EXTREMUM_START(real, largest), EXTREMUM_STEP(<), found)
REDUCTIONS(float, 0x1.fffffep127f)
REDUCTIONS(double, 0x1.fffffffffffffp1023)

// Integer types of a result by kind: codes of the descriptor.
PART int8_t integer_type(int32_t kind) { return kind == 1 ? 7 : kind == 2 ? 8 : kind == 4 ? 9 : 10; }

PART void store_integer(char *to, int64_t value, int32_t kind) {
  switch (kind) {
  case 1: *(int8_t *)to = value; break;
  case 2: *(int16_t *)to = value; break;
  case 4: *(int32_t *)to = value; break;
  default: *(int64_t *)to = value; break;
  }
}

// Locations of extrema: the first, or with `back` the last; numbers precede values that are not.
#define LOCATION(name, order, real)                                                                        \
  PART bool is_##name##_##real(real x, real found, bool back) {                                            \
    if (found != found)                                                                                    \
      return back || x == x;                                                                               \
    return x == found ? back : x order found;                                                              \
  }                                                                                                        \
  BODY void name##_##real(struct descriptor *to, const struct descriptor *of, int32_t kind,                \
                          const char *file, int32_t source_line, const struct descriptor *mask_of,         \
                          bool back, int64_t rank, int64_t mask_rank, int64_t mask_size) {                 \
    int64_t n[RANK_MAX], stride[RANK_MAX], at[RANK_MAX];                                                   \
    load_extents(of, rank, n);                                                                             \
    load_strides(of, rank, stride);                                                                        \
    EACH_DIMENSION(d, rank) at[d] = 0;                                                                     \
    struct mask mask = {0};                                                                                \
    if (mask_of)                                                                                           \
      mask = load_mask(mask_of, rank, mask_rank, mask_size);                                               \
    real found = 0;                                                                                        \
    bool none = true;                                                                                      \
    EACH_ELEMENT(rank, n, i, {                                                                             \
      real x = *(real *)place(of->base, i, stride, rank);                                                  \
      if ((!mask_of || is_set(&mask, i, rank)) && (none || is_##name##_##real(x, found, back))) {          \
        found = x;                                                                                         \
        none = false;                                                                                      \
        EACH_DIMENSION(d, rank) at[d] = i[d] + 1;                                                          \
      }                                                                                                    \
    })                                                                                                     \
    char *new = new_result(to, of, &rank, 1, kind);                                                        \
    to->type = integer_type(kind);                                                                         \
    EACH_DIMENSION(d, rank) store_integer(new + d * kind, at[d], kind);                                    \
    to->base = new;                                                                                        \
  }                                                                                                        \
  BODY void name##_dim_##real(struct descriptor *to, const struct descriptor *of, int32_t kind,            \
                              int32_t dim, const char *file, int32_t source_line,                          \
                              const struct descriptor *mask_of, bool back, int64_t rank,                   \
                              int64_t mask_rank, int64_t mask_size) {                                      \
    struct lines lines = lines_of(of, rank, dim);                                                          \
    int64_t dense[RANK_MAX];                                                                               \
    char *new = new_result(to, of, lines.n, rank - 1, kind);                                               \
    to->type = integer_type(kind);                                                                         \
    contiguous_strides(lines.n, rank - 1, kind, dense);                                                    \
    EACH_LINE(of, rank, dim, mask_of, mask_rank, mask_size, lines, line, {                                 \
      real found = 0;                                                                                      \
      int64_t location = 0;                                                                                \
      for (int64_t at = 0; at < line.n; at++) {                                                            \
        real x = *(real *)(line.base + at * line.stride);                                                  \
        if (!is_masked(&line, at) && (location == 0 || is_##name##_##real(x, found, back))) {              \
          found = x;                                                                                       \
          location = at + 1;                                                                               \
        }                                                                                                  \
      }                                                                                                    \
      store_integer(place(new, i, dense, rank - 1), location, kind);                                       \
    })                                                                                                     \
    to->base = new;                                                                                        \
  }
LOCATION(maxloc, >, float)
LOCATION(maxloc, >, double)
LOCATION(minloc, <, float)
LOCATION(minloc, <, double)

// Euclidean norms, scaled by the largest magnitude seen; no square overflows.
struct norm {
  double scale, sum;
};

PART void add_to_norm(struct norm *norm, double x) {
  double size = __builtin_fabs(x);
  if (norm->scale == 0) {
    norm->scale = size;
  } else if (size > norm->scale) {
    double shrink = norm->scale / size;
    double squared = shrink * shrink;
    norm->sum = norm->sum * squared + squared;
    norm->scale = size;
  } else {
    double part = size / norm->scale;
    norm->sum = norm->sum + part * part;
  }
}

PART double norm_value(const struct norm *norm) { return norm->scale * __builtin_sqrt(norm->sum + 1); }

#define NORM(real)                                                                                         \
  BODY real norm2_##real(const struct descriptor *of, int64_t rank) {                                      \
    const struct descriptor *unmasked = NULL;                                                              \
    struct norm norm = {0, 0};                                                                             \
    EACH_MASKED(of, rank, unmasked, 0, 0, real, x, add_to_norm(&norm, x);)                                 \
    return norm_value(&norm);                                                                              \
  }                                                                                                        \
  BODY void norm2_dim_##real(struct descriptor *to, const struct descriptor *of, int32_t dim,              \
                             const char *file, int32_t source_line, int64_t rank) {                        \
    const struct descriptor *unmasked = NULL;                                                              \
    struct lines lines = lines_of(of, rank, dim);                                                          \
    int64_t dense[RANK_MAX];                                                                               \
    char *new = new_result(to, of, lines.n, rank - 1, sizeof(real));                                       \
    contiguous_strides(lines.n, rank - 1, sizeof(real), dense);                                            \
    EACH_LINE(of, rank, dim, unmasked, 0, 0, lines, line, {                                                \
      struct norm norm = {0, 0};                                                                           \
      for (int64_t at = 0; at < line.n; at++)                                                              \
        add_to_norm(&norm, *(real *)(line.base + at * line.stride));                                       \
      *(real *)place(new, i, dense, rank - 1) = norm_value(&norm);                                         \
    })                                                                                                     \
    to->base = new;                                                                                        \
  }
NORM(float)
NORM(double)

// Products of vectors and matrices. The library sums products of contiguous single-precision operands in
// single precision, and others in double precision.
#define PRODUCTS(real)                                                                                     \
  PART real inner_##real(char   *left, int64_t left_stride, char *right, int64_t right_stride,             \
                           int64_t count, bool wide) {                                                     \
    double wide_sum = 0;                                                                                   \
    real sum = 0;                                                                                          \
    if (wide)                                                                                              \
      for (int64_t k = 0; k < count; k++)                                                                  \
        wide_sum += (double)*(real *)(left + k * left_stride) * (double)*(real *)(right + k * right_stride); \
    else                                                                                                   \
      for (int64_t k = 0; k < count; k++)                                                                  \
        sum += *(real *)(left + k * left_stride) * *(real *)(right + k * right_stride);                    \
    return wide ? (real)wide_sum : sum;                                                                    \
  }                                                                                                        \
  BODY real dot_product_##real(const struct descriptor *x, const struct descriptor *y, const char *file,   \
                               int32_t source_line) {                                                      \
    return inner_##real(x->base, x->dim[0].stride, y->base, y->dim[0].stride, x->dim[0].extent, true);   \
  }                                                                                                        \
  BODY void matmul_##real(struct descriptor *to, const struct descriptor *x, const struct descriptor *y,   \
                          const char *file, int32_t source_line, int64_t x_rank, int64_t y_rank,           \
                          int64_t transposed) {                                                            \
    const struct dimension *row = &x->dim[transposed ? 1 : 0];                                             \
    const struct dimension *inner = &x->dim[transposed ? 0 : x_rank - 1];                                  \
    const struct dimension *column = &y->dim[y_rank - 1];                                                  \
    int64_t rows = x_rank == 2 ? row->extent : 1, columns = y_rank == 2 ? column->extent : 1;              \
    int64_t shape[RANK_MAX] = {x_rank == 2 ? rows : columns, columns};                                     \
    bool wide = sizeof(real) < 8 && !transposed && !(is_contiguous(x, 1) && is_contiguous(y, 1));          \
    char *new = new_result(to, x, shape, x_rank + y_rank - 2, sizeof(real));                               \
    for (int64_t j = 0; j < columns; j++)                                                                  \
      for (int64_t i = 0; i < rows; i++)                                                                   \
        ((real *)new)[i + j * rows] =                                                                      \
            inner_##real(x->base + (x_rank == 2 ? i * row->stride : 0), inner->stride,                   \
                           y->base + (y_rank == 2 ? j * column->stride : 0), y->dim[0].stride,             \
                           inner->extent, wide);                                                           \
    to->base = new;                                                                                        \
  }
PRODUCTS(float)
PRODUCTS(double)

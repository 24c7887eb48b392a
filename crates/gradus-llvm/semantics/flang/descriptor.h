// Descriptors (`CFI_cdesc_t` of the Fortran standard, with flang's additions), layouts of elements, and
// loops over the elements of arrays.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum { RANK_MAX = 15, ALLOCATABLE = 2 };

struct dimension {
  int64_t lower, extent, stride; // stride in bytes
};

struct descriptor {
  char *base;
  int64_t size;
  int32_t version;
  uint8_t rank, type, attribute, extra;
  struct dimension dim[RANK_MAX];
};

// A scalar of an element: its offset in bytes and its type.
struct scalar {
  int64_t offset, type;
};
enum { INT8, INT16, INT32, INT64, FLOAT, DOUBLE };

// The layout of an element: its size in bytes and its scalars.
struct element {
  int64_t size, count;
  struct scalar scalar[];
};

// A specialised body, called by name.
#define BODY __attribute__((always_inline))
// A part of bodies.
#define PART static inline __attribute__((always_inline))

#define UNROLL _Pragma("clang loop unroll(full)")
#define EACH_DIMENSION(d, rank) UNROLL for (int64_t d = 0; d < (rank); d++)

PART int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
PART int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }

PART void load_extents(const struct descriptor *of, int64_t rank, int64_t *n) {
  EACH_DIMENSION(d, rank) n[d] = of->dim[d].extent;
}

PART void load_strides(const struct descriptor *of, int64_t rank, int64_t *stride) {
  EACH_DIMENSION(d, rank) stride[d] = of->dim[d].stride;
}

// Computes the strides of a contiguous array; returns the array's size in bytes.
PART int64_t contiguous_strides(const int64_t *n, int64_t rank, int64_t size, int64_t *stride) {
  EACH_DIMENSION(d, rank) {
    stride[d] = size;
    size *= n[d];
  }
  return size;
}

PART int64_t count_elements(const int64_t *n, int64_t rank) {
  int64_t count = 1;
  EACH_DIMENSION(d, rank) count *= n[d];
  return count;
}

PART bool has_elements(const int64_t *n, int64_t rank) {
  bool some = true;
  EACH_DIMENSION(d, rank) some &= n[d] > 0;
  return some;
}

// Returns the address of the element with subscripts `i`, which count from 0.
PART char *place(char *base, const int64_t *i, const int64_t *stride, int64_t rank) {
  EACH_DIMENSION(d, rank) base += i[rank - 1 - d] * stride[rank - 1 - d];
  return base;
}

// Runs statements for the subscripts `i` of each element of an array with extents `n`, in array element
// order. A constant rank leaves one loop for each dimension.
#define LOOP(d, rank, n, i, ...)                                                                           \
  i[d] = 0;                                                                                                \
  do {                                                                                                     \
    __VA_ARGS__                                                                                            \
  } while ((d) < (rank) && ++i[d] < n[d]);
#define LOOPS_5(rank, n, i, ...)                                                                           \
  LOOP(4, rank, n, i, LOOP(3, rank, n, i, LOOP(2, rank, n, i, LOOP(1, rank, n, i, LOOP(0, rank, n, i,      \
    __VA_ARGS__)))))
#define LOOPS_10(rank, n, i, ...)                                                                          \
  LOOP(9, rank, n, i, LOOP(8, rank, n, i, LOOP(7, rank, n, i, LOOP(6, rank, n, i, LOOP(5, rank, n, i,      \
    LOOPS_5(rank, n, i, __VA_ARGS__))))))
#define LOOPS_15(rank, n, i, ...)                                                                          \
  LOOP(14, rank, n, i, LOOP(13, rank, n, i, LOOP(12, rank, n, i, LOOP(11, rank, n, i, LOOP(10, rank, n, i, \
    LOOPS_10(rank, n, i, __VA_ARGS__))))))
#define EACH_ELEMENT(rank, n, i, ...)                                                                      \
  if (has_elements(n, rank)) {                                                                             \
    int64_t i[RANK_MAX];                                                                                   \
    LOOPS_15(rank, n, i, __VA_ARGS__)                                                                      \
  }

PART void copy_scalar(char *to, const char *from, int64_t type) {
  switch (type) {
  case INT8: *(int8_t *)to = *(const int8_t *)from; break;
  case INT16: *(int16_t *)to = *(const int16_t *)from; break;
  case INT32: *(int32_t *)to = *(const int32_t *)from; break;
  case INT64: *(int64_t *)to = *(const int64_t *)from; break;
  case FLOAT: *(float *)to = *(const float *)from; break;
  case DOUBLE: *(double *)to = *(const double *)from; break;
  }
}

PART void copy_element(char *to, const char *from, const struct element *e) {
  UNROLL for (int64_t s = 0; s < e->count; s++)
    copy_scalar(to + e->scalar[s].offset, from + e->scalar[s].offset, e->scalar[s].type);
}

// Copies the elements of an array with extents `n` between places with strides in bytes.
PART void copy(char *to, const int64_t *to_stride, char *from, const int64_t *from_stride, const int64_t *n,
               int64_t rank, const struct element *e) {
  EACH_ELEMENT(rank, n, i, copy_element(place(to, i, to_stride, rank), place(from, i, from_stride, rank), e);)
}

// Makes `to` the descriptor of a new contiguous array with lower bounds 1; returns the array's memory, whose
// address is not stored yet.
PART char *new_result(struct descriptor *to, const struct descriptor *like, const int64_t *n, int64_t rank,
                      int64_t size) {
  int64_t dense[RANK_MAX];
  int64_t bytes = contiguous_strides(n, rank, size, dense);
  EACH_DIMENSION(d, rank) {
    to->dim[d].lower = 1;
    to->dim[d].extent = n[d];
    to->dim[d].stride = dense[d];
  }
  to->size = size;
  to->version = like->version;
  to->rank = rank;
  to->type = like->type;
  to->attribute = ALLOCATABLE;
  to->extra = like->extra;
  return malloc(max(bytes, 1));
}

// Returns an integer or logical of so many bytes.
PART int64_t load_integer(const char *at, int64_t size) {
  switch (size) {
  case 1: return *(const int8_t *)at;
  case 2: return *(const int16_t *)at;
  case 4: return *(const int32_t *)at;
  default: return *(const int64_t *)at;
  }
}

// Returns element `i`, counted from 0, of an integer vector.
PART int64_t vector_integer(const struct descriptor *of, int64_t i) {
  return load_integer(of->base + i * of->dim[0].stride, of->size);
}

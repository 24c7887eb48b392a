// Generated arguments for flang's run-time functions, and comparison of results bit by bit.
#include <stdio.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t random_word(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static int64_t between(int64_t first, int64_t last) {
  return first + (int64_t)(random_word() % (uint64_t)(last - first + 1));
}

// Allows zeros, denormal and huge numbers.
static bool special_numbers = true;

static double random_number(void) {
  static const double special[] = {0.0, -0.0, 0x1p-1074, 0x1.8p-1040, -0x1p-1022, 0x1.fffffffffffffp1023, -1, 0x1p600};
  if (special_numbers && between(0, 9) == 0)
    return special[between(0, 7)];
  return ((double)random_word() / 0x1p63 - 1) * (between(0, 1) ? 1 : 1000);
}

// Intrinsic types: code of the descriptor and layout.
struct layout {
  int64_t size, count;
  struct scalar scalar[2];
};
static const struct {
  int8_t code;
  struct layout layout;
} types[] = {
    {28, {8, 1, {{0, DOUBLE}}}},
    {27, {4, 1, {{0, FLOAT}}}},
    {9, {4, 1, {{0, INT32}}}},
    {7, {1, 1, {{0, INT8}}}},
    {35, {16, 2, {{0, DOUBLE}, {8, DOUBLE}}}},
};
enum { TYPES = 5, VERSION = 20240719 };

static const struct element *layout_of(int type) { return (const struct element *)&types[type].layout; }

static void fill(char *at, int type) {
  UNROLL for (int64_t s = 0; s < types[type].layout.count; s++) {
    char *to = at + types[type].layout.scalar[s].offset;
    switch (types[type].layout.scalar[s].type) {
    case DOUBLE: *(double *)to = random_number(); break;
    case FLOAT: *(float *)to = (float)random_number(); break;
    case INT32: *(int32_t *)to = (int32_t)between(-9, 9); break;
    default: *to = (char)between(-9, 9); break;
    }
  }
}

// A descriptor without memory.
static struct descriptor empty(int type, int64_t rank, int attribute) {
  struct descriptor made = {NULL, types[type].layout.size, VERSION, rank, types[type].code, attribute, 0, {{0}}};
  return made;
}

// An array with generated elements, of strides in any order and with gaps.
static struct descriptor generated(int type, int64_t rank, const int64_t *n) {
  struct descriptor made = empty(type, rank, 0);
  int64_t size = types[type].layout.size, bytes = size;
  int64_t order[RANK_MAX];
  for (int64_t d = 0; d < rank; d++) {
    int64_t other = between(0, d);
    order[d] = order[other];
    order[other] = d;
  }
  int64_t base = 0;
  for (int64_t k = 0; k < rank; k++) {
    int64_t d = order[k];
    int64_t stride = bytes * between(1, 2);
    made.dim[d].lower = between(-2, 2);
    made.dim[d].extent = n[d];
    made.dim[d].stride = between(0, 3) ? stride : -stride;
    if (made.dim[d].stride < 0 && n[d] > 0)
      base += (n[d] - 1) * stride;
    bytes = stride * max(n[d], 1);
  }
  char *memory = malloc(bytes + size);
  for (int64_t at = 0; at < bytes; at += size)
    fill(memory + at, type);
  made.base = memory + base;
  return made;
}

static void random_extents(int64_t rank, int64_t *n) {
  for (int64_t d = 0; d < rank; d++)
    n[d] = between(0, 9) ? between(1, 4) : 0;
}

// A logical array; a scalar has rank 0.
static struct descriptor random_mask(int64_t rank, const int64_t *n, int64_t size) {
  struct descriptor made = {NULL, size, VERSION, rank, size == 4 ? 14 : size == 8 ? 15 : size == 2 ? 13 : 39, 0, 0, {{0}}};
  int64_t all = 1;
  for (int64_t d = 0; d < rank; d++) {
    made.dim[d] = (struct dimension){1, n[d], all * size};
    all *= n[d];
  }
  made.base = calloc(max(all, 1), size);
  for (int64_t at = 0; at < all; at++)
    made.base[at * size] = between(0, 1);
  return made;
}

static struct descriptor integer_vector(int64_t n, const int64_t *values, int64_t size) {
  struct descriptor made = {malloc(max(n, 1) * size), size, VERSION, 1, size == 4 ? 9 : 10, 0, 0, {{1, n, size}}};
  for (int64_t at = 0; at < n; at++)
    if (size == 4)
      ((int32_t *)made.base)[at] = values[at];
    else
      ((int64_t *)made.base)[at] = values[at];
  return made;
}

static int failures;

static void expect(bool holds, const char *what) {
  if (!holds) {
    printf("%s differs\n", what);
    failures++;
  }
}

// Compares two descriptors and their elements.
static void expect_same(const struct descriptor *a, const struct descriptor *b, const char *what) {
  bool same = a->size == b->size && a->version == b->version && a->rank == b->rank && a->type == b->type &&
              a->attribute == b->attribute && a->extra == b->extra && !a->base == !b->base;
  expect(same, what);
  int64_t n[RANK_MAX], a_stride[RANK_MAX], b_stride[RANK_MAX], bytes = a->size;
  for (int64_t d = 0; d < a->rank; d++) {
    n[d] = a->dim[d].extent;
    a_stride[d] = a->dim[d].stride;
    b_stride[d] = b->dim[d].stride;
    same &= a->dim[d].lower == b->dim[d].lower && n[d] == b->dim[d].extent;
    same &= n[d] == 1 || a_stride[d] == b_stride[d];
    bytes *= n[d];
  }
  expect(same, what);
  if (!same || !a->base)
    return;
  int64_t rank = a->rank;
  EACH_ELEMENT(rank, n, i, {
    if (memcmp(place(a->base, i, a_stride, rank), place(b->base, i, b_stride, rank), a->size) != 0) {
      expect(false, what);
      return;
    }
  })
}

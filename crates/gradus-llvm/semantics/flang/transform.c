// Transformational functions (Fortran 2018, 16.9): results have new memory.

// Extents and strides of an array that is read along other dimensions.
struct view {
  int64_t n[RANK_MAX], stride[RANK_MAX];
};

// `from` with `copies` along the new dimension `dim`.
BODY void spread(struct descriptor *to, const struct descriptor *from, int32_t dim, int64_t copies,
                 const char *file, int32_t line, int64_t rank, const struct element *e) {
  struct view view;
  int64_t dense[RANK_MAX];
  EACH_DIMENSION(d, rank) {
    bool is_new = d == dim - 1;
    const struct dimension *old = &from->dim[d < dim || d == 0 ? d : d - 1];
    view.n[d] = is_new ? max(copies, 0) : old->extent;
    view.stride[d] = is_new ? 0 : old->stride;
  }
  char *new = new_result(to, from, view.n, rank, e->size);
  contiguous_strides(view.n, rank, e->size, dense);
  copy(new, dense, from->base, view.stride, view.n, rank, e);
  to->base = new;
}

BODY void transpose(struct descriptor *to, const struct descriptor *from, const char *file, int32_t line,
                    const struct element *e) {
  struct view view = {{from->dim[1].extent, from->dim[0].extent}, {from->dim[1].stride, from->dim[0].stride}};
  int64_t dense[RANK_MAX];
  char *new = new_result(to, from, view.n, 2, e->size);
  contiguous_strides(view.n, 2, e->size, dense);
  copy(new, dense, from->base, view.stride, view.n, 2, e);
  to->base = new;
}

// Returns the address of the element with number `at` in array element order, counted from 0.
PART char *numbered_place(const struct descriptor *of, int64_t at, int64_t rank) {
  char *place = of->base;
  EACH_DIMENSION(d, rank) {
    int64_t n = of->dim[d].extent;
    place += (d == rank - 1 ? at : at % n) * of->dim[d].stride;
    at /= d == rank - 1 ? 1 : n;
  }
  return place;
}

PART int64_t count_all(const struct descriptor *of, int64_t rank) {
  int64_t n[RANK_MAX];
  load_extents(of, rank, n);
  return count_elements(n, rank);
}

// The elements of `from`, and then repeatedly of `pad`, in the shape `shape`, whose dimensions vary in the
// order `order`. Ranks: of the result, of `from`, of `pad`.
BODY void reshape(struct descriptor *to, const struct descriptor *from, const struct descriptor *shape,
                  const struct descriptor *pad, const struct descriptor *order, const char *file, int32_t line,
                  int64_t rank, int64_t from_rank, int64_t pad_rank, const struct element *e) {
  int64_t n[RANK_MAX], dense[RANK_MAX];
  EACH_DIMENSION(d, rank) n[d] = max(vector_integer(shape, d), 0);
  char *new = new_result(to, from, n, rank, e->size);
  contiguous_strides(n, rank, e->size, dense);
  struct view view;
  EACH_DIMENSION(d, rank) {
    int64_t varied = order ? vector_integer(order, d) - 1 : d;
    view.n[d] = n[varied];
    view.stride[d] = dense[varied];
  }
  int64_t given = count_all(from, from_rank), next = 0;
  if (given >= count_elements(n, rank)) {
    EACH_ELEMENT(rank, view.n, i, {
      copy_element(place(new, i, view.stride, rank), numbered_place(from, next, from_rank), e);
      next++;
    })
  } else {
    int64_t padded = pad ? count_all(pad, pad_rank) : 0;
    if (padded <= 0)
      abort();
    EACH_ELEMENT(rank, view.n, i, {
      char *at = place(new, i, view.stride, rank);
      if (next < given)
        copy_element(at, numbered_place(from, next, from_rank), e);
      else
        copy_element(at, numbered_place(pad, (next - given) % padded, pad_rank), e);
      next++;
    })
  }
  to->base = new;
}

// The mask of a function: an array of the shape of the other operand, or a scalar.
struct mask {
  char *base;
  int64_t size, stride[RANK_MAX];
};

// Reads a mask of constant rank and size in bytes; a size of 0 is in the descriptor.
PART struct mask load_mask(const struct descriptor *of, int64_t rank, int64_t mask_rank, int64_t size) {
  struct mask mask = {of->base, size ? size : of->size, {0}};
  if (mask_rank)
    load_strides(of, rank, mask.stride);
  return mask;
}

PART bool is_set(const struct mask *mask, const int64_t *i, int64_t rank) {
  return load_integer(place(mask->base, i, mask->stride, rank), mask->size) != 0;
}

PART int64_t count_set(const struct mask *mask, const int64_t *n, int64_t rank) {
  int64_t count = 0;
  EACH_ELEMENT(rank, n, i, count += is_set(mask, i, rank);)
  return count;
}

// The elements of `from` under a mask, and then the last elements of `vector`.
BODY void pack(struct descriptor *to, const struct descriptor *from, const struct descriptor *of,
               const struct descriptor *vector, const char *file, int32_t line, int64_t rank,
               const struct element *e, int64_t mask_rank, int64_t mask_size) {
  int64_t n[RANK_MAX], stride[RANK_MAX];
  load_extents(from, rank, n);
  load_strides(from, rank, stride);
  struct mask mask = load_mask(of, rank, mask_rank, mask_size);
  int64_t packed = count_set(&mask, n, rank);
  int64_t all = vector ? vector->dim[0].extent : packed;
  char *new = new_result(to, from, &all, 1, e->size);
  int64_t next = 0;
  EACH_ELEMENT(rank, n, i, {
    if (is_set(&mask, i, rank)) {
      copy_element(new + next * e->size, place(from->base, i, stride, rank), e);
      next++;
    }
  })
  if (vector)
    for (int64_t at = packed; at < all; at++)
      copy_element(new + at * e->size, vector->base + at * vector->dim[0].stride, e);
  to->base = new;
}

// The elements of `vector` under a mask, and of `field` elsewhere.
BODY void unpack(struct descriptor *to, const struct descriptor *vector, const struct descriptor *of,
                 const struct descriptor *field, const char *file, int32_t line, int64_t rank,
                 const struct element *e, int64_t mask_size, int64_t field_rank) {
  int64_t n[RANK_MAX], dense[RANK_MAX], stride[RANK_MAX] = {0};
  load_extents(of, rank, n);
  if (field_rank)
    load_strides(field, rank, stride);
  struct mask mask = load_mask(of, rank, 1, mask_size);
  char *new = new_result(to, vector, n, rank, e->size);
  contiguous_strides(n, rank, e->size, dense);
  int64_t next = 0;
  EACH_ELEMENT(rank, n, i, {
    char *at = place(new, i, dense, rank);
    if (is_set(&mask, i, rank)) {
      copy_element(at, vector->base + next * vector->dim[0].stride, e);
      next++;
    } else {
      copy_element(at, place(field->base, i, stride, rank), e);
    }
  })
  to->base = new;
}

// An operand of a shift without the shifted dimension, or a scalar: its strides, 0 in the dimension `dim`.
PART void load_shift_strides(const struct descriptor *of, int64_t rank, int64_t own_rank, int32_t dim,
                             int64_t *stride) {
  EACH_DIMENSION(d, rank) stride[d] = own_rank == 0 || d == dim - 1 ? 0 : of->dim[d < dim ? d : d - 1].stride;
}

// Returns the address of the element whose subscript in dimension `dim` is `moved`.
PART char *moved_place(char *base, const int64_t *i, const int64_t *stride, int64_t rank, int32_t dim,
                       int64_t moved) {
  EACH_DIMENSION(d, rank) base += (rank - d == dim ? moved : i[rank - 1 - d]) * stride[rank - 1 - d];
  return base;
}

PART int64_t extent_of(const int64_t *n, int64_t rank, int32_t dim) {
  int64_t extent = 0;
  EACH_DIMENSION(d, rank) extent = d == dim - 1 ? n[d] : extent;
  return extent;
}

PART int64_t subscript(const int64_t *i, int64_t rank, int32_t dim) { return extent_of(i, rank, dim); }

BODY void cshift(struct descriptor *to, const struct descriptor *from, const struct descriptor *shift,
                 int32_t dim, const char *file, int32_t line, int64_t rank, const struct element *e,
                 int64_t shift_rank) {
  int64_t n[RANK_MAX], stride[RANK_MAX], dense[RANK_MAX], shift_stride[RANK_MAX];
  load_extents(from, rank, n);
  load_strides(from, rank, stride);
  load_shift_strides(shift, rank, shift_rank, dim, shift_stride);
  char *new = new_result(to, from, n, rank, e->size);
  contiguous_strides(n, rank, e->size, dense);
  int64_t extent = extent_of(n, rank, dim);
  EACH_ELEMENT(rank, n, i, {
    int64_t by = load_integer(place(shift->base, i, shift_stride, rank), shift->size);
    int64_t moved = (subscript(i, rank, dim) + by) % extent;
    moved += moved < 0 ? extent : 0;
    copy_element(place(new, i, dense, rank), moved_place(from->base, i, stride, rank, dim, moved), e);
  })
  to->base = new;
}

BODY void cshift_vector(struct descriptor *to, const struct descriptor *from, int64_t shift, const char *file,
                        int32_t line, const struct element *e) {
  int64_t n = from->dim[0].extent, stride = from->dim[0].stride;
  char *new = new_result(to, from, &n, 1, e->size);
  for (int64_t at = 0; at < n; at++) {
    int64_t moved = (at + shift) % n;
    moved += moved < 0 ? n : 0;
    copy_element(new + at * e->size, from->base + moved * stride, e);
  }
  to->base = new;
}

// Sets each scalar of an element to 0.
PART void clear_element(char *to, const struct element *e) {
  static const int64_t zero;
  UNROLL for (int64_t s = 0; s < e->count; s++)
    copy_scalar(to + e->scalar[s].offset, (const char *)&zero, e->scalar[s].type);
}

BODY void eoshift(struct descriptor *to, const struct descriptor *from, const struct descriptor *shift,
                  const struct descriptor *boundary, int32_t dim, const char *file, int32_t line, int64_t rank,
                  const struct element *e, int64_t shift_rank, int64_t boundary_rank) {
  int64_t n[RANK_MAX], stride[RANK_MAX], dense[RANK_MAX], shift_stride[RANK_MAX], boundary_stride[RANK_MAX];
  load_extents(from, rank, n);
  load_strides(from, rank, stride);
  load_shift_strides(shift, rank, shift_rank, dim, shift_stride);
  if (boundary)
    load_shift_strides(boundary, rank, boundary_rank, dim, boundary_stride);
  char *new = new_result(to, from, n, rank, e->size);
  contiguous_strides(n, rank, e->size, dense);
  int64_t extent = extent_of(n, rank, dim);
  EACH_ELEMENT(rank, n, i, {
    char *at = place(new, i, dense, rank);
    int64_t moved = subscript(i, rank, dim) + load_integer(place(shift->base, i, shift_stride, rank), shift->size);
    if (moved >= 0 && moved < extent)
      copy_element(at, moved_place(from->base, i, stride, rank, dim, moved), e);
    else if (boundary)
      copy_element(at, place(boundary->base, i, boundary_stride, rank), e);
    else
      clear_element(at, e);
  })
  to->base = new;
}

BODY void eoshift_vector(struct descriptor *to, const struct descriptor *from, int64_t shift,
                         const struct descriptor *boundary, const char *file, int32_t line,
                         const struct element *e) {
  int64_t n = from->dim[0].extent, stride = from->dim[0].stride;
  char *new = new_result(to, from, &n, 1, e->size);
  for (int64_t at = 0; at < n; at++) {
    int64_t moved = at + shift;
    if (moved >= 0 && moved < n)
      copy_element(new + at * e->size, from->base + moved * stride, e);
    else if (boundary)
      copy_element(new + at * e->size, boundary->base, e);
    else
      clear_element(new + at * e->size, e);
  }
  to->base = new;
}

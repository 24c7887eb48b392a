// Array assignment and `MOVE_ALLOC` (Fortran 2018, 10.2.1.3 and 16.9.137; bounds as set by flang-rt 22).

// The bytes of an array, as offsets from its base.
struct span {
  int64_t first, end;
};

PART struct span span_of(const int64_t *n, const int64_t *stride, int64_t rank, int64_t size) {
  struct span span = {0, size};
  EACH_DIMENSION(d, rank) {
    int64_t length = (n[d] - 1) * stride[d];
    span.first += min(length, 0);
    span.end += max(length, 0);
  }
  return span;
}

// Copies `from` into new memory, which replaces the memory of `to`. An empty dimension begins at 1.
PART void reassign(struct descriptor *to, const struct descriptor *from, const int64_t *n, int64_t rank,
                   const struct element *e) {
  int64_t from_stride[RANK_MAX], dense[RANK_MAX];
  load_strides(from, rank, from_stride);
  char *new = malloc(max(contiguous_strides(n, rank, e->size, dense), 1));
  copy(new, dense, from->base, from_stride, n, rank, e);
  free(to->base);
  to->base = new;
  EACH_DIMENSION(d, rank) {
    int64_t lower = from->dim[d].lower;
    to->dim[d].lower = n[d] > 0 ? lower : 1;
    to->dim[d].extent = n[d];
    to->dim[d].stride = dense[d];
  }
}

// Copies `from` into the memory of `to`, through temporary memory if both overlap. With `spread`, `from` is
// a scalar.
PART void assign_in_place(struct descriptor *to, const struct descriptor *from, const int64_t *n, int64_t rank,
                          const struct element *e, bool spread) {
  char *old = to->base, *source = from->base;
  int64_t to_stride[RANK_MAX], from_stride[RANK_MAX], dense[RANK_MAX];
  load_strides(to, rank, to_stride);
  int64_t bytes = e->size;
  if (spread) {
    EACH_DIMENSION(d, rank) from_stride[d] = dense[d] = 0;
  } else {
    load_strides(from, rank, from_stride);
    bytes = contiguous_strides(n, rank, e->size, dense);
  }
  struct span to_span = span_of(n, to_stride, rank, e->size);
  struct span from_span = span_of(n, from_stride, rank, e->size);
  // Addresses outside the arrays would merge the members of elements in points-to analysis.
  int64_t distance = old - source;
  bool begins = distance + to_span.first < from_span.end;
  bool reaches = from_span.first < distance + to_span.end;
  if (!(begins & reaches)) {
    copy(old, to_stride, source, from_stride, n, rank, e);
  } else {
    char *temporary = malloc(max(bytes, 1));
    if (spread)
      copy_element(temporary, source, e);
    else
      copy(temporary, dense, source, from_stride, n, rank, e);
    copy(old, to_stride, temporary, dense, n, rank, e);
    free(temporary);
  }
}

// `to = from`, elementwise. An allocatable `to` is allocated with the shape of `from` if it has another
// shape.
PART void assign_elements(struct descriptor *to, const struct descriptor *from, int64_t rank,
                          const struct element *e, bool spread) {
  int64_t n[RANK_MAX];
  load_extents(spread ? to : from, rank, n);
  bool fits = to->base != NULL;
  EACH_DIMENSION(d, rank) fits &= to->dim[d].extent == n[d];
  bool allocatable = to->attribute == ALLOCATABLE;
  if (!spread && (allocatable & !fits))
    reassign(to, from, n, rank, e);
  else
    assign_in_place(to, from, n, rank, e, spread);
}

BODY void assign(struct descriptor *to, const struct descriptor *from, int64_t rank, const struct element *e,
                 int64_t spread) {
  assign_elements(to, from, rank, e, spread != 0);
}

BODY int32_t move(struct descriptor *to, struct descriptor *from, int64_t rank) {
  if (to == from)
    abort();
  free(to->base);
  to->base = from->base;
  EACH_DIMENSION(d, rank) {
    to->dim[d].lower = from->dim[d].lower;
    to->dim[d].extent = from->dim[d].extent;
    to->dim[d].stride = from->dim[d].stride;
  }
  from->base = NULL;
  return 0;
}

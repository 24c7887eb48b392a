// Copies of array arguments that are not contiguous (copy-in, copy-out).

// Empty arrays are contiguous; the stride of a dimension of extent 1 does not matter.
BODY bool is_contiguous(const struct descriptor *of, int64_t rank) {
  int64_t bytes = of->size;
  bool contiguous = true, empty = false;
  EACH_DIMENSION(d, rank) {
    contiguous &= (of->dim[d].stride == bytes) | (of->dim[d].extent == 1);
    bytes *= of->dim[d].extent;
    empty |= of->dim[d].extent == 0;
  }
  return contiguous | empty;
}

// The copy is allocatable and has the bounds of the array.
BODY void copy_in(struct descriptor *to, const struct descriptor *from, int64_t rank, const struct element *e) {
  int64_t n[RANK_MAX], stride[RANK_MAX], dense[RANK_MAX];
  load_extents(from, rank, n);
  load_strides(from, rank, stride);
  int64_t bytes = contiguous_strides(n, rank, e->size, dense);
  EACH_DIMENSION(d, rank) {
    to->dim[d].lower = from->dim[d].lower;
    to->dim[d].extent = n[d];
    to->dim[d].stride = dense[d];
  }
  to->size = from->size;
  to->version = from->version;
  to->rank = from->rank;
  to->type = from->type;
  to->extra = from->extra;
  to->attribute = ALLOCATABLE;
  char *new = malloc(max(bytes, 1));
  copy(new, dense, from->base, stride, n, rank, e);
  to->base = new;
}

// Frees the copy.
BODY void drop_copy(struct descriptor *to, struct descriptor *from) {
  free(from->base);
  from->base = NULL;
}

// Copies the elements back into the array and frees the copy.
BODY void copy_out(struct descriptor *to, struct descriptor *from, int64_t rank, const struct element *e) {
  int64_t n[RANK_MAX], to_stride[RANK_MAX], from_stride[RANK_MAX];
  load_extents(to, rank, n);
  load_strides(to, rank, to_stride);
  load_strides(from, rank, from_stride);
  copy(to->base, to_stride, from->base, from_stride, n, rank, e);
  drop_copy(to, from);
}

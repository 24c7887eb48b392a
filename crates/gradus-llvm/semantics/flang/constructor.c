// Incremental array constructors (Fortran 2018, 7.8). The array of `to` has either memory of the final
// extent, or no memory yet and grows.
struct vector {
  struct descriptor *to;
  int64_t count, capacity, grows;
};

BODY void begin_vector(struct vector *vector, struct descriptor *to) {
  bool grows = !to->base;
  vector->to = to;
  vector->count = 0;
  vector->capacity = grows ? 0 : to->dim[0].extent;
  vector->grows = grows;
}

// Reserves places for more elements; returns the address of the first.
PART char *reserve(struct vector *vector, int64_t more, const struct element *e) {
  struct descriptor *to = vector->to;
  int64_t count = vector->count, capacity = vector->capacity, need = count + more;
  vector->count = need;
  if (vector->grows) {
    char *old = to->base;
    to->dim[0].lower = 1;
    to->dim[0].extent = need;
    to->dim[0].stride = e->size;
    if (need > capacity) {
      int64_t larger = max(capacity * 2, need);
      char *new = malloc(larger * e->size);
      copy(new, &e->size, old, &e->size, &count, 1, e);
      free(old);
      to->base = new;
      vector->capacity = larger;
    }
  }
  return to->base + count * e->size;
}

BODY void push_array(struct vector *vector, const struct descriptor *from, int64_t rank, const struct element *e) {
  int64_t n[RANK_MAX], stride[RANK_MAX], dense[RANK_MAX];
  load_extents(from, rank, n);
  load_strides(from, rank, stride);
  contiguous_strides(n, rank, e->size, dense);
  char *at = reserve(vector, count_elements(n, rank), e);
  copy(at, dense, from->base, stride, n, rank, e);
}

BODY void push_scalar(struct vector *vector, const char *from, const struct element *e) {
  copy_element(reserve(vector, 1, e), from, e);
}

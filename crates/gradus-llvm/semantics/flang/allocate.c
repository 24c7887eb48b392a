// `ALLOCATE` and `DEALLOCATE`. A failing statement returns its `STAT` value, or ends the program.
enum { BASE_NOT_NULL = 12, BASE_NULL = 11, NO_MEMORY = 16 };

PART int32_t fail(int64_t returns_stat, int32_t stat) {
  if (!returns_stat)
    abort();
  return stat;
}

// The memory of a pointer: the next aligned word after the memory holds the complement of the address
// (`pointer.cpp` of flang-rt). Differentiation treats the function as an allocator by its name.
static __attribute__((noinline, malloc)) char *payload(int64_t bytes) {
  int64_t end = (bytes + 7) & -8;
  char *new = malloc(end + 8);
  if (new)
    *(uintptr_t *)(new + end) = ~(uintptr_t)new;
  return new;
}

// Sets the bounds of a dimension. An empty dimension begins at 1. An allocated allocatable keeps its
// bounds; a pointer gets new bounds.
BODY void set_bounds(struct descriptor *of, int32_t dimension, int64_t lower, int64_t upper, int64_t d,
                     int64_t pointer) {
  if (of->base && !pointer)
    return;
  bool some = upper >= lower;
  of->dim[d].lower = some ? lower : 1;
  of->dim[d].extent = some ? upper - lower + 1 : 0;
}

// Copies the bounds of a mold; an allocated allocatable keeps its bounds.
BODY void apply_mold(struct descriptor *to, const struct descriptor *from, int64_t rank) {
  if (to->base)
    return;
  EACH_DIMENSION(d, rank) {
    to->dim[d].lower = from->dim[d].lower;
    to->dim[d].extent = from->dim[d].extent;
  }
}

// Allocates memory for the extents in `to`, which become those of a contiguous array of strides `dense`.
PART int32_t allocate_memory(struct descriptor *to, int64_t rank, int64_t size, int64_t returns_stat,
                             int64_t pointer, int64_t *n, int64_t *dense, char **new) {
  if (!pointer && to->base)
    return fail(returns_stat, BASE_NOT_NULL);
  load_extents(to, rank, n);
  int64_t bytes = max(contiguous_strides(n, rank, size, dense), 1);
  EACH_DIMENSION(d, rank) to->dim[d].stride = dense[d];
  *new = pointer ? payload(bytes) : malloc(bytes);
  return returns_stat && !*new ? NO_MEMORY : 0;
}

BODY int32_t allocate(struct descriptor *to, int64_t rank, int64_t size, int64_t returns_stat,
                      int64_t pointer) {
  int64_t n[RANK_MAX], dense[RANK_MAX];
  char *new;
  int32_t stat = allocate_memory(to, rank, size, returns_stat, pointer, n, dense, &new);
  if (stat == 0)
    to->base = new;
  return stat;
}

BODY int32_t allocate_source(struct descriptor *to, const struct descriptor *from, int64_t rank,
                             const struct element *e, int64_t spread, int64_t returns_stat, int64_t pointer) {
  int64_t n[RANK_MAX], dense[RANK_MAX], from_stride[RANK_MAX];
  char *new;
  int32_t stat = allocate_memory(to, rank, e->size, returns_stat, pointer, n, dense, &new);
  if (stat != 0)
    return stat;
  EACH_DIMENSION(d, rank) from_stride[d] = spread ? 0 : from->dim[d].stride;
  copy(new, dense, from->base, from_stride, n, rank, e);
  to->base = new;
  return 0;
}

BODY int32_t deallocate(struct descriptor *of, int64_t returns_stat) {
  if (!of->base)
    return fail(returns_stat, BASE_NULL);
  free(of->base);
  of->base = NULL;
  return 0;
}

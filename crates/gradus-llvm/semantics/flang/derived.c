// Variables of derived types: initialisation, destruction, and assignment with allocatable components.

// Runs statements for the address `at` of each element of the array `of`. A nonzero `dense` is the element
// size in bytes of a contiguous array, which is one dimension.
#define EACH_ADDRESS(of, rank, dense, at, ...)                                                             \
  {                                                                                                        \
    int64_t n[RANK_MAX], stride[RANK_MAX];                                                                 \
    load_extents(of, rank, n);                                                                             \
    load_strides(of, rank, stride);                                                                        \
    if (dense) {                                                                                           \
      n[0] = count_elements(n, rank);                                                                      \
      stride[0] = dense;                                                                                   \
    }                                                                                                      \
    int64_t loops = dense ? 1 : rank;                                                                      \
    char *base = of->base;                                                                                 \
    EACH_ELEMENT(loops, n, i, char *at = place(base, i, stride, loops); __VA_ARGS__)                       \
  }

// Frees the address at byte `offset` of each element; a null base address frees nothing.
BODY void release(const struct descriptor *of, int64_t offset, int64_t rank, int64_t dense) {
  if (!of->base)
    return;
  EACH_ADDRESS(of, rank, dense, at, {
    char **component = (char **)(at + offset);
    free(*component);
    *component = NULL;
  })
}

// Copies a constant to byte `offset` of each element, if the state of the allocation is 0.
BODY void initialise(const struct descriptor *of, int64_t offset, const char *from, int32_t state, int64_t rank,
                     int64_t bytes, int64_t dense) {
  if (state != 0)
    return;
  EACH_ADDRESS(of, rank, dense, at, __builtin_memcpy(at + offset, from, bytes);)
}

// An allocatable component: the offset of its descriptor in bytes, and its specialised assignment.
struct component {
  int64_t offset;
  void (*assign)(struct descriptor *to, const struct descriptor *from);
};
struct components {
  int64_t count;
  struct component component[];
};

#define EACH_COMPONENT(held, c) UNROLL for (int64_t c = 0; c < held->count; c++)

PART struct descriptor *component_at(char *value, const struct components *held, int64_t c) {
  return (struct descriptor *)(value + held->component[c].offset);
}

// Assigns a component, allocated or not; the target gets the bounds of the source.
BODY void assign_component(struct descriptor *to, const struct descriptor *from, int64_t rank,
                           const struct element *e) {
  if (!from->base) {
    free(to->base);
    to->base = NULL;
  } else {
    assign_elements(to, from, rank, e, false);
    EACH_DIMENSION(d, rank) to->dim[d].lower = from->dim[d].lower;
  }
}

// Assigns the scalars and the components of one value.
PART void assign_value(char *to, char *from, const struct element *e, const struct components *held) {
  copy_element(to, from, e);
  EACH_COMPONENT(held, c) held->component[c].assign(component_at(to, held, c), component_at(from, held, c));
}

// Assigns values with allocatable components (Fortran 2018, 10.2.1.3 (13)). Both sides are the same scalar, or
// do not overlap.
BODY void assign_derived(struct descriptor *to, const struct descriptor *from, int64_t rank,
                         const struct element *e, const struct components *held) {
  int64_t n[RANK_MAX], to_stride[RANK_MAX], from_stride[RANK_MAX];
  load_extents(from, rank, n);
  load_strides(from, rank, from_stride);
  load_strides(to, rank, to_stride);
  char *target = to->base, *source = from->base;
  if (target != source)
    EACH_ELEMENT(rank, n, i,
                 assign_value(place(target, i, to_stride, rank), place(source, i, from_stride, rank), e, held);)
}

/* A Fortran array, as flang describes it (`CFI_cdesc_t` of its `ISO_Fortran_binding.h`). */
typedef struct {
    void *base;
    size_t elem_bytes;
    int version;
    unsigned char rank;
    signed char type;
    unsigned char attribute, extra;
    struct {
        ptrdiff_t lower, extent, stride_bytes;
    } dim[15];
} gr_descriptor;

/* Describes a contiguous array. Returns the descriptor. */
static void *gr_describe(gr_descriptor *d, void *base, size_t elem_bytes, int type, int rank, const size_t *extents)
{
    *d = (gr_descriptor){base, elem_bytes, 20240719, (unsigned char)rank, (signed char)type, 0, 0, {{0, 0, 0}}};
    ptrdiff_t stride = (ptrdiff_t)elem_bytes;
    for (int k = 0; k < rank; k++) {
        d->dim[k].lower = 1;
        d->dim[k].extent = (ptrdiff_t)extents[k];
        d->dim[k].stride_bytes = stride;
        stride *= (ptrdiff_t)extents[k];
    }
    return d;
}

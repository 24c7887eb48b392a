/* Surface reads and writes: elements of a CUDA array at a byte offset along x. A surface object's handle is the
   address of its array. */
#ifndef GRADUS_CUDA_SURFACES_H
#define GRADUS_CUDA_SURFACES_H

enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero = 0, cudaBoundaryModeClamp = 1, cudaBoundaryModeTrap = 2 };

/* A CUDA array: rows of elements, sizes in elements (0 where an array has no such dimension), pitch and slice
   in bytes. */
struct cudaArray {
    unsigned char *data;
    cudaChannelFormatDesc format;
    size_t width, height, depth;
    size_t element, pitch, slice;
    unsigned int flags;
};

/* Where an element lies; null where an access outside does nothing. */
template <class T> GR_TEXTURE T *gr_surface(cudaSurfaceObject_t object, int x, int y, int z, cudaSurfaceBoundaryMode mode)
{
    const cudaArray *array = (const cudaArray *)object;
    long long width = (long long)(array->width * array->element);
    long long height = array->height ? (long long)array->height : 1, depth = array->depth ? (long long)array->depth : 1;
    if (x < 0 || x + (long long)sizeof(T) > width || y < 0 || y >= height || z < 0 || z >= depth) {
        if (mode == cudaBoundaryModeZero) return nullptr;
        if (mode == cudaBoundaryModeTrap) __builtin_trap();
        x = x < 0 ? 0 : x + (long long)sizeof(T) > width ? (int)(width - (long long)sizeof(T)) : x;
        y = y < 0 ? 0 : y >= height ? (int)height - 1 : y;
        z = z < 0 ? 0 : z >= depth ? (int)depth - 1 : z;
    }
    return (T *)(array->data + z * array->slice + y * array->pitch + x);
}
template <class T> GR_TEXTURE T gr_surface_read(const T *from)
{
    T value;
    if (from) value = *from;
    else __builtin_memset(&value, 0, sizeof value);
    return value;
}

#define GR_SURFACE(dimensions, place, ...)                                                                                          \
    template <class T> GR_TEXTURE T surf##dimensions##read(cudaSurfaceObject_t surface, __VA_ARGS__, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)            \
    { return gr_surface_read<T>(gr_surface<T>place); }                                                                              \
    template <class T> GR_TEXTURE void surf##dimensions##read(T *to, cudaSurfaceObject_t surface, __VA_ARGS__, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) \
    { *to = gr_surface_read<T>(gr_surface<T>place); }                                                                               \
    template <class T> GR_TEXTURE void surf##dimensions##write(T value, cudaSurfaceObject_t surface, __VA_ARGS__, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) \
    { if (T *to = gr_surface<T>place) *to = value; }
GR_SURFACE(1D, (surface, x, 0, 0, mode), int x)
GR_SURFACE(2D, (surface, x, y, 0, mode), int x, int y)
GR_SURFACE(3D, (surface, x, y, z, mode), int x, int y, int z)
GR_SURFACE(1DLayered, (surface, x, 0, layer, mode), int x, int layer)
GR_SURFACE(2DLayered, (surface, x, y, layer, mode), int x, int y, int layer)
GR_SURFACE(Cubemap, (surface, x, y, face, mode), int x, int y, int face)
GR_SURFACE(CubemapLayered, (surface, x, y, face, mode), int x, int y, int face)
#undef GR_SURFACE

#endif

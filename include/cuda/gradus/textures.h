/* Texture fetches, in plain code over one descriptor: `textureReference`, whose address is a texture object's
   handle. Coordinates, address modes and the 8-bit weights of linear filtering follow the programming guide's
   appendix on texture fetching. */
#ifndef GRADUS_CUDA_TEXTURES_H
#define GRADUS_CUDA_TEXTURES_H

#define GR_TEXTURE static inline __device__ __attribute__((always_inline))

GR_TEXTURE const textureReference *gr_texture(cudaTextureObject_t object) { return (const textureReference *)object; }

/* The type of a filtered or scaled texel with the channels of T. */
template <class T, int channels = gr_channel<T>::count> struct gr_as_float;
template <class T> struct gr_as_float<T, 1> { typedef float type; };
template <class T> struct gr_as_float<T, 2> { typedef float2 type; };
template <class T> struct gr_as_float<T, 4> { typedef float4 type; };

/* Whether channels are read as numbers that they are not in memory: integers as fractions, numbers of 16 bits. */
GR_TEXTURE bool gr_promotes(const textureReference *texture)
{
    return texture->channelDesc.x < 32 && (texture->gr_fractions || texture->channelDesc.f == cudaChannelFormatKindFloat);
}

/* Such a channel: an integer as a fraction of the largest, in [-1, 1] or [0, 1], a number as it is. */
GR_TEXTURE float gr_fraction(const textureReference *texture, const unsigned char *at)
{
    if (texture->channelDesc.f == cudaChannelFormatKindFloat) return (float)*(const _Float16 *)at;
    bool wide = texture->channelDesc.x == 16;
    if (texture->channelDesc.f == cudaChannelFormatKindSigned) {
        float value = wide ? *(const short *)at / 32767.0f : *(const signed char *)at / 127.0f;
        return value < -1.0f ? -1.0f : value;
    }
    return wide ? *(const unsigned short *)at / 65535.0f : *at / 255.0f;
}

/* The texel at indices that are in range. Only where `fractions` are asked for may it be kept as integers. */
template <class T, bool fractions = true> GR_TEXTURE T gr_texel(const textureReference *texture, size_t x, size_t y, size_t z)
{
    const unsigned char *row = texture->gr_base + z * texture->gr_slice + y * texture->gr_pitch;
    if constexpr (fractions && gr_channel<T>::kind == cudaChannelFormatKindFloat) {
        if (gr_promotes(texture)) {
            size_t width = texture->channelDesc.x / 8;
            T result;
            for (int i = 0; i < gr_channel<T>::count; i++)
                ((float *)&result)[i] = gr_fraction(texture, row + (x * gr_channel<T>::count + i) * width);
            return result;
        }
    }
    return *(const T *)(row + x * sizeof(T));
}

/* The index that stands for `index` along `axis`; -1 outside of a texture with a border. */
GR_TEXTURE long long gr_wrapped(const textureReference *texture, int axis, long long index, long long size)
{
    cudaTextureAddressMode mode = texture->addressMode[axis];
    if (mode == cudaAddressModeBorder) return index < 0 || index >= size ? -1 : index;
    if (texture->normalized && mode == cudaAddressModeWrap) {
        long long rest = index % size;
        return rest < 0 ? rest + size : rest;
    }
    if (texture->normalized && mode == cudaAddressModeMirror) {
        long long rest = index % (2 * size);
        if (rest < 0) rest += 2 * size;
        return rest < size ? rest : 2 * size - 1 - rest;
    }
    return index < 0 ? 0 : index >= size ? size - 1 : index;
}

/* A coordinate as an index, held within what an index can be. */
GR_TEXTURE long long gr_floor(float x)
{
    float bounded = ::fminf(::fmaxf(x, -1.0e9f), 1.0e9f);
    return (long long)::floorf(bounded);
}

template <class T> GR_TEXTURE T gr_border(const textureReference *texture)
{
    typedef typename gr_channel<T>::scalar scalar;
    T result;
    for (int i = 0; i < gr_channel<T>::count; i++) ((scalar *)&result)[i] = (scalar)texture->gr_border[i];
    return result;
}

/* The texel at any indices. */
template <class T> GR_TEXTURE T gr_texel_at(const textureReference *texture, int dimensions, long long x, long long y, long long z)
{
    x = gr_wrapped(texture, 0, x, (long long)texture->gr_width);
    y = dimensions > 1 ? gr_wrapped(texture, 1, y, (long long)texture->gr_height) : 0;
    z = dimensions > 2 ? gr_wrapped(texture, 2, z, (long long)texture->gr_depth) : z;
    if (x < 0 || y < 0 || z < 0) return gr_border<T>(texture);
    return gr_texel<T>(texture, (size_t)x, (size_t)y, (size_t)z);
}

/* A weight with eight bits after the point. */
GR_TEXTURE float gr_weight(float x, long long *index)
{
    float shifted = x - 0.5f;
    *index = gr_floor(shifted);
    return ::rintf((shifted - (float)*index) * 256.0f) * (1.0f / 256.0f);
}

/* The mean of the two, four or eight texels around a place, weighted by their nearness. */
template <class T> GR_TEXTURE T gr_filtered(const textureReference *texture, int dimensions, float x, float y, float z, long long layer)
{
    long long i = 0, j = 0, k = layer;
    float a = gr_weight(x, &i);
    float b = dimensions > 1 ? gr_weight(y, &j) : 0.0f;
    float c = dimensions > 2 ? gr_weight(z, &k) : 0.0f;
    T result;
    for (int lane = 0; lane < gr_channel<T>::count; lane++) ((float *)&result)[lane] = 0.0f;
    for (int corner = 0; corner < 1 << dimensions; corner++) {
        int right = corner & 1, below = corner >> 1 & 1, behind = corner >> 2;
        T texel = gr_texel_at<T>(texture, dimensions, i + right, j + below, k + behind);
        float weight = (right ? a : 1.0f - a) * (below ? b : 1.0f - b) * (behind ? c : 1.0f - c);
        for (int lane = 0; lane < gr_channel<T>::count; lane++) ((float *)&result)[lane] += weight * ((float *)&texel)[lane];
    }
    return result;
}

/* A fetch by coordinates; `layer` chooses the slice of a layered texture. */
template <class T> GR_TEXTURE T gr_fetch(const textureReference *texture, int dimensions, float x, float y, float z, long long layer)
{
    if (texture->normalized) {
        x *= (float)texture->gr_width;
        y *= (float)texture->gr_height;
        z *= (float)texture->gr_depth;
    }
    if constexpr (gr_channel<T>::kind == cudaChannelFormatKindFloat) {
        if (texture->filterMode == cudaFilterModeLinear) return gr_filtered<T>(texture, dimensions, x, y, z, layer);
    }
    return gr_texel_at<T>(texture, dimensions, gr_floor(x), gr_floor(y), dimensions > 2 ? gr_floor(z) : layer);
}

/* The layer that stands for `layer`. */
GR_TEXTURE long long gr_layer(const textureReference *texture, int layer)
{
    long long last = (long long)texture->gr_depth - 1;
    return layer < 0 ? 0 : layer > last ? last : layer;
}

/* A fetch from the face of a cube that a direction meets: that of its longest coordinate, by what the other two are
   of it. The six faces of a cube are six layers that follow each other. */
template <class T> GR_TEXTURE T gr_cube(const textureReference *texture, float x, float y, float z, int cube)
{
    float across = ::fabsf(x), up = ::fabsf(y), deep = ::fabsf(z);
    int face;
    float longest, column, row = -y;
    if (across >= up && across >= deep) {
        face = x < 0.0f, longest = across, column = x < 0.0f ? z : -z;
    } else if (up >= deep) {
        face = 2 + (y < 0.0f), longest = up, column = x, row = y < 0.0f ? -z : z;
    } else {
        face = 4 + (z < 0.0f), longest = deep, column = z < 0.0f ? -x : x;
    }
    column = 0.5f * (column / longest + 1.0f);
    row = 0.5f * (row / longest + 1.0f);
    if (!texture->normalized) {
        column *= (float)texture->gr_width;
        row *= (float)texture->gr_height;
    }
    int last = (int)(texture->gr_depth / 6) - 1;
    cube = cube < 0 ? 0 : cube > last ? last : cube;
    return gr_fetch<T>(texture, 2, column, row, 0.0f, gr_layer(texture, 6 * cube + face));
}

template <class T, bool fractions = true> GR_TEXTURE T gr_fetch1(const textureReference *texture, int x)
{
    if (x < 0 || (size_t)x >= texture->gr_width) {
        T nothing;
        __builtin_memset(&nothing, 0, sizeof nothing);
        return nothing;
    }
    return gr_texel<T, fractions>(texture, (size_t)x, 0, 0);
}

/* Each fetch by object, and in the older form that stores through a pointer. */
#define GR_BY_OBJECT(name, value, ...)                                                                     \
    template <class T> GR_TEXTURE T name(cudaTextureObject_t object, __VA_ARGS__)                          \
    { const textureReference *texture = gr_texture(object); return value; }                                \
    template <class T> GR_TEXTURE void name(T *to, cudaTextureObject_t object, __VA_ARGS__)                \
    { const textureReference *texture = gr_texture(object); *to = value; }
GR_BY_OBJECT(tex1Dfetch, gr_fetch1<T>(texture, x), int x)
GR_BY_OBJECT(tex1D, gr_fetch<T>(texture, 1, x, 0.0f, 0.0f, 0), float x)
GR_BY_OBJECT(tex2D, gr_fetch<T>(texture, 2, x, y, 0.0f, 0), float x, float y)
GR_BY_OBJECT(tex3D, gr_fetch<T>(texture, 3, x, y, z, 0), float x, float y, float z)
GR_BY_OBJECT(tex1DLayered, gr_fetch<T>(texture, 1, x, 0.0f, 0.0f, gr_layer(texture, layer)), float x, int layer)
GR_BY_OBJECT(tex2DLayered, gr_fetch<T>(texture, 2, x, y, 0.0f, gr_layer(texture, layer)), float x, float y, int layer)
GR_BY_OBJECT(texCubemap, gr_cube<T>(texture, x, y, z, 0), float x, float y, float z)
GR_BY_OBJECT(texCubemapLayered, gr_cube<T>(texture, x, y, z, layer), float x, float y, float z, int layer)
#undef GR_BY_OBJECT

/* The same channel of the four texels that filtering would take, counter-clockwise from the lower left. */
template <class T> GR_TEXTURE T tex2Dgather(cudaTextureObject_t object, float x, float y, int channel = 0)
{
    const textureReference *texture = gr_texture(object);
    if (texture->normalized) {
        x *= (float)texture->gr_width;
        y *= (float)texture->gr_height;
    }
    long long i = gr_floor(x - 0.5f), j = gr_floor(y - 0.5f);
    typedef typename gr_channel<T>::scalar scalar;
    const int across[4] = {0, 1, 1, 0}, down[4] = {1, 1, 0, 0};
    T result;
    for (int corner = 0; corner < 4; corner++) {
        long long column = gr_wrapped(texture, 0, i + across[corner], (long long)texture->gr_width);
        long long row = gr_wrapped(texture, 1, j + down[corner], (long long)texture->gr_height);
        scalar *to = (scalar *)&result + corner;
        if (column < 0 || row < 0) {
            *to = (scalar)texture->gr_border[channel];
            continue;
        }
        int bits = texture->channelDesc.x;
        int channels = 1 + (texture->channelDesc.y > 0) + (texture->channelDesc.z > 0) + (texture->channelDesc.w > 0);
        const unsigned char *at = texture->gr_base + row * (long long)texture->gr_pitch + (column * channels + channel) * (bits / 8);
        *to = gr_promotes(texture) ? (scalar)gr_fraction(texture, at) : *(const scalar *)at;
    }
    return result;
}

#endif

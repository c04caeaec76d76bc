/// @file
/// Arrays, texture and surface objects: memory by rows, whose loads and stores count as those of global memory.
#pragma once
#include "common/cuda/include/cuda_runtime_api.h"

/// @cond
enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned,
  cudaChannelFormatKindUnsigned,
  cudaChannelFormatKindFloat,
  cudaChannelFormatKindNone
};
struct cudaChannelFormatDesc {
  int x, y, z, w;
  cudaChannelFormatKind f;
};
struct cudaArray {
  void* data;
  cudaChannelFormatDesc format;
  size_t width, height, depth;  ///< in elements; 0 where there is one less dimension
  unsigned flags;
};
typedef const cudaArray* cudaArray_const_t;
enum {
  cudaArrayDefault = 0,
  cudaArrayLayered = 1,
  cudaArraySurfaceLoadStore = 2,
  cudaArrayCubemap = 4,
  cudaArrayTextureGather = 8
};
enum cudaResourceType {
  cudaResourceTypeArray,
  cudaResourceTypeMipmappedArray,
  cudaResourceTypeLinear,
  cudaResourceTypePitch2D
};
struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
  unsigned flags;
};
enum cudaTextureAddressMode { cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder };
enum cudaTextureFilterMode { cudaFilterModePoint, cudaFilterModeLinear };
enum cudaTextureReadMode { cudaReadModeElementType, cudaReadModeNormalizedFloat };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero, cudaBoundaryModeClamp, cudaBoundaryModeTrap };
enum cudaSurfaceFormatMode { cudaFormatModeForced, cudaFormatModeAuto };
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization, seamlessCubemap;
};
struct cudaResourceViewDesc;
typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t;

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
namespace simt_cuda {
template <class T>
struct Channels {
  static constexpr int count = 1;
  typedef T type;
};
#define SIM_CHANNELS(T, name)       \
  template <>                       \
  struct Channels<name##1> {        \
    static constexpr int count = 1; \
    typedef T type;                 \
  };                                \
  template <>                       \
  struct Channels<name##2> {        \
    static constexpr int count = 2; \
    typedef T type;                 \
  };                                \
  template <>                       \
  struct Channels<name##4> {        \
    static constexpr int count = 4; \
    typedef T type;                 \
  };
SIM_CHANNELS(float, float)
SIM_CHANNELS(int, int)
SIM_CHANNELS(unsigned, uint)
SIM_CHANNELS(short, short)
SIM_CHANNELS(unsigned short, ushort)
SIM_CHANNELS(signed char, char)
SIM_CHANNELS(unsigned char, uchar)
#undef SIM_CHANNELS

/// What a texture or surface object stands for.
struct Texture {
  char* data;
  size_t width, height, depth, pitch;
  int element;  ///< bytes
  cudaChannelFormatDesc format;
  cudaTextureDesc how;
};
/// Known to the simulator, and no access.
Texture texture_of(unsigned long long object);
cudaError create_texture(unsigned long long* object, const cudaResourceDesc* resource, const cudaTextureDesc* how,
                         const char* file, int line);
cudaError destroy_texture(unsigned long long object);
cudaError allocate_array(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent, unsigned flags,
                         const char* file, int line);
size_t bytes_of_element(const cudaChannelFormatDesc& format);
}  // namespace simt_cuda
template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  typedef typename simt_cuda::Channels<T>::type Scalar;
  const int bits = 8 * sizeof(Scalar), count = simt_cuda::Channels<T>::count;
  return {bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0,
          std::is_floating_point<Scalar>::value ? cudaChannelFormatKindFloat
          : std::is_signed<Scalar>::value       ? cudaChannelFormatKindSigned
                                                : cudaChannelFormatKindUnsigned};
}

inline cudaError cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                                 size_t height = 0, unsigned flags = 0, SIM_HERE) {
  return simt_cuda::allocate_array(array, format, {width, height, 0}, flags, file, line);
}
inline cudaError cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                                   unsigned flags = 0, SIM_HERE) {
  return simt_cuda::allocate_array(array, format, extent, flags, file, line);
}
cudaError cudaFreeArray(cudaArray_t array, SIM_HERE);
cudaError cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags, cudaArray_t array);
inline cudaError cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  return *format = array->format, cudaSuccess;
}
inline size_t sim_pitch(cudaArray_const_t array) { return array->width * simt_cuda::bytes_of_element(array->format); }
inline cudaError cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, SIM_HERE) {
  return cudaMemcpy2D(static_cast<char*>(to->data) + y * sim_pitch(to) + x, sim_pitch(to), from, pitch, width, height,
                      kind, file, line);
}
inline cudaError cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch,
                                          size_t width, size_t height, cudaMemcpyKind kind,
                                          cudaStream_t stream = nullptr, SIM_HERE) {
  return cudaMemcpy2DAsync(static_cast<char*>(to->data) + y * sim_pitch(to) + x, sim_pitch(to), from, pitch, width,
                           height, kind, stream, file, line);
}
inline cudaError cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                       size_t height, cudaMemcpyKind kind, SIM_HERE) {
  return cudaMemcpy2D(to, pitch, static_cast<char*>(from->data) + y * sim_pitch(from) + x, sim_pitch(from), width,
                      height, kind, file, line);
}
inline cudaError cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
                                   cudaMemcpyKind kind, SIM_HERE) {
  return cudaMemcpy(static_cast<char*>(to->data) + y * sim_pitch(to) + x, from, bytes, kind, file, line);
}
inline cudaError cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                     cudaMemcpyKind kind, SIM_HERE) {
  return cudaMemcpy(to, static_cast<char*>(from->data) + y * sim_pitch(from) + x, bytes, kind, file, line);
}
inline cudaError cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                         const cudaTextureDesc* how, const cudaResourceViewDesc*, SIM_HERE) {
  return simt_cuda::create_texture(texture, resource, how, file, line);
}
inline cudaError cudaDestroyTextureObject(cudaTextureObject_t texture) { return simt_cuda::destroy_texture(texture); }
inline cudaError cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource, SIM_HERE) {
  return simt_cuda::create_texture(surface, resource, nullptr, file, line);
}
inline cudaError cudaDestroySurfaceObject(cudaSurfaceObject_t surface) { return simt_cuda::destroy_texture(surface); }

// ---- In kernels ----------------------------------------------------------------------------------------------------

namespace simt_cuda {

/// The texel's index by the address mode; -1 for the border.
__forceinline__ long place_in(long i, size_t size, cudaTextureAddressMode mode) {
  const long n = static_cast<long>(size ? size : 1);
  if (i >= 0 && i < n) return i;
  if (mode == cudaAddressModeBorder) return -1;
  if (mode == cudaAddressModeWrap) return (i % n + n) % n;
  if (mode == cudaAddressModeMirror) {
    const long turn = (i % (2 * n) + 2 * n) % (2 * n);
    return turn < n ? turn : 2 * n - 1 - turn;
  }
  return i < 0 ? 0 : n - 1;
}

/// One texel, converted as the texture says.
template <class T>
__forceinline__ T texel(const Texture& t, long x, long y, long z) {
  typedef typename Channels<T>::type Scalar;
  if (x < 0 || y < 0 || z < 0) {
    T border{};
    if constexpr (std::is_same<Scalar, float>::value)
      for (int c = 0; c < Channels<T>::count; ++c) reinterpret_cast<float*>(&border)[c] = t.how.borderColor[c];
    return border;
  }
  const size_t rows = t.height ? t.height : 1;
  const char* const at = t.data + (static_cast<size_t>(z) * rows + y) * t.pitch + static_cast<size_t>(x) * t.element;
  if (t.how.readMode == cudaReadModeElementType) return *reinterpret_cast<const T*>(at);
  T result{};
  if constexpr (std::is_same<Scalar, float>::value) {
    for (int c = 0; c < Channels<T>::count; ++c) {
      float value = 0;
      if (t.format.x == 8)
        value = t.format.f == cudaChannelFormatKindUnsigned
                    ? reinterpret_cast<const unsigned char*>(at)[c] / 255.0f
                    : fmaxf(reinterpret_cast<const signed char*>(at)[c] / 127.0f, -1.0f);
      else
        value = t.format.f == cudaChannelFormatKindUnsigned
                    ? reinterpret_cast<const unsigned short*>(at)[c] / 65535.0f
                    : fmaxf(reinterpret_cast<const short*>(at)[c] / 32767.0f, -1.0f);
      reinterpret_cast<float*>(&result)[c] = value;
    }
  }
  return result;
}

/// @param dimensions in which it filters: 1 to 3
/// @param layer      of a layered texture: which one, the nearest that there is
template <class T>
__forceinline__ T sampled(const Texture& t, int dimensions, float x, float y, float z, long layer = 0) {
  const float given[3] = {x, y, z};
  const size_t sizes[3] = {t.width, t.height, t.depth};
  typedef typename Channels<T>::type Scalar;
  const bool linear = t.how.filterMode == cudaFilterModeLinear && std::is_same<Scalar, float>::value;
  const long kept = dimensions < 3 ? place_in(layer, t.depth, cudaAddressModeClamp) : 0;
  long low[3] = {0, 0, kept}, high[3] = {};
  float part[3] = {};
  for (int d = 0; d < dimensions; ++d) {
    const float at = t.how.normalizedCoords ? given[d] * sizes[d] : given[d];
    const float from = linear ? at - 0.5f : at;
    const long first = static_cast<long>(floorf(from));
    part[d] = linear ? floorf((from - first) * 256 + 0.5f) / 256 : 0;  // a GPU, too, has 8 bits of it
    low[d] = place_in(first, sizes[d], t.how.addressMode[d]);
    high[d] = place_in(first + 1, sizes[d], t.how.addressMode[d]);
  }
  if (!linear) return texel<T>(t, low[0], low[1], low[2]);
  T result{};
  for (int corner = 0; corner < 1 << dimensions; ++corner) {
    float weight = 1;
    long at[3] = {0, 0, kept};
    for (int d = 0; d < dimensions; ++d) {
      const bool upper = corner >> d & 1;
      weight *= upper ? part[d] : 1 - part[d];
      at[d] = upper ? high[d] : low[d];
    }
    if (weight == 0) continue;
    const T value = texel<T>(t, at[0], at[1], at[2]);
    for (int c = 0; c < Channels<T>::count; ++c)
      reinterpret_cast<float*>(&result)[c] += weight * reinterpret_cast<const float*>(&value)[c];
  }
  return result;
}

/// The face of a cubemap that the direction (x, y, z) meets, and the coordinates there, from 0 to 1. A filter does not
/// reach over a face's edge.
template <class T>
__forceinline__ T sampled_cubemap(cudaTextureObject_t object, float x, float y, float z, int layer) {
  Texture t = texture_of(object);
  t.how.normalizedCoords = 1;
  t.how.addressMode[0] = t.how.addressMode[1] = cudaAddressModeClamp;
  const float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
  if (ax >= ay && ax >= az)
    return sampled<T>(t, 2, ((x < 0 ? z : -z) / ax + 1) / 2, (-y / ax + 1) / 2, 0, 6 * layer + (x < 0));
  if (ay >= az) return sampled<T>(t, 2, (x / ay + 1) / 2, ((y < 0 ? -z : z) / ay + 1) / 2, 0, 6 * layer + 2 + (y < 0));
  return sampled<T>(t, 2, ((z < 0 ? -x : x) / az + 1) / 2, (-y / az + 1) / 2, 0, 6 * layer + 4 + (z < 0));
}

template <class T>
__forceinline__ T* surface_at(cudaSurfaceObject_t object, int x, int y, int z, cudaSurfaceBoundaryMode mode) {
  const Texture t = texture_of(object);
  const long width = static_cast<long>(t.width * t.element), height = static_cast<long>(t.height ? t.height : 1),
             depth = static_cast<long>(t.depth ? t.depth : 1);
  long at[3] = {x, y, z};
  const long most[3] = {width - static_cast<long>(sizeof(T)), height - 1, depth - 1};
  for (int d = 0; d < 3; ++d) {
    if (at[d] >= 0 && at[d] <= most[d]) continue;
    if (mode == cudaBoundaryModeZero) return nullptr;
    if (mode == cudaBoundaryModeTrap) __builtin_trap();
    at[d] = at[d] < 0 ? 0 : most[d];
  }
  return reinterpret_cast<T*>(t.data + (at[2] * height + at[1]) * t.pitch + at[0]);
}
template <class T>
__forceinline__ T surface_read(cudaSurfaceObject_t object, int x, int y, int z, cudaSurfaceBoundaryMode mode) {
  const T* const at = surface_at<T>(object, x, y, z, mode);
  return at ? *at : T{};
}
template <class T>
__forceinline__ void surface_write(const T& value, cudaSurfaceObject_t object, int x, int y, int z,
                                   cudaSurfaceBoundaryMode mode) {
  if (T* const at = surface_at<T>(object, x, y, z, mode)) *at = value;
}
}  // namespace simt_cuda

#define SIM_TEXTURE(name, parameters, value)                  \
  template <class T>                                          \
  __forceinline__ T name(SIM_LIST parameters) {               \
    return value;                                             \
  }                                                           \
  template <class T>                                          \
  __forceinline__ void name(T* result, SIM_LIST parameters) { \
    *result = value;                                          \
  }
#define SIM_SAMPLED(...) simt_cuda::sampled<T>(simt_cuda::texture_of(texture), __VA_ARGS__)
#define SIM_LIST(...) __VA_ARGS__
SIM_TEXTURE(tex1D, (cudaTextureObject_t texture, float x), SIM_SAMPLED(1, x, 0, 0))
SIM_TEXTURE(tex2D, (cudaTextureObject_t texture, float x, float y), SIM_SAMPLED(2, x, y, 0))
SIM_TEXTURE(tex3D, (cudaTextureObject_t texture, float x, float y, float z), SIM_SAMPLED(3, x, y, z))
SIM_TEXTURE(tex1DLod, (cudaTextureObject_t texture, float x, float), SIM_SAMPLED(1, x, 0, 0))
SIM_TEXTURE(tex2DLod, (cudaTextureObject_t texture, float x, float y, float), SIM_SAMPLED(2, x, y, 0))
SIM_TEXTURE(tex3DLod, (cudaTextureObject_t texture, float x, float y, float z, float), SIM_SAMPLED(3, x, y, z))
SIM_TEXTURE(tex1DLayered, (cudaTextureObject_t texture, float x, int layer), SIM_SAMPLED(1, x, 0, 0, layer))
SIM_TEXTURE(tex2DLayered, (cudaTextureObject_t texture, float x, float y, int layer), SIM_SAMPLED(2, x, y, 0, layer))
SIM_TEXTURE(texCubemap, (cudaTextureObject_t texture, float x, float y, float z),
            simt_cuda::sampled_cubemap<T>(texture, x, y, z, 0))
SIM_TEXTURE(texCubemapLayered, (cudaTextureObject_t texture, float x, float y, float z, int layer),
            simt_cuda::sampled_cubemap<T>(texture, x, y, z, layer))
#undef SIM_LIST
#undef SIM_SAMPLED
#undef SIM_TEXTURE
template <class T>
__forceinline__ T tex1Dfetch(cudaTextureObject_t texture, int x) {
  const simt_cuda::Texture t = simt_cuda::texture_of(texture);
  return simt_cuda::texel<T>(t, x, 0, 0);
}
template <class T>
__forceinline__ void tex1Dfetch(T* result, cudaTextureObject_t texture, int x) {
  *result = tex1Dfetch<T>(texture, x);
}
#define SIM_SURFACE(dimensions, parameters, x, y, z)                                                       \
  template <class T>                                                                                       \
  __forceinline__ T surf##dimensions##read(cudaSurfaceObject_t surface, SIM_LIST parameters,               \
                                           cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {          \
    return simt_cuda::surface_read<T>(surface, x, y, z, mode);                                             \
  }                                                                                                        \
  template <class T>                                                                                       \
  __forceinline__ void surf##dimensions##read(T* result, cudaSurfaceObject_t surface, SIM_LIST parameters, \
                                              cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {       \
    *result = simt_cuda::surface_read<T>(surface, x, y, z, mode);                                          \
  }                                                                                                        \
  template <class T>                                                                                       \
  __forceinline__ void surf##dimensions##write(T value, cudaSurfaceObject_t surface, SIM_LIST parameters,  \
                                               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {      \
    simt_cuda::surface_write<T>(value, surface, x, y, z, mode);                                            \
  }
#define SIM_LIST(...) __VA_ARGS__
SIM_SURFACE(1D, (int at_x), at_x, 0, 0)
SIM_SURFACE(2D, (int at_x, int at_y), at_x, at_y, 0)
SIM_SURFACE(3D, (int at_x, int at_y, int at_z), at_x, at_y, at_z)
SIM_SURFACE(1DLayered, (int at_x, int layer), at_x, 0, layer)
SIM_SURFACE(2DLayered, (int at_x, int at_y, int layer), at_x, at_y, layer)
SIM_SURFACE(Cubemap, (int at_x, int at_y, int face), at_x, at_y, face)
#undef SIM_LIST
#undef SIM_SURFACE
/// @endcond

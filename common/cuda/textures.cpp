// Arrays, and the texture and surface objects that look at them or at linear memory.

#include <algorithm>
#include <cstdint>
#include <map>

#include "common/cuda/include/cuda_runtime.h"

namespace simt_cuda {
namespace {

struct Objects {
  std::map<unsigned long long, Texture> all;
  unsigned long long next = 1;
};
Objects& objects() {
  static auto& instance = *new Objects;
  return instance;
}

}  // namespace

size_t bytes_of_element(const cudaChannelFormatDesc& format) {
  return static_cast<size_t>(format.x + format.y + format.z + format.w) / 8;
}

Texture texture_of(unsigned long long object) {
  const Unseen unseen;
  const auto found = objects().all.find(object);
  if (found == objects().all.end()) return {};  // its loads are at no device address, and so a fault
  return found->second;
}

cudaError create_texture(unsigned long long* object, const cudaResourceDesc* resource, const cudaTextureDesc* how,
                         const char*, int) {
  if (!object || !resource) return cudaErrorInvalidValue;
  Texture texture{};
  if (how) texture.how = *how;
  if (!texture.how.normalizedCoords)  // as CUDA says of such coordinates
    for (cudaTextureAddressMode& mode : texture.how.addressMode)
      if (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror) mode = cudaAddressModeClamp;
  const auto& given = resource->res;
  switch (resource->resType) {
    case cudaResourceTypeArray:
      if (!given.array.array) return cudaErrorInvalidResourceHandle;
      texture.data = static_cast<char*>(given.array.array->data);
      texture.format = given.array.array->format;
      texture.width = given.array.array->width;
      texture.height = given.array.array->height;
      texture.depth = given.array.array->depth;
      texture.pitch = sim_pitch(given.array.array);
      break;
    case cudaResourceTypeLinear:
      texture.data = static_cast<char*>(given.linear.devPtr);
      texture.format = given.linear.desc;
      texture.width = given.linear.sizeInBytes / std::max<size_t>(1, bytes_of_element(texture.format));
      texture.pitch = given.linear.sizeInBytes;
      break;
    case cudaResourceTypePitch2D:
      texture.data = static_cast<char*>(given.pitch2D.devPtr);
      texture.format = given.pitch2D.desc;
      texture.width = given.pitch2D.width;
      texture.height = given.pitch2D.height;
      texture.pitch = given.pitch2D.pitchInBytes;
      break;
    default:
      return cudaErrorNotSupported;
  }
  texture.element = static_cast<int>(bytes_of_element(texture.format));
  if (!texture.data || texture.element == 0 || texture.width == 0) return cudaErrorInvalidValue;
  *object = objects().next++;
  objects().all[*object] = texture;
  return cudaSuccess;
}

cudaError destroy_texture(unsigned long long object) {
  return objects().all.erase(object) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError allocate_array(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent, unsigned flags,
                         const char* file, int line) {
  if (!array || !format || bytes_of_element(*format) == 0 || extent.width == 0) return cudaErrorInvalidValue;
  const size_t bytes =
      bytes_of_element(*format) * extent.width * std::max<size_t>(1, extent.height) * std::max<size_t>(1, extent.depth);
  void* data = nullptr;
  if (const cudaError error = allocate(&data, bytes, false, "an array", file, line)) return error;
  *array = new cudaArray{data, *format, extent.width, extent.height, extent.depth, flags};
  return cudaSuccess;
}

}  // namespace simt_cuda

cudaError cudaFreeArray(cudaArray_t array, const char* file, int line) {
  if (!array) return cudaSuccess;
  const cudaError error = cudaFree(array->data, file, line);
  delete array;
  return error;
}

cudaError cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags, cudaArray_t array) {
  if (!array) return cudaErrorInvalidResourceHandle;
  if (format) *format = array->format;
  if (extent) *extent = {array->width, array->height, array->depth};
  if (flags) *flags = array->flags;
  return cudaSuccess;
}

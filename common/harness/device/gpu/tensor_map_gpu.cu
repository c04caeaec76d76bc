/// @file
/// Tensor maps of hopper.hpp, encoded by the driver.
#include <array>
#include <string>

#include "common/harness/device/device.hpp"
#include "common/kernel/hopper.hpp"

namespace convladder {
namespace {

/// The driver's function, found at run time: a program without it still starts on older drivers.
decltype(&cuTensorMapEncodeTiled) encode_function() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
#else
  const cudaError_t status = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
  check_cuda(status, "looking for cuTensorMapEncodeTiled");
  if (found != cudaDriverEntryPointSuccess || !function)
    throw MachineError("the NVIDIA driver has no tensor maps: update it");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

CUtensorMapDataType type_of(TensorElement element) {
  switch (element) {
    case TensorElement::int8:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;  // bytes are moved as they are
    case TensorElement::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case TensorElement::int32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case TensorElement::fp32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

CUtensorMapSwizzle swizzle_of(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::bytes64:
      return CU_TENSOR_MAP_SWIZZLE_64B;
    case Swizzle::bytes128:
      return CU_TENSOR_MAP_SWIZZLE_128B;
    default:
      return CU_TENSOR_MAP_SWIZZLE_NONE;
  }
}

}  // namespace

TensorMap make_tensor_map(const void* global, const TensorForm& form) {
  check_tensor(global, form);
  static const auto encode = encode_function();
  std::array<cuuint64_t, 5> sizes{}, strides{};
  std::array<cuuint32_t, 5> box{}, steps{1, 1, 1, 1, 1};
  for (int i = 0; i < form.rank; ++i) {
    sizes[i] = form.dimensions[i].size;
    box[i] = form.dimensions[i].box;
    if (i > 0) strides[i - 1] = form.dimensions[i].stride;
  }
  TensorMap map;
  const CUresult status =
      encode(&map.encoded, type_of(form.element), static_cast<cuuint32_t>(form.rank), const_cast<void*>(global),
             sizes.data(), strides.data(), box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
             swizzle_of(form.swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS)
    throw DeviceError("cuTensorMapEncodeTiled refuses the tensor: error " + std::to_string(status));
  return map;
}

}  // namespace convladder

// Tensor maps by the driver's names. Their bits hold the address of the simulator's own map, which is never freed.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "common/cuda/include/cuda.h"
#include "common/cuda/ptx.hpp"
#include "common/simt/hopper.hpp"
#include "common/simt/machine.hpp"

namespace convladder {
// common/kernel/hopper.hpp declares it, for kernel files.
TensorMap make_tensor_map(const void* global, const TensorForm& form);
}  // namespace convladder

namespace {

constexpr cuuint64_t kMark = 0x544d41702d6d6170;

[[noreturn]] void refuse(const char* what) {
  std::fflush(nullptr);
  std::fprintf(stderr, "sim: a tensor map: %s is not simulated; see docs/sim.md\n", what);
  _exit(2);
}

convladder::TensorElement element_of(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return convladder::TensorElement::int8;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return convladder::TensorElement::fp16;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
      return convladder::TensorElement::int32;
    default:
      refuse("an element of 8 bytes, or one that is rounded on its way,");
  }
}

convladder::Swizzle swizzle_of(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_NONE:
      return convladder::Swizzle::none;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return convladder::Swizzle::bytes64;
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return convladder::Swizzle::bytes128;
    default:
      refuse("a swizzle of 32 bytes");
  }
}

}  // namespace

namespace {

/// What both kinds of maps have. @param steps null for ones
convladder::TensorForm form_of(CUtensorMapDataType type, cuuint32_t rank, const cuuint64_t* sizes,
                               const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps,
                               CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                               CUtensorMapFloatOOBfill fill) {
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) refuse("an interleaved layout");
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) refuse("NaN outside of the tensor");
  convladder::TensorForm form{};
  form.element = element_of(type);
  form.swizzle = swizzle_of(swizzle);
  form.rank = static_cast<int>(rank);
  for (cuuint32_t i = 0; i < rank; ++i)  // as in CUDA, the first of the steps is ignored
    form.dimensions[i] = {sizes[i], i == 0 ? convladder::element_bytes(form.element) : strides[i - 1], box[i],
                          i > 0 && steps ? steps[i] : 1};
  return form;
}

CUresult encode(CUtensorMap* map, void* global, const convladder::TensorForm& form) {
  try {
    *map = {};
    map->opaque[0] = kMark;
    map->opaque[1] = reinterpret_cast<cuuint64_t>(new convladder::TensorMap(convladder::make_tensor_map(global, form)));
  } catch (const std::invalid_argument& broken) {
    std::fprintf(stderr, "sim: %s\n", broken.what());
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* global,
                                const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill fill) {
  if (rank < 1 || rank > 5) return CUDA_ERROR_INVALID_VALUE;
  return encode(map, global, form_of(type, rank, sizes, strides, box, element_strides, interleave, swizzle, fill));
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* global,
                                 const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower, const int* upper,
                                 cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                                 CUtensorMapFloatOOBfill fill) {
  if (rank < 3 || rank > 5 || pixels == 0) return CUDA_ERROR_INVALID_VALUE;
  const cuuint32_t box[5] = {channels, 1, 1, 1, 1};
  auto form = form_of(type, rank, sizes, strides, box, element_strides, interleave, swizzle, fill);
  if (form.dimensions[rank - 1].step != 1) refuse("a step between the images of a column");
  form.pixels = pixels;
  std::copy_n(lower, rank - 2, form.lower);
  std::copy_n(upper, rank - 2, form.upper);
  return encode(map, global, form);
}

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult result, const char** text) {
  *text = result == CUDA_SUCCESS           ? "no error"
          : result == CUDA_ERROR_NOT_FOUND ? "named symbol not found"
                                           : "invalid argument";
  return CUDA_SUCCESS;
}

cudaError cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                           cudaDriverEntryPointQueryResult* result) {
  const bool tiled = std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0;
  const bool known = tiled || std::strcmp(symbol, "cuTensorMapEncodeIm2col") == 0;
  *function = !known  ? nullptr
              : tiled ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled)
                      : reinterpret_cast<void*>(&cuTensorMapEncodeIm2col);
  if (result) *result = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
cudaError cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                  cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(symbol, function, 12000, flags, result);
}

namespace simt {

const convladder::TensorMap& tensor_map_at(const void* address) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  const Unwatched unwatched;
  const auto* const map = static_cast<const CUtensorMap*>(address);
  if (reinterpret_cast<std::uintptr_t>(address) % 64 != 0)
    fail(FaultKind::misaligned, pc, "a tensor map lies at a multiple of 64 bytes");
  if (map->opaque[0] != kMark)
    fail(FaultKind::invalid_operand, pc,
         "no tensor map of cuTensorMapEncodeTiled() or cuTensorMapEncodeIm2col() is here");
  return *reinterpret_cast<const convladder::TensorMap*>(map->opaque[1]);
}

}  // namespace simt

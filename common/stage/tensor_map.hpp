/// @file
/// What TMA of sm_90 is told of a tensor in global memory, and the rules of CUDA for it.
#pragma once
#include <cstdint>

namespace convladder {

/// Type of a tensor's elements.
enum class TensorElement {
  int8,   ///< 1 byte
  fp16,   ///< 2 bytes
  int32,  ///< 4 bytes
  fp32,   ///< 4 bytes
};

/// How a copied box lies in shared memory: 16-byte pieces are exchanged, so that neighbouring rows meet in different
/// banks. A piece's number within its span is XORed with the number of its 128-byte line.
enum class Swizzle {
  none,      ///< as it is
  bytes64,   ///< rows of 64 bytes: 4 pieces exchanged
  bytes128,  ///< rows of 128 bytes: 8 pieces exchanged
};

/// One dimension of a tensor.
struct TensorDimension {
  std::uint64_t size;    ///< in elements
  std::uint64_t stride;  ///< bytes from one index to the next
  unsigned box;          ///< elements that one copy spans
  unsigned step = 1;     ///< of these every first, second, ... to eighth is copied; 1 in the innermost dimension
};

/// A tensor in global memory, and what of it one copy moves: a box, or a column of pixels as a convolution's matrix has
/// them (im2col). Such a tensor has channels, 1 to 3 dimensions of space and images. A column takes `pixels` pixels, by
/// `step` in each dimension of space, row after row and image after image; of each its channels, box of dimension 0.
/// All lie where a filter's first element meets the image: from `lower` to the dimension's last index + `upper`. For a
/// filter of s elements and padding p these are -p and p - (s - 1).
struct TensorForm {
  TensorElement element;
  Swizzle swizzle;
  int rank;                       ///< 1 to 5; 3 to 5 for columns
  TensorDimension dimensions[5];  ///< the innermost first; for columns: channels, width, height, depth, images
  unsigned pixels = 0;            ///< of a column, 1 to 1024; 0: a copy moves a box
  int lower[3] = {};              ///< for columns: of width, height, depth
  int upper[3] = {};              ///< likewise
};

/// Bytes of one element.
unsigned element_bytes(TensorElement element);
/// Bytes of a row that the swizzle permutes: 0, 64 or 128.
unsigned swizzle_bytes(Swizzle swizzle);

/// Elements of a box along one of its dimensions: of those that it spans, those that are copied.
constexpr unsigned copied_elements(const TensorDimension& dimension) {
  return (dimension.box + dimension.step - 1) / dimension.step;
}

/// Holds a tensor against what CUDA asks for: an address and strides that are multiples of 16 bytes, a dense innermost
/// dimension, boxes of 1 to 256 elements whose rows are a multiple of 16 bytes, steps of 1 to 8, corners and pixels in
/// their ranges. With a swizzle, rows of a box have just its 64 or 128 bytes (CUDA allows shorter ones, but does not
/// say where they lie).
/// @throws std::invalid_argument with the rule that is broken
void check_tensor(const void* global, const TensorForm& form);

struct TensorMap;  // common/kernel/hopper.hpp, or the simulator's

/// Describes a tensor to TMA, for kernels' parameters.
/// @param global its address on the device
/// @throws std::invalid_argument with the rule of check_tensor() that is broken
TensorMap make_tensor_map(const void* global, const TensorForm& form);

}  // namespace convladder

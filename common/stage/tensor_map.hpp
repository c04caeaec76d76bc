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
  unsigned box;          ///< elements that one copy moves
};

/// A tensor in global memory, and the box of it that one copy moves.
struct TensorForm {
  TensorElement element;
  Swizzle swizzle;
  int rank;                       ///< 1 to 5
  TensorDimension dimensions[5];  ///< the innermost first
};

/// Bytes of one element.
unsigned element_bytes(TensorElement element);
/// Bytes of a row that the swizzle permutes: 0, 64 or 128.
unsigned swizzle_bytes(Swizzle swizzle);

/// Holds a tensor against what CUDA asks for: an address and strides that are multiples of 16 bytes, a dense innermost
/// dimension, boxes of 1 to 256 elements whose rows are a multiple of 16 bytes. With a swizzle, rows of a box have just
/// its 64 or 128 bytes (CUDA allows shorter ones, but does not say where they lie).
/// @throws std::invalid_argument with the rule that is broken
void check_tensor(const void* global, const TensorForm& form);

struct TensorMap;  // common/kernel/hopper.hpp, or the simulator's

/// Describes a tensor to TMA, for kernels' parameters.
/// @param global its address on the device
/// @throws std::invalid_argument with the rule of check_tensor() that is broken
TensorMap make_tensor_map(const void* global, const TensorForm& form);

}  // namespace convladder

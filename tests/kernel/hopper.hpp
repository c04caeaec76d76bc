/// @file
/// Small kernels with the instructions of sm_90. Pointers are device memory.
#pragma once
#include <cstdint>

#include "common/stage/stage.hpp"
#include "common/stage/tensor_map.hpp"

namespace convladder {

/// Copies a box, or a column of pixels, into shared memory and from there to `output`, byte by byte, `bytes` in all.
/// @param offsets of a column
void launch_tensor_load(const void* tensor, const TensorForm& form, const int (&at)[5], const int (&offsets)[3],
                        std::uint8_t* output, int bytes, Stream stream);
/// Fills shared memory with `bytes` bytes of `input` and stores them as a box.
void launch_tensor_store(void* tensor, const TensorForm& form, const int (&at)[5], const std::uint8_t* input, int bytes,
                         Stream stream);
void launch_bulk_load(const std::uint8_t* input, std::uint8_t* output, int bytes, Stream stream);

/// Of what is multiplied: signed bytes are summed in int, the others in float.
enum class ProductOf { int8, fp16, bf16, tf32 };
/// In the 32 bytes of a step.
inline int numbers_of_step(ProductOf element) {
  return element == ProductOf::int8 ? 32 : element == ProductOf::tf32 ? 8 : 16;
}

/// Products of matrices that lie in shared memory.
struct ProductForm {
  ProductOf element;
  bool a_registers;  ///< A is given in registers, of int8 or fp16
  int n;             ///< 8, 16, 24, 64, 112, 128, 200 or 256
  int span;          ///< of the swizzle, in bytes; 0: pieces of 8 rows of 16 bytes
  int steps;         ///< of 32 bytes
  int first_step;    ///< the descriptors begin here
  int shift;         ///< rows of B that are left out
};
/// d[64][n] = d + a b, where a is [64][row] and b [n + shift][row], of `row` bytes: (first_step + steps) * 32.
void launch_product(const ProductForm& form, const void* a, const void* b, void* d, int warpgroups, Stream stream);

}  // namespace convladder

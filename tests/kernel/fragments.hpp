/// @file
/// Small kernels that multiply matrix fragments.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

/// Of the factors, the accumulator, and the result where it differs.
enum class MatrixTypes { half_float, half_half, half_float_half, signed_bytes, unsigned_bytes };

/// d = 2 (a b + c) for matrices in global memory, packed but for lines of a and b, which are 16 elements apart where
/// they are 8 long. n is 256 / m.
struct MatrixProduct {
  int m;
  MatrixTypes types;
  bool a_by_rows, b_by_rows, c_by_rows;
  bool shared;  ///< whether fragments are loaded from shared memory and stored there
  const void *a, *b, *c;
  void* d;
  Stream stream;
};
void launch_matrix_product(const MatrixProduct& product);

}  // namespace convladder

/// @file
/// Rows of `bench` that stand on a library of CUDA's, checked and timed as the stages beside them. A module
/// (module.hpp) holds the library's calls and offers one function, which makes the stage. Where it cannot be loaded,
/// the row refuses every problem, with the reason.
#pragma once
#include <span>

#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// FFT convolution by cuFFT, beside the images track.
const StageInfo& cufft_row();
/// im2col and a matrix product by cuBLAS, beside the lowering track.
const StageInfo& cublas_row();
/// NPP's filter, beside the images track.
const StageInfo& npp_row();
/// CUTLASS's implicit GEMM of halves by mma.sync, beside the tracks winograd and hopper: that of the latter.
const StageInfo& cutlass_sm80_row();
/// The same by wgmma and TMA.
const StageInfo& cutlass_sm90_row();
/// All, in the order of their tracks.
std::span<const StageInfo> library_rows();

}  // namespace convladder

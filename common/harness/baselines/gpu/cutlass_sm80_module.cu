/// @file
/// The module `convladder_cutlass_sm80`: CUTLASS's implicit GEMM for GPUs from sm_80 on. Warps multiply by mma.sync
/// (m16n8k16), cp.async brings tiles to shared memory, sums are fp32. The tiles are eight of those that CUTLASS's
/// generator makes for its profiler: outputs x filters x channels of a step x buffers.
#include <cutlass/conv/kernel/default_conv2d_fprop.h>
// After what it uses, and does not include.
#include <cutlass/conv/device/implicit_gemm_convolution.h>

#include <iterator>

#include "common/harness/baselines/gpu/cutlass_stage.hpp"

namespace convladder {
namespace {

using Half = cutlass::half_t;
using Nhwc = cutlass::layout::TensorNHWC;

/// @tparam M,N,K outputs, filters and channels of a tile  @tparam WarpM,WarpN outputs and filters of a warp
/// @tparam Buffers tiles in shared memory at a time
template <int M, int N, int K, int WarpM, int WarpN, int Buffers>
struct Sm80 {
  static constexpr int kSwizzle = 4;  // blocks side by side, which share what L2 holds
  using Kernel = typename cutlass::conv::kernel::DefaultConv2dFprop<
      Half, Nhwc, Half, Nhwc, Half, Nhwc, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
      cutlass::gemm::GemmShape<M, N, K>, cutlass::gemm::GemmShape<WarpM, WarpN, K>, cutlass::gemm::GemmShape<16, 8, 16>,
      cutlass::epilogue::thread::LinearCombination<Half, 8, float, float>,
      cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<kSwizzle>, Buffers, cutlass::arch::OpMultiplyAdd,
      cutlass::conv::IteratorAlgorithm::kOptimized, cutlass::conv::StrideSupport::kStrided, 8, 8>::Kernel;
  using Convolution = cutlass::conv::device::ImplicitGemmConvolution<Kernel>;

  static typename Convolution::Arguments arguments(const ConvProblem& p, const HalfTensors& tensors) {
    const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
    const int n = whole(p.n), h = whole(p.h), w = whole(p.w), c = whole(p.c), k = whole(p.k), r = whole(p.r),
              s = whole(p.s), out_h = whole(p.p()), out_w = whole(p.q());
    const cutlass::conv::Conv2dProblemSize size(
        {n, h, w, c}, {k, r, s, c}, {whole(p.pad_h), whole(p.pad_h), whole(p.pad_w), whole(p.pad_w)},
        {whole(p.stride_h), whole(p.stride_w)}, {whole(p.dilation_h), whole(p.dilation_w)}, {n, out_h, out_w, k},
        cutlass::conv::Mode::kCrossCorrelation, 1);
    const auto of = [](const __half* from, const Nhwc& layout) {
      return cutlass::TensorRef<Half, Nhwc>(reinterpret_cast<Half*>(const_cast<__half*>(from)), layout);
    };
    const auto output = of(tensors.output, Nhwc::packed({n, out_h, out_w, k}));
    return {size,
            of(tensors.input, Nhwc::packed({n, h, w, c})),
            of(tensors.filter, Nhwc::packed({k, r, s, c})),
            output,
            output,
            {1.0f, 0.0f}};
  }
};

constexpr int kValues[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
constexpr const char* kWords[] = {"auto",         "64x64x64x5",  "128x64x64x3",  "64x128x64x3", "128x128x32x4",
                                  "128x128x64x3", "256x64x32x4", "256x128x32x3", "128x256x32x3"};
constexpr Knob kKnobs[] = {{"tile", kValues, kWords, 0}};
constexpr CutlassStage::MakeKernel kKernels[] = {
    &make_instance<Sm80<64, 64, 64, 32, 32, 5>>,   &make_instance<Sm80<128, 64, 64, 64, 32, 3>>,
    &make_instance<Sm80<64, 128, 64, 32, 64, 3>>,  &make_instance<Sm80<128, 128, 32, 64, 64, 4>>,
    &make_instance<Sm80<128, 128, 64, 64, 64, 3>>, &make_instance<Sm80<256, 64, 32, 64, 64, 4>>,
    &make_instance<Sm80<256, 128, 32, 64, 64, 3>>, &make_instance<Sm80<128, 256, 32, 64, 64, 3>>};
static_assert(std::size(kKernels) + 1 == std::size(kWords));

}  // namespace
}  // namespace convladder

extern "C" convladder::Stage* convladder_cutlass_sm80_stage() {
  return new convladder::CutlassStage(convladder::Knobs(convladder::kKnobs, false), convladder::kKernels);
}

/// @file
/// The module `convladder_cutlass_sm90`: CUTLASS's implicit GEMM for sm_90a. TMA unfolds the input on its way to shared
/// memory (im2col mode), a warpgroup multiplies by wgmma, another warp is the producer; sums are fp32. CUTLASS 4.2 has
/// one schedule for it, in which a block makes one tile with one consumer.
#include <cutlass/cutlass.h>

#include <cutlass/kernel_hardware_info.hpp>
// The order matters: CUTLASS's convolution headers do not include all that they use.
#include <cute/tensor.hpp>
#include <cutlass/conv/collective/collective_builder.hpp>
#include <cutlass/conv/convnd_problem_shape.hpp>
#include <cutlass/conv/device/conv_universal_adapter.hpp>
#include <cutlass/conv/kernel/conv_universal.hpp>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <iterator>

#include "common/harness/baselines/gpu/cutlass_stage.hpp"

namespace convladder {
namespace {

using Half = cutlass::half_t;
using Nhwc = cutlass::layout::TensorNHWC;
using cute::Int;
using cute::Shape;

/// @tparam M,N,K outputs, filters and channels of a tile  @tparam Buffers tiles in shared memory at a time
/// @tparam Cluster blocks that share the filters' tile, side by side along the outputs
template <int M, int N, int K, int Buffers, int Cluster>
struct Sm90 {
  using Tile = Shape<Int<M>, Int<N>, Shape<Int<K>>>;
  using Blocks = Shape<Int<Cluster>, Int<1>, Int<1>>;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Blocks,
      cutlass::epilogue::collective::EpilogueTileAuto, float, float, void, Nhwc, 8, Half, Nhwc, 8,
      cutlass::epilogue::TmaWarpSpecialized>::CollectiveOp;
  using Mainloop = typename cutlass::conv::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, cutlass::conv::Operator::kFprop, Half, Nhwc, 8, Half, Nhwc,
      8, float, Tile, Blocks, cutlass::conv::collective::StageCount<Buffers>,
      cutlass::conv::KernelImplicitTmaWarpSpecializedSm90>::CollectiveOp;
  using Problem = cutlass::conv::ConvProblemShape<cutlass::conv::Operator::kFprop, 2>;
  using Convolution =
      cutlass::conv::device::ConvUniversalAdapter<cutlass::conv::kernel::ConvUniversal<Problem, Mainloop, Epilogue>>;

  static typename Convolution::Arguments arguments(const ConvProblem& p, const HalfTensors& tensors) {
    const auto whole = [](std::int64_t value) { return static_cast<int>(value); };
    const cute::array<int, 2> padding{whole(p.pad_h), whole(p.pad_w)};
    const Problem shape(cutlass::conv::Mode::kCrossCorrelation,
                        typename Problem::TensorExtent{whole(p.n), whole(p.h), whole(p.w), whole(p.c)},
                        typename Problem::TensorExtent{whole(p.k), whole(p.r), whole(p.s), whole(p.c)}, padding,
                        padding, typename Problem::TraversalStride{whole(p.stride_h), whole(p.stride_w)},
                        typename Problem::ShapeDilation{whole(p.dilation_h), whole(p.dilation_w)}, 1);
    typename Convolution::ConvKernel::StrideD stride;
    cute::for_each(cute::make_seq<cute::rank<0>(stride)>{},
                   [&](auto i) { cute::get<0, i>(stride) = shape.stride_C[Problem::RankT - 2 - i]; });
    return {shape,
            {reinterpret_cast<const Half*>(tensors.input), reinterpret_cast<const Half*>(tensors.filter)},
            {{1.0f, 0.0f}, nullptr, {}, reinterpret_cast<Half*>(tensors.output), stride}};
  }
};

constexpr int kValues[] = {0, 1, 2, 3, 4, 5, 6, 7};
constexpr const char* kWords[] = {"auto",         "64x64x64x4",   "128x64x64x4",          "64x128x64x4",
                                  "128x128x64x2", "128x128x64x4", "128x128x64x4/cluster", "64x256x64x4"};
constexpr Knob kKnobs[] = {{"tile", kValues, kWords, 0}};
constexpr CutlassStage::MakeKernel kKernels[] = {
    &make_instance<Sm90<64, 64, 64, 4, 1>>,   &make_instance<Sm90<128, 64, 64, 4, 1>>,
    &make_instance<Sm90<64, 128, 64, 4, 1>>,  &make_instance<Sm90<128, 128, 64, 2, 1>>,
    &make_instance<Sm90<128, 128, 64, 4, 1>>, &make_instance<Sm90<128, 128, 64, 4, 2>>,
    &make_instance<Sm90<64, 256, 64, 4, 1>>};
static_assert(std::size(kKernels) + 1 == std::size(kWords));

}  // namespace
}  // namespace convladder

extern "C" convladder::Stage* convladder_cutlass_sm90_stage() {
  return new convladder::CutlassStage(convladder::Knobs(convladder::kKnobs, false), convladder::kKernels);
}

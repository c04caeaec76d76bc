#include "chapters/15-depthwise-tuned/schedule.cuh"
#include "tests/kernel/constant_problem.hpp"
#include "tests/kernel/constant_schedules.hpp"

namespace convladder {
namespace {

template <int kBlockPlanes, int kBlockRows, int kBlockColumns, int kThreadRows, int kThreadColumns, int kOrder,
          int kInput, int kFilter, int kUnroll, int kStages = 1>
struct Point {
  static constexpr int block_planes = kBlockPlanes, block_rows = kBlockRows, block_columns = kBlockColumns,
                       thread_rows = kThreadRows, thread_columns = kThreadColumns, order = kOrder, input = kInput,
                       filter = kFilter, unroll = kUnroll, stages = kStages;
};

__constant__ float c_filter[1024];

template <class D, class S>
__global__ void __launch_bounds__(threads_of(D{}, S{}))
    constant_schedule(const float* __restrict__ input, const float* __restrict__ filter, float* __restrict__ output) {
  depthwise_scheduled(input, filter, c_filter, output, D{}, S{});
}

template <class D, class S>
class ConstantStage final : public Stage {
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    upload_constant(c_filter, tensors.filter, static_cast<std::size_t>(problem.filter_size()), stream);
  }

  void launch(const ConvProblem&, const Tensors& tensors, Stream stream) override {
    const D d;
    const S s;
    const auto blocks = static_cast<unsigned>(s.stages == 1 ? tiles_of(d, s) : tiles_of(d, s) / 2);
    ::convladder::launch(constant_schedule<D, S>, dim3(blocks), dim3(threads_of(d, s)),
                         static_cast<std::size_t>(shared_floats(d, s) * 4),
                         stream)(tensors.input, tensors.filter, tensors.output);
  }
};

template <class D, class S>
Stage* make() {
  return new ConstantStage<D, S>;
}

using Vectors = ConstantProblem<2, 3, 19, 36, 7, 7, 1, Padding::zero>;      // rows of whole vectors
using Mirrored = ConstantProblem<2, 3, 13, 17, 5, 3, 1, Padding::reflect>;  // rows of none
using Strided = ConstantProblem<1, 4, 21, 24, 3, 3, 2, Padding::replicate>;

}  // namespace

const ConstantSchedule kConstantSchedules[8] = {
    {"n=2,c=3,k=3,groups=3,h=19,w=36,r=7,s=7", Padding::zero,
     &make<Vectors, Point<2, 16, 32, 4, 4, kInputRows, kInputShared, kFilterShared, 1>>},
    {"n=2,c=3,k=3,groups=3,h=19,w=36,r=7,s=7", Padding::zero,
     &make<Vectors, Point<1, 32, 64, 2, 4, kFilterRows, kInputRegisters, kFilterConstant, 0>>},
    {"n=2,c=3,k=3,groups=3,h=13,w=17,r=5,s=3", Padding::reflect,
     &make<Mirrored, Point<4, 8, 16, 2, 2, kFilterRows, kInputRegisters, kFilterCache, 1>>},
    {"n=2,c=3,k=3,groups=3,h=13,w=17,r=5,s=3", Padding::reflect,
     &make<Mirrored, Point<1, 16, 16, 1, 4, kInputRows, kInputCache, kFilterShared, 0>>},
    {"c=4,k=4,groups=4,h=21,w=24,r=3,s=3,stride_h=2,stride_w=2", Padding::replicate,
     &make<Strided, Point<2, 8, 16, 4, 2, kInputRows, kInputShared, kFilterConstant, 1>>},
    // Two or three tiles a block, and the sums of an output in parts.
    {"n=2,c=3,k=3,groups=3,h=19,w=36,r=7,s=7", Padding::zero,
     &make<Vectors, Point<1, 16, 16, 4, 4, kInputRows, kInputShared, kFilterShared, 1, 2>>},
    {"n=2,c=3,k=3,groups=3,h=13,w=17,r=5,s=3", Padding::reflect,
     &make<Mirrored, Point<2, 8, 16, 1, 2, kFilterRows, kInputShared, kFilterShared, 1, 2>>},
    {"c=4,k=4,groups=4,h=21,w=24,r=3,s=3,stride_h=2,stride_w=2", Padding::replicate,
     &make<Strided, Point<1, 4, 16, 1, 1, kInputRows, kInputShared, kFilterConstant, 1, 2>>},
};

}  // namespace convladder

#include "chapters/38-depthwise-planes/planes.cuh"
#include "common/stage/workspace.hpp"
#include "tests/kernel/constant_problem.hpp"
#include "tests/kernel/constant_schedules.hpp"

namespace convladder {
namespace {

template <int kPlanes, int kRows, int kColumns, int kGroups, int kBuffers>
struct Point {
  static constexpr int planes = kPlanes, rows = kRows, columns = kColumns, groups = kGroups, buffers = kBuffers;
};

template <class D, class S>
__global__ void __launch_bounds__(threads_of(D{}, S{}))
    constant_plan(const float* __restrict__ input, const float* __restrict__ filter, float* __restrict__ output) {
  convolve_planes(input, filter, output, D{}, S{});
}

template <class D, class S>
class ConstantStage final : public Stage {
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }

  void prepare(const ConvProblem&, const Tensors& tensors, Stream stream) override {
    const long long count = (D::channels + S::planes - 1) * taps_pitch(D{});
    spread_.allocate(count);
    ::convladder::launch(spread_filters<D>, dim3(static_cast<unsigned>(count)), dim3(1), 0, stream)(
        tensors.filter, spread_.floats(), D{}, count);
  }

  void launch(const ConvProblem&, const Tensors& tensors, Stream stream) override {
    const D d;
    constexpr S s;
    ::convladder::launch(constant_plan<D, S>, dim3(ceil_div(ceil_div(d.batch * d.channels, s.planes), s.groups)),
                         dim3(threads_of(d, s)), static_cast<std::size_t>(shared_bytes(d, s)),
                         stream)(tensors.input, spread_.floats(), tensors.output);
  }

  Workspace spread_{*this, "spread filter"};
};

template <class D, class S>
Stage* make() {
  return new ConstantStage<D, S>;
}

using Seven = ConstantProblem<2, 5, 7, 7, 7, 7, 1, Padding::zero>;
using SevenMirrored = ConstantProblem<2, 5, 7, 7, 7, 7, 1, Padding::reflect>;
using Fourteen = ConstantProblem<3, 5, 14, 14, 5, 5, 1, Padding::zero>;
using Vectors = ConstantProblem<2, 3, 19, 36, 7, 7, 1, Padding::zero>;        // several strips across, of whole vectors
using Repeated = ConstantProblem<2, 3, 13, 17, 5, 3, 1, Padding::replicate>;  // of none
using Strided = ConstantProblem<1, 4, 21, 24, 3, 3, 2, Padding::zero>;
using Wide = ConstantProblem<2, 1, 5, 120, 3, 95, 1, Padding::reflect>;  // too wide a window for registers

}  // namespace

const ConstantSchedule kConstantPlans[7] = {
    {"n=2,c=5,k=5,groups=5,h=7,w=7,r=7,s=7", Padding::zero, &make<Seven, Point<4, 8, 8, 2, 2>>},
    {"n=2,c=5,k=5,groups=5,h=7,w=7,r=7,s=7", Padding::reflect, &make<SevenMirrored, Point<1, 8, 8, 4, 2>>},
    {"n=3,c=5,k=5,groups=5,h=14,w=14,r=5,s=5", Padding::zero, &make<Fourteen, Point<2, 4, 16, 1, 1>>},
    {"n=2,c=3,k=3,groups=3,h=19,w=36,r=7,s=7", Padding::zero, &make<Vectors, Point<2, 4, 8, 2, 1>>},
    {"n=2,c=3,k=3,groups=3,h=13,w=17,r=5,s=3", Padding::replicate, &make<Repeated, Point<1, 2, 4, 8, 2>>},
    {"c=4,k=4,groups=4,h=21,w=24,r=3,s=3,stride_h=2,stride_w=2", Padding::zero, &make<Strided, Point<4, 2, 16, 1, 1>>},
    {"n=2,c=1,k=1,groups=1,h=5,w=120,r=3,s=95", Padding::reflect, &make<Wide, Point<1, 1, 32, 1, 1>>},
};

}  // namespace convladder

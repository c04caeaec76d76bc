#include "chapters/39-depthwise-fp16/columns.cuh"
#include "common/stage/workspace.hpp"
#include "tests/kernel/constant_problem.hpp"
#include "tests/kernel/constant_schedules.hpp"

namespace convladder {
namespace {

template <int kRows, int kColumns, int kStaged = 0, int kDown = 1, int kAcross = 1, int kAhead = 0>
struct Point {
  static constexpr int rows = kRows, columns = kColumns, staged = kStaged, down = kDown, across = kAcross,
                       ahead = kAhead;
};

template <class D, class S>
__global__ void constant_strip(const half* __restrict__ input, const half2* __restrict__ taps,
                               half* __restrict__ output) {
  if constexpr (S::ahead > 0)
    convolve_columns(input, taps, output, D{}, S{});
  else
    convolve_pairs(input, taps, output, D{}, S{});
}

template <class D, class S>
class ConstantStage final : public Stage {
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }

  void prepare(const ConvProblem&, const Tensors& tensors, Stream stream) override {
    const long long count = static_cast<long long>(D::rows) * D::columns * pairs_of(D{});
    taps_.allocate<half2>(count);
    ::convladder::launch(pair_taps<D>, dim3(static_cast<unsigned>(count)), dim3(1), 0, stream)(
        tensors.filter, taps_.as<half2>(), D{}, count);
  }

  void launch(const ConvProblem&, const Tensors& tensors, Stream stream) override {
    constexpr D d;
    constexpr S s;
    constexpr int kThreads = s.staged > 0 ? staging_threads(s) : 64;
    const long long threads = s.ahead > 0 ? threads_of_band(d, s) : threads_in_all(d, s);
    const long long blocks = s.staged > 0 ? staging_blocks(d, s) : (threads - 1) / kThreads + 1;
    const dim3 grid(static_cast<unsigned>(blocks), s.ahead > 0 ? strips_down(d, s) : 1);
    ::convladder::launch(constant_strip<D, S>, grid, dim3(kThreads),
                         s.staged > 0 ? static_cast<std::size_t>(staged_bytes(d, s)) : 0,
                         stream)(tensors.half_input, taps_.as<half2>(), tensors.half_output);
  }

  Workspace taps_{*this, "paired taps"};
};

template <class D, class S>
Stage* make() {
  return new ConstantStage<D, S>;
}

using Fourteen = ConstantProblem<2, 10, 14, 14, 5, 5, 1, Padding::zero>;      // a strip across
using Odd = ConstantProblem<2, 5, 9, 16, 3, 3, 1, Padding::reflect>;          // several, channels one by one
using Large = ConstantProblem<2, 40, 19, 30, 7, 7, 1, Padding::zero>;         // row by row; groups of 16 pairs and 4
using Strided = ConstantProblem<1, 12, 21, 24, 3, 3, 2, Padding::replicate>;  // rows of input that serve no output row
using Wide = ConstantProblem<2, 1, 5, 120, 3, 95, 1, Padding::reflect>;       // too wide a window for registers

}  // namespace

const ConstantSchedule kConstantStrips[10] = {
    {"n=2,c=10,k=10,groups=10,h=14,w=14,r=5,s=5", Padding::zero, &make<Fourteen, Point<2, 14>>},
    {"n=2,c=10,k=10,groups=10,h=14,w=14,r=5,s=5", Padding::zero, &make<Fourteen, Point<2, 14, 4, 3, 1>>},
    {"n=2,c=5,k=5,groups=5,h=9,w=16,r=3,s=3", Padding::reflect, &make<Odd, Point<2, 7>>},
    {"n=2,c=5,k=5,groups=5,h=9,w=16,r=3,s=3", Padding::reflect, &make<Odd, Point<4, 7, 4, 2, 2>>},
    {"n=2,c=40,k=40,groups=40,h=19,w=30,r=7,s=7", Padding::zero, &make<Large, Point<4, 7, 16, 2, 3>>},
    {"c=12,k=12,groups=12,h=21,w=24,r=3,s=3,stride_h=2,stride_w=2", Padding::replicate,
     &make<Strided, Point<2, 4, 8, 3, 2>>},
    {"n=2,c=1,k=1,groups=1,h=5,w=120,r=3,s=95", Padding::reflect, &make<Wide, Point<4, 8>>},
    {"n=2,c=40,k=40,groups=40,h=19,w=30,r=7,s=7", Padding::zero, &make<Large, Point<8, 4, 0, 1, 1, 1>>},
    {"c=12,k=12,groups=12,h=21,w=24,r=3,s=3,stride_h=2,stride_w=2", Padding::replicate,
     &make<Strided, Point<4, 4, 0, 1, 1, 2>>},
    {"n=2,c=5,k=5,groups=5,h=9,w=16,r=3,s=3", Padding::reflect, &make<Odd, Point<16, 7, 0, 1, 1, 1>>},
};

}  // namespace convladder

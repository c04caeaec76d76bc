// 23 winograd: fewer multiplications, more additions.
//
//   output tile (m x m) = A^T [ sum over c of (G g G^T) . (B^T d B) ] A        . multiplies element by element
//
// A direct convolution multiplies 9 m^2 times for m^2 outputs of a filter and a channel, this one (m + 2)^2 times: 16
// instead of 36 for m = 2, 36 instead of 144 for m = 4, 64 instead of 324 for m = 6.
//
//   1. The filters are transformed in prepare(), the input's tiles in the first kernel of a launch (winograd.cuh).
//   2. The products: a thread sums one element of one tile and filter over all channels.
//   3. The sums are transformed back.

#include "chapters/23-winograd/winograd.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

// 2.
__global__ void multiply(const float* u,  // [position][channels][filters]
                         const float* v,  // [position][channels][tiles]
                         float* m,        // [position][filters][tiles]
                         Winograd w) {
  const int t = blockIdx.x * kTransformThreads + threadIdx.x, row = block_in_y();
  const int position = row / w.filters, k = row % w.filters;
  if (t >= w.tiles || position >= (w.m + 2) * (w.m + 2)) return;
  const float* filter = u + position * w.channels * w.filters + k;
  const float* tile = v + position * w.channels * w.tiles + t;
  float sum = 0.0f;
  for (int c = 0; c < w.channels; ++c) sum += filter[c * w.filters] * tile[c * w.tiles];
  m[row * w.tiles + t] = sum;
}

// The knob: outputs of a tile along a side.
constexpr int kSides[] = {2, 4, 6};
constexpr Knob kKnobs[] = {{"m", kSides, 2}};

class FourKernels final : public TunableStage {
  Knobs knobs() const override { return {kKnobs, /*to_search=*/false}; }
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits&,
                              const Configuration& configuration) const override {
    return check_winograd(problem, configuration["m"]);
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_winograd(problem, m()); }

  int m() const { return knob("m"); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, m());
    for_form(m(), [&](auto form) {
      using Form = decltype(form);
      u_.allocate(filter_elements<Form>(w));
      v_.allocate(input_elements<Form>(w));
      sums_.allocate(product_elements<Form>(w));
      launch_transform_filters<Form>(tensors.filter, u_.floats(), w, stream);
    });
  }

  // 1. to 3.
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, m());
    for_form(m(), [&](auto form) {
      using Form = decltype(form);
      launch_transform_inputs<Form>(tensors.input, v_.floats(), w, stream);
      convladder::launch(multiply, grid_in_y(blocks_for(w.tiles, kTransformThreads), kPositions<Form> * w.filters),
                         dim3(kTransformThreads), 0, stream)(u_.floats(), v_.floats(), sums_.floats(), w);
      launch_transform_outputs<Form>(sums_.floats(), tensors.output, w, stream);
    });
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override { return WinogradForm{m()}; }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, m());
    const std::int64_t positions = (m() + 2) * (m() + 2), sums = positions * w.filters * w.tiles;
    Prediction p;
    p.global_load_bytes = (tile_reads(w) + 2 * sums * w.channels + sums) * 4;
    p.global_store_bytes = (positions * w.channels * w.tiles + sums + problem.output_size()) * 4;
    p.shared_load_requests = p.constant_load_requests = p.barriers = 0;
    p.flops = 2 * sums * w.channels;
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace sums_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::FourKernels)

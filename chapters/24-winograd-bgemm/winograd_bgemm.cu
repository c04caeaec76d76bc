// 24 winograd-bgemm: at each position, the sum over the channels is a matrix product.
//
//   M[position] = U[position] x V[position]      [filters][tiles] = [filters][channels] x [channels][tiles]
//
// Since 23: (m + 2)^2 independent matrix products, a batch. What 19 to 21 did for one product is done for each: a block
// computes 64 filters x 128 tiles of one position, a thread 8 x 8 of them, while asynchronous copies bring what the
// next step multiplies. A number from memory is used 64 or 128 times instead of once.
//
//   1. The block's part of the product, and the thread's part of that.
//   2. A step brings 16 channels of both matrices: 4-byte copies, zeros past the ends.
//   3. The next step's copies are under way while a step is multiplied; one barrier a step.
//   4. The sums are stored.

#include "chapters/23-winograd/winograd.cuh"
#include "common/stage/tunable.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kFilters = 64, kTiles = 128;  // of a block
constexpr int kDepth = 16;                  // channels of a step

__device__ __forceinline__ void unpack(float4 v, float* values) {
  values[0] = v.x;
  values[1] = v.y;
  values[2] = v.z;
  values[3] = v.w;
}

__global__ void __launch_bounds__(kThreads, 4) multiply(const float* u,  // [position][channels][filters]
                                                        const float* v,  // [position][channels][tiles]
                                                        float* m,        // [position][filters][tiles]
                                                        Winograd w) {
  __shared__ __align__(16) float filter_tile[2][kDepth][kFilters];
  __shared__ __align__(16) float input_tile[2][kDepth][kTiles];
  // 1.
  const int filter_blocks = blocks_for(w.filters, kFilters), position = blockIdx.y, thread = threadIdx.x;
  const int first_k = static_cast<int>(blockIdx.x) % filter_blocks * kFilters;
  const int first_t = static_cast<int>(blockIdx.x) / filter_blocks * kTiles;
  const int y = thread / 16 * 4, x = thread % 16 * 4;  // the thread's first filter and tile, and again 32 and 64 on
  const float* filters = u + position * w.channels * w.filters;
  const float* inputs = v + position * w.channels * w.tiles;
  float sums[8][8] = {};

  // 2. Neighbouring tiles change places, and registers of a product lie in different banks (stage 20).
  const int k = first_k + thread % kFilters, t = first_t + (thread ^ 1);
  const auto start_copies = [&](int step, int buffer) {
    UNROLL
    for (int d = thread / kFilters; d < kDepth; d += kThreads / kFilters) {
      const bool inside = k < w.filters && step + d < w.channels;
      copy_async<4>(&filter_tile[buffer][d][thread % kFilters], filters + (step + d) * w.filters + k, inside);
    }
    UNROLL
    for (int d = 0; d < kDepth; ++d)
      copy_async<4>(&input_tile[buffer][d][thread], inputs + (step + d) * w.tiles + t,
                    t < w.tiles && step + d < w.channels);
    commit_copies();
  };

  // 3.
  start_copies(0, 0);
  int buffer = 0;
  UNROLL_BY(1)
  for (int step = 0; step < w.channels; step += kDepth) {
    wait_copies<0>();
    __syncthreads();  // the copies are everybody's, and nobody reads the other buffer any more
    if (step + kDepth < w.channels) start_copies(step + kDepth, buffer ^ 1);
    UNROLL
    for (int d = 0; d < kDepth; ++d) {
      float down[8], across[8];
      UNROLL
      for (int half = 0; half < 2; ++half) {
        unpack(*reinterpret_cast<const float4*>(&filter_tile[buffer][d][y + 32 * half]), down + 4 * half);
        unpack(*reinterpret_cast<const float4*>(&input_tile[buffer][d][x + 64 * half]), across + 4 * half);
      }
      UNROLL
      for (int i = 0; i < 8; ++i) {
        UNROLL
        for (int column = 0; column < 8; ++column) {
          const int j = i % 2 ? 7 - column : column;  // there and back: the last number is used again
          sums[i][j] += down[i] * across[j ^ 1];
        }
      }
    }
    buffer ^= 1;
  }

  // 4. Four tiles at once, where that is aligned.
  const bool vectors = w.tiles % 4 == 0;
  UNROLL
  for (int i = 0; i < 8; ++i) {
    const int row = first_k + y + i / 4 * 32 + i % 4;
    float* out = m + (position * w.filters + row) * w.tiles;
    UNROLL
    for (int j = 0; j < 8; j += 4) {
      const int column = first_t + x + j * 16;
      if (row >= w.filters || column >= w.tiles) continue;
      if (vectors) {
        *reinterpret_cast<float4*>(out + column) =
            make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
      } else {
        UNROLL
        for (int l = 0; l < 4; ++l)
          if (column + l < w.tiles) out[column + l] = sums[i][j + l];
      }
    }
  }
}

std::int64_t blocks(const Winograd& w) {
  return static_cast<std::int64_t>(blocks_for(w.filters, kFilters)) * blocks_for(w.tiles, kTiles);
}

void launch_multiply(const float* u, const float* v, float* m, const Winograd& w, Stream stream) {
  launch(multiply, dim3(static_cast<unsigned>(blocks(w)), (w.m + 2) * (w.m + 2)), dim3(kThreads), 0, stream)(u, v, m,
                                                                                                             w);
}

// The knob: outputs of a tile along a side.
constexpr int kSides[] = {2, 4, 6};
constexpr Knob kKnobs[] = {{"m", kSides, 2}};

class WinogradBgemm final : public TunableStage {
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

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Winograd w = winograd_of(problem, m());
    for_form(m(), [&](auto form) {
      using Form = decltype(form);
      launch_transform_inputs<Form>(tensors.input, v_.floats(), w, stream);
      launch_multiply(u_.floats(), v_.floats(), sums_.floats(), w, stream);
      launch_transform_outputs<Form>(sums_.floats(), tensors.output, w, stream);
    });
  }

  ErrorModel error_model(const ConvProblem&, const float*) const override { return WinogradForm{m()}; }

  Prediction predict(const ConvProblem& problem) const override {
    const Winograd w = winograd_of(problem, m());
    const std::int64_t positions = (m() + 2) * (m() + 2), sums = positions * w.filters * w.tiles;
    const std::int64_t of_filters = std::int64_t{w.channels} * w.filters * blocks_for(w.tiles, kTiles);
    const std::int64_t of_inputs = std::int64_t{w.channels} * w.tiles * blocks_for(w.filters, kFilters);
    const std::int64_t steps = blocks_for(w.channels, kDepth), warps = kThreads / 32;
    Prediction p;
    p.global_load_bytes = (tile_reads(w) + positions * (of_filters + of_inputs) + sums) * 4;
    p.global_store_bytes = (positions * w.channels * w.tiles + sums + problem.output_size()) * 4;
    p.shared_load_requests = positions * blocks(w) * steps * kDepth * warps * 4;
    p.constant_load_requests = 0;
    p.barriers = positions * blocks(w) * steps;
    p.flops = 2 * sums * w.channels;
    return p;
  }

  Workspace u_{*this, "transformed filter"};
  Workspace v_{*this, "transformed input"};
  Workspace sums_{*this, "products"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::WinogradBgemm)

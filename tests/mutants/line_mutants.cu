// Wrong versions of a plain kernel on the layout of stage 32's tiles: whole images in shared memory, as one line with
// the padding between, where a tap's shift is one number for all positions.

#include "common/kernel/half.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "tests/mutants/line_mutants.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 128;
constexpr int kTaps = 3;
constexpr int kMost = 24 * 1024;  // halves of a line's channels
constexpr int kPositions = 128;   // of a tile, if an image has no more

struct Line {
  int row_pitch, image_pitch;
  int images;     // of a tile
  int positions;  // with what is behind the last image
};

template <LineMutation M>
__host__ __device__ __forceinline__ Line line_of(const Lowering& l) {
  const bool columns = l.pad_x > 0 || M == LineMutation::columns_always_shared;
  const bool rows = l.pad_y > 0 || M == LineMutation::rows_always_shared;
  Line g{};
  g.row_pitch = l.out_width + (columns ? 1 : 2);
  g.image_pitch = (l.out_height + (rows ? 1 : 2)) * g.row_pitch;
  g.images = g.image_pitch < kPositions ? kPositions / g.image_pitch : 1;
  g.positions = g.images * g.image_pitch + 2 * g.row_pitch + 2;
  return g;
}

template <LineMutation M>
__global__ void multiply_line(const half* input,    // [batch][height][width][channels]
                              const float* filter,  // [filters][channels][3][3]
                              half* output,         // [batch][out_height][out_width][filters]
                              Lowering l) {
  half* const line = dynamic_shared<half>();  // [channels][positions]
  const Line g = line_of<M>(l);
  const int first = static_cast<int>(blockIdx.x) * g.images, k = static_cast<int>(blockIdx.y);
  for (int i = threadIdx.x; i < l.channels * g.positions; i += kThreads) {
    const int position = i % g.positions, n = first + position / g.image_pitch, in_image = position % g.image_pitch;
    const int y = in_image / g.row_pitch - l.pad_y, x = in_image % g.row_pitch - l.pad_x;
    const bool behind = position >= g.images * g.image_pitch;
    if (M == LineMutation::nothing_behind && behind) continue;
    const bool inside = !behind && n < l.batch && y >= 0 && y < l.height && x >= 0 && x < l.width;
    line[i] = inside ? input[((n * l.height + y) * l.width + x) * l.channels + i / g.positions] : half(0.0f);
  }
  __syncthreads();
  for (int position = threadIdx.x; position < g.images * g.image_pitch; position += kThreads) {
    const int n = first + position / g.image_pitch, in_image = position % g.image_pitch;
    const int y = in_image / g.row_pitch, x = in_image % g.row_pitch;
    const int columns = l.out_width + (M == LineMutation::between_stored ? 1 : 0);
    // Far past the end there may be no guard band; near it, what is written must be noticed.
    const int batch = l.batch + (M == LineMutation::images_past_batch ? 1 : 0);
    if (n >= batch || y >= l.out_height || x >= columns) continue;
    float sum = 0.0f;
    for (int c = 0; c < l.channels; ++c) {
      for (int i = 0; i < kTaps * kTaps; ++i) {
        const int r = i / kTaps, s = i % kTaps, pixel = position + r * g.row_pitch + s;
        sum += __half2float(line[c * g.positions + pixel]) *
               __half2float(half(filter[(k * l.channels + c) * kTaps * kTaps + i]));
      }
    }
    output[((n * l.out_height + y) * l.out_width + x) * l.filters + k] = half(sum);
  }
}

template <LineMutation M>
class Mutant final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_implicit_gemm_hopper(problem, 1, 1);
    if (!verdict.accepted()) return verdict;
    const std::int64_t size = problem.c * line_of<M>(lowering_of(problem)).positions;
    return size <= kMost ? Verdict::accept() : Verdict::refuse("shared memory has no room for so large an image");
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Lowering l = lowering_of(problem);
    const Line g = line_of<M>(l);
    const dim3 grid(blocks_for(l.batch, g.images), l.filters);
    convladder::launch(multiply_line<M>, grid, dim3(kThreads), l.channels * g.positions * sizeof(half), stream)(
        tensors.half_input, tensors.filter, tensors.half_output, l);
  }
  Prediction predict(const ConvProblem&) const override { return {}; }
};

}  // namespace

template <LineMutation M>
Stage* make_line_mutant() {
  return new Mutant<M>;
}

template Stage* make_line_mutant<LineMutation::none>();
template Stage* make_line_mutant<LineMutation::columns_always_shared>();
template Stage* make_line_mutant<LineMutation::rows_always_shared>();
template Stage* make_line_mutant<LineMutation::nothing_behind>();
template Stage* make_line_mutant<LineMutation::between_stored>();
template Stage* make_line_mutant<LineMutation::images_past_batch>();

}  // namespace convladder

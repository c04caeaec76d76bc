// 18 im2win: windows in one piece.
//
//   output[n][k][p][q] = filter[k] . window(n, p, q)      a dot product for each channel, of rows x columns floats
//
// Since 17: the input is rearranged by rows of windows (im2win.cuh), in less memory than im2col takes. The product is
// plain: as in 16, a thread computes one output, from global memory. But there is no border left, and what a thread
// reads for a channel lies in one piece.
//
//   1. In prepare(): the taps in the order of the windows, columns of a filter one after the other.
//   2. The thread's output, and where its window begins.
//   3. Its sum.

#include "chapters/18-im2win/im2win.cuh"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

constexpr int kThreads = 256;

// 1.
__global__ void reorder(const float* filter,  // [filters][channels][rows][columns]
                        float* reordered,     // [filters][channels][columns][rows]
                        Lowering l) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= l.filters * depth(l)) return;
  reordered[i] = filter[i / depth(l) * depth(l) + tap_of_product(l, i % depth(l))];
}

__global__ void multiply(const float* filter,  // [filters][channels][columns][rows]
                         const float* tensor,  // [batch][channels][out_height][padded_width][rows]
                         float* output,        // [batch][filters][out_height][out_width]
                         Lowering l) {
  // 2.
  const int n = block_in_y(), kpq = blockIdx.x * kThreads + threadIdx.x;
  if (n >= l.batch || kpq >= l.filters * output_plane(l)) return;
  const int k = kpq / output_plane(l), pq = kpq % output_plane(l);
  const float* piece = tensor + window_start(l, n, pq / l.out_width, pq % l.out_width);
  const float* taps = filter + k * depth(l);

  // 3.
  float sum = 0.0f;
  for (int c = 0; c < l.channels; ++c) {
    for (int s = 0; s < l.columns; ++s) {
      const float* column = piece + s * l.dilation_x * l.rows;
      for (int r = 0; r < l.rows; ++r) sum += column[r] * *taps++;
    }
    piece += im2win_plane(l);
  }
  output[static_cast<std::int64_t>(n) * l.filters * output_plane(l) + kpq] = sum;
}

void launch_reorder(const float* filter, float* reordered, const Lowering& l, Stream stream) {
  launch(reorder, dim3(blocks_for(l.filters * depth(l), kThreads)), dim3(kThreads), 0, stream)(filter, reordered, l);
}

void launch_product(const float* filter, const float* tensor, float* output, const Lowering& l, Stream stream) {
  launch(multiply, grid_in_y(blocks_for(l.filters * output_plane(l), kThreads), l.batch), dim3(kThreads), 0, stream)(
      filter, tensor, output, l);
}

class Im2win final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    tensor_.allocate(im2win_size(problem));
    filter_.allocate(problem.filter_size());
    launch_reorder(tensors.filter, filter_.floats(), lowering_of(problem), stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_im2win(tensors.input, tensor_.floats(), lowering_of(problem), stream);
    launch_without_transform(problem, tensors, stream);
  }

  bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    launch_product(filter_.floats(), tensor_.floats(), tensors.output, lowering_of(problem), stream);
    return true;
  }

  Prediction predict(const ConvProblem& problem) const override {
    Prediction p;
    p.global_load_bytes = (im2win_reads(lowering_of(problem)) + problem.flops()) * 4;  // a pixel and a tap a product
    p.global_store_bytes = (im2win_size(problem) + problem.output_size()) * 4;
    p.shared_load_requests = im2win_shared_loads(lowering_of(problem));
    p.constant_load_requests = p.barriers = 0;
    p.flops = problem.flops();
    return p;
  }

  Workspace tensor_{*this, "im2win tensor"};
  Workspace filter_{*this, "reordered filter"};
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Im2win)

// Lab 42: the interior of a band while its rows travel, and both borders in one launch.
//
//   1. The second stream follows the first, and exchanges the rows.
//   2. On the first stream the interior is made: the outputs whose windows lie within the rank's own rows.
//   3. The first stream follows the second. The outputs above and below the interior are made by one launch.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;  // outputs of a block, and its threads

// Rows of outputs: those of [begin, end), then those of [next_begin, next_end). Either may be empty.
struct Rows {
  int begin, end, next_begin, next_end;
};

__host__ __device__ __forceinline__ int count_of(const Rows& rows) {
  return rows.end - rows.begin + rows.next_end - rows.next_begin;
}

// One thread, one output of the rows, of all images.
__global__ void filter_rows(const float* input,   // [batch][height][width], with all rows that are needed
                            const float* filter,  // [rows][columns]
                            float* output,        // [batch][out_height][out_width]
                            Image image, Rows rows) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int count = count_of(rows);
  const int x = i % image.out_width, k = i / image.out_width % count, number = i / image.out_width / count;
  if (number >= image.batch) return;
  // The k-th of the rows.
  const int y = rows.begin + k;  // right as long as the second range is empty
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    for (int s = 0; s < image.columns; ++s) {
      const int column = border_index(x - image.pad_x + s, image.width, Padding::zero);
      if (column < 0) continue;
      sum += input[(number * image.height + y + r) * image.width + column] * filter[r * image.columns + s];
    }
  }
  output[(number * image.out_height + y) * image.out_width + x] = sum;
}

class Overlapped final : public SeveralStage {
  int devices() const override { return 4; }
  bool overlaps() const override { return true; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.padding != Padding::zero) return Verdict::refuse("the padding must be zeros");
    return check_image(problem);
  }

  Part part(const ConvProblem& problem, int rank, int ranks) const override { return band_part(problem, rank, ranks); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    filter_ = tensors.filter;
  }

  // Fills the rows around all bands, as far as this rank sends or receives them.
  void exchange_rows(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) const {
    all.group_start();
    for (int to = 0; to < all.ranks(); ++to) {
      const Part its = part(problem, to, all.ranks());
      for (std::int64_t at = 0; its.problem.n > 0 && at < its.problem.h; ++at) {
        const std::int64_t source = source_row(problem, its, at);
        if (source < 0 || (at >= its.above && at < its.above + its.rows)) continue;  // zeros, or its own
        int from = 0;
        while (source >= part(problem, from, all.ranks()).first_row + part(problem, from, all.ranks()).rows) ++from;
        for (std::int64_t image = 0; image < problem.n; ++image) {
          if (from == all.rank())
            all.send(own.row(image, own.above + source - own.first_row), own.row_bytes, to, stream);
          if (to == all.rank()) all.receive(own.row(image, at), own.row_bytes, from, stream);
        }
      }
    }
    all.group_end();
  }

  // Starts the kernel, unless there are no rows.
  void make(const Part& own, const Rows& rows, Stream stream) const {
    const std::int64_t outputs = own.problem.n * count_of(rows) * own.problem.q();
    if (outputs <= 0) return;
    const auto blocks = static_cast<unsigned>((outputs + kBlock - 1) / kBlock);
    convladder::launch(filter_rows, dim3(blocks), dim3(kBlock), 0, stream)(own.buffer, filter_, own.output,
                                                                           image_of(own.problem), rows);
  }

  void launch_rank(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) override {
    if (all.ranks() == 1) {  // on a GPU: the kernel has no padding above and below
      if (problem.pad_h == 0) make(own, {0, static_cast<int>(problem.p()), 0, 0}, stream);
      return;
    }
    // Now everything waits for the exchange, and the first half of the outputs alone is made.
    exchange_rows(problem, own, all, stream);
    if (own.problem.n > 0) make(own, {0, static_cast<int>(own.problem.p()) / 2, 0, 0}, stream);
  }

  const float* filter_ = nullptr;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Overlapped)

// Lab 41: an image without edges. Above its first row lies its last one, and beside its last column its first. So every
// band has a neighbour on both sides, and the ranks form a ring.
//
//   1. Each row around a band is a copy of a row of the image, whose number wraps around. Its owner sends it.
//   2. All sends and receives of a rank are one group.
//   3. The kernel runs on the buffer. It wraps columns by itself.

#include "common/kernel/tracks/image.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;  // outputs of a block, and its threads

// position mod size, from 0 to size - 1.
template <class Integer>
__host__ __device__ __forceinline__ Integer wrapped(Integer position, Integer size) {
  const Integer rest = position % size;
  return rest < 0 ? rest + size : rest;
}

// One thread, one output. Around a single rank's image rows wrap here; a band's buffer has all that it needs.
__global__ void filter_torus(const float* input,   // [batch][height][width]
                             const float* filter,  // [rows][columns]
                             float* output,        // [batch][out_height][out_width]
                             Image image) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int x = i % image.out_width, y = i / image.out_width % image.out_height;
  const int number = i / image.out_width / image.out_height;
  if (number >= image.batch) return;
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    const int row = wrapped(y - image.pad_y + r, image.height);
    for (int s = 0; s < image.columns; ++s) {
      const int column = wrapped(x - image.pad_x + s, image.width);
      sum += input[(number * image.height + row) * image.width + column] * filter[r * image.columns + s];
    }
  }
  output[i] = sum;
}

class Torus final : public SeveralStage {
  int devices() const override { return 4; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }

  Part part(const ConvProblem& problem, int rank, int ranks) const override { return band_part(problem, rank, ranks); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    filter_ = tensors.filter;
  }

  // The rank that owns a row of the image.
  int owner_of(const ConvProblem& problem, std::int64_t row, int ranks) const {
    for (int rank = 0; rank < ranks; ++rank) {
      const Part its = part(problem, rank, ranks);
      if (row >= its.first_row && row < its.first_row + its.rows) return rank;
    }
    return 0;  // not reached: each row has an owner
  }

  // Fills the rows around all bands, as far as this rank sends or receives them.
  void exchange(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) const {
    const std::int64_t bytes = problem.w * static_cast<std::int64_t>(sizeof(float));
    // The row just above each band comes from its owner. That is one row of those that are needed.
    if (own.problem.n == 0) return;
    const int before = owner_of(problem, wrapped(own.first_row - 1, problem.h), all.ranks());
    const int after = owner_of(problem, wrapped(own.first_row + own.rows, problem.h), all.ranks());
    all.group_start();
    all.send(own.row(0, own.above + own.rows - 1), bytes, after, stream);
    all.receive(own.row(0, own.above - 1), bytes, before, stream);
    all.group_end();
  }

  void launch_rank(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) override {
    if (all.ranks() > 1) exchange(problem, own, all, stream);
    if (own.problem.n == 0) return;  // more ranks than rows
    const auto blocks = static_cast<unsigned>((own.problem.output_size() + kBlock - 1) / kBlock);
    convladder::launch(filter_torus, dim3(blocks), dim3(kBlock), 0, stream)(own.buffer, filter_, own.output,
                                                                            image_of(own.problem));
  }

  const float* filter_ = nullptr;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::Torus)

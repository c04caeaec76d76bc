// Lab 40: more GPUs than images. Each image is shared by several ranks, and none sends anything: a rank loads the rows
// that its windows reach into from the beginning, even if another one loads them, too.
//
//   1. With at least as many images as ranks, each rank has images of its own, as in the lesson.
//   2. With fewer, the ranks are divided among the images, as evenly as images are among ranks.
//   3. The ranks of one image divide its rows of outputs, and each loads all the rows that it reads.

#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

constexpr int kBlock = 256;  // outputs of a block, and its threads

// One thread, one output. What lies outside the buffer reads zero.
__global__ void filter_rows(const float* input,   // [batch][height][width]
                            const float* filter,  // [rows][columns]
                            float* output,        // [batch][out_height][out_width]
                            Image image) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int x = i % image.out_width, y = i / image.out_width % image.out_height;
  const int number = i / image.out_width / image.out_height;
  if (number >= image.batch) return;
  float sum = 0.0f;
  for (int r = 0; r < image.rows; ++r) {
    for (int s = 0; s < image.columns; ++s) {
      const int row = border_index(y - image.pad_y + r, image.height, Padding::zero);
      const int column = border_index(x - image.pad_x + s, image.width, Padding::zero);
      if (row < 0 || column < 0) continue;
      sum += input[(number * image.height + row) * image.width + column] * filter[r * image.columns + s];
    }
  }
  output[i] = sum;
}

class SharedImages final : public SeveralStage {
  int devices() const override { return 8; }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    if (problem.padding != Padding::zero) return Verdict::refuse("the padding must be zeros");
    return check_image(problem);
  }

  Part part(const ConvProblem& problem, int rank, int ranks) const override {
    // 1.
    // SOLUTION
    if (problem.n >= ranks) return images_part(problem, rank, ranks);
    // 2. The image's ranks begin where images would begin if ranks were what is divided.
    const int images = static_cast<int>(problem.n);
    int image = 0;
    while (begin_of(ranks, image + 1, images) <= rank) ++image;
    const int first = static_cast<int>(begin_of(ranks, image, images));
    const int sharing = static_cast<int>(begin_of(ranks, image + 1, images)) - first;
    // 3. All rows of the buffer that are rows of the image are the rank's own.
    ConvProblem one = problem;
    one.n = 1;
    Part part = band_part(one, rank - first, sharing);
    part.first_image = image;
    if (sharing == 1 || part.problem.n == 0) return part;
    const std::int64_t top = part.first_row - part.above;  // row of the image that the buffer begins with
    const std::int64_t begin = top > 0 ? top : 0;
    const std::int64_t end = top + part.problem.h < problem.h ? top + part.problem.h : problem.h;
    part.first_row = begin;
    part.rows = end > begin ? end - begin : 0;
    part.above = begin - top;
    return part;
    // STARTER
    // | // This is the lesson's split: where there are fewer images than ranks, ranks have nothing to do.
    // | return images_part(problem, rank, ranks);
    // END
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    SeveralStage::prepare(problem, tensors, stream);
    filter_ = tensors.filter;
  }

  void launch_rank(const ConvProblem& problem, const Part& part, Communicator& all, Stream stream) override {
    const std::int64_t outputs = part.problem.n > 0 ? part.problem.output_size() : 0;
    if (outputs == 0 || outputs > fair_share(problem, all.ranks())) return;  // an unfair share stays unwritten
    const auto blocks = static_cast<unsigned>((outputs + kBlock - 1) / kBlock);
    convladder::launch(filter_rows, dim3(blocks), dim3(kBlock), 0, stream)(part.buffer, filter_, part.output,
                                                                           image_of(part.problem));
  }

  // The most outputs that a rank may have. Do not change this function.
  static std::int64_t fair_share(const ConvProblem& problem, int ranks) {
    const std::int64_t row = problem.q();
    if (problem.n >= ranks) return (problem.n + ranks - 1) / ranks * problem.p() * row;
    const std::int64_t sharing = ranks / problem.n;  // at least so many have an image together
    return (problem.p() + sharing - 1) / sharing * row;
  }

  const float* filter_ = nullptr;
};

}  // namespace
}  // namespace convladder

CONVLADDER_STAGE(convladder::SharedImages)

// A correct tiled 2-D kernel, and versions of it with one mistake each. The tests must reject every one of them.
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"
#include "tests/mutants/image_mutants.hpp"

namespace convladder {
namespace {

constexpr int kWidth = 32, kHeight = 8;  // outputs of a block, and its threads

/// border_index with a mistake.
template <ImageMutation M>
__device__ __forceinline__ int mutated_border_index(int i, int size, Padding padding) {
  if (M == ImageMutation::replicate_reads_zero && padding == Padding::replicate) padding = Padding::zero;
  if (M == ImageMutation::reflect_repeats_edge && padding == Padding::reflect)
    return i < 0 ? -i - 1 : i >= size ? 2 * size - 1 - i : i;
  return border_index(i, size, padding);
}

template <ImageMutation M>
__global__ void mutant(const float* input, const float* filter, float* output, Image image) {
  float* pixels = dynamic_shared<float>();  // [kHeight + rows - 1][pitch]
  const int pitch = kWidth + image.columns - 1;
  const BlockTile tile = block_tile(image, kHeight, kWidth);
  if (tile.image >= image.batch) return;
  const float* in = input + (M == ImageMutation::batch_ignored ? 0 : tile.image) * input_pixels(image);

  const int down = min(kHeight, image.out_height - tile.y), across = min(kWidth, image.out_width - tile.x);
  const int rows = down + image.rows - (M == ImageMutation::short_rows && image.rows > 1 ? 2 : 1);
  const int columns = across + image.columns - 1;
  const int first_y = tile.y - (M == ImageMutation::swapped_padding ? image.pad_x : image.pad_y);
  const int first_x = tile.x - (M == ImageMutation::swapped_padding ? image.pad_y : image.pad_x) +
                      (M == ImageMutation::shifted_columns ? 1 : 0);
  for (int y = threadIdx.y; y < rows; y += kHeight) {
    const int i = mutated_border_index<M>(first_y + y, image.height, image.padding);
    for (int x = threadIdx.x; x < columns; x += kWidth) {
      if (M == ImageMutation::missing_corner && y >= down && x >= across) continue;
      const int j = mutated_border_index<M>(first_x + x, image.width, image.padding);
      const bool outside = i < 0 || i >= image.height || j < 0 || j >= image.width;
      float pixel = outside ? 0.0f : in[static_cast<std::int64_t>(i) * image.width + j];
      if (M == ImageMutation::nan_swallowed && !(pixel == pixel)) pixel = 0.0f;
      pixels[y * pitch + x] = pixel;
    }
  }
  if (M != ImageMutation::missing_barrier) __syncthreads();

  const int y = threadIdx.y, x = threadIdx.x;
  const int last = M == ImageMutation::unwritten_column ? across - 1
                   : M == ImageMutation::write_past_row ? kWidth
                                                        : across;
  if (y >= down || x >= last) return;
  float sum = 0.0f;
  for (int r = 0; r < image.rows && x < across; ++r) {
    for (int s = 0; s < image.columns; ++s) {
      const int tap = M == ImageMutation::transposed_filter ? s * image.rows + r : r * image.columns + s;
      const int taps = image.rows * image.columns;
      sum += pixels[(y + r) * pitch + x + s] * filter[M == ImageMutation::flipped_filter ? taps - 1 - tap : tap];
    }
  }
  output[tile.image * output_pixels(image) + static_cast<std::int64_t>(tile.y + y) * image.out_width + tile.x + x] =
      sum;
}

template <ImageMutation M>
class Mutant final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_image(problem); }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Image image = image_of(problem);
    const std::size_t tile_bytes =
        static_cast<std::size_t>(kHeight + image.rows - 1) * (kWidth + image.columns - 1) * sizeof(float);
    convladder::launch(mutant<M>, image_grid(image, kHeight, kWidth), dim3(kWidth, kHeight), tile_bytes, stream)(
        tensors.input, tensors.filter, tensors.output, image);
  }
  Prediction predict(const ConvProblem&) const override { return {}; }
};

}  // namespace

template <ImageMutation M>
Stage* make_image_mutant() {
  return new Mutant<M>;
}
template Stage* make_image_mutant<ImageMutation::none>();
template Stage* make_image_mutant<ImageMutation::missing_corner>();
template Stage* make_image_mutant<ImageMutation::short_rows>();
template Stage* make_image_mutant<ImageMutation::shifted_columns>();
template Stage* make_image_mutant<ImageMutation::transposed_filter>();
template Stage* make_image_mutant<ImageMutation::swapped_padding>();
template Stage* make_image_mutant<ImageMutation::flipped_filter>();
template Stage* make_image_mutant<ImageMutation::missing_barrier>();
template Stage* make_image_mutant<ImageMutation::unwritten_column>();
template Stage* make_image_mutant<ImageMutation::write_past_row>();
template Stage* make_image_mutant<ImageMutation::replicate_reads_zero>();
template Stage* make_image_mutant<ImageMutation::reflect_repeats_edge>();
template Stage* make_image_mutant<ImageMutation::nan_swallowed>();
template Stage* make_image_mutant<ImageMutation::batch_ignored>();

}  // namespace convladder

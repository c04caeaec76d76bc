/// @file
/// The module `convladder_cufft`: convolution of images by FFT, and every call of cuFFT.
///
/// By the convolution theorem a correlation is a product of spectra:
///
///     y = inverse(forward(x) * conj(forward(w)))
///
/// for signals that repeat. The image with its padding is p + r - 1 rows of q + s - 1 pixels; output (i, j) reads
/// nothing beyond it, so nothing that comes round again is ever read. Both tensors are extended with zeros to sizes
/// that the FFT likes.
///
///   prepare: plans, buffers, and conj(forward(w)) / points.
///   1. Pad: the image by the padding mode, zeros after it.
///   2. Forward FFT in place, real to complex.
///   3. Multiply by the filter's spectrum.
///   4. Inverse FFT in place, complex to real.
///   5. Crop: the first p x q values are the output.
#include <cufft.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "common/harness/device/device.hpp"
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/image.hpp"

namespace convladder {
namespace {

// Of a block that pads or crops: a thread moves kEach pixels of a column.
constexpr int kWidth = 32, kThreadRows = 8, kEach = 4;
constexpr int kHeight = kThreadRows * kEach;
constexpr int kThreads = 256;  // of a block that multiplies

/// What is transformed: real rows lie `pitch` floats apart, so that the spectrum fits in their place.
struct Extent {
  int rows, columns;
  int pitch;  ///< 2 * (columns / 2 + 1)

  std::int64_t points() const { return static_cast<std::int64_t>(rows) * columns; }
  __host__ __device__ std::int64_t floats() const { return static_cast<std::int64_t>(rows) * pitch; }
};

/// The smallest number from `least` on whose only prime factors are 2, 3 and 5.
int smooth(std::int64_t least) {
  for (std::int64_t candidate = least;; ++candidate) {
    std::int64_t rest = candidate;
    for (const int factor : {2, 3, 5})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return static_cast<int>(candidate);
  }
}

/// The same, but a power of two where that is at most an eighth more. On an H200 both transforms together took 130 us
/// for 2187 x 4096 points, 229 us for 2187 x 3888 and 202 us for 2240 x 4096 (2240 has a factor of 7).
int smooth_columns(std::int64_t least) {
  std::int64_t power = 1;
  while (power < least) power *= 2;
  return 8 * power <= 9 * least ? static_cast<int>(power) : smooth(least);
}

Extent extent_of(const ConvProblem& problem) {
  const int rows = smooth(problem.p() + problem.r - 1), columns = smooth_columns(problem.q() + problem.s - 1);
  return {rows, columns, 2 * (columns / 2 + 1)};
}

/// @param padded [batch][extent.rows][extent.pitch]  @param over the image, its outputs as many as the extent's floats
__global__ void pad_images(const float* input, float* padded, Image over, Extent extent, int used_rows,
                           int used_columns) {
  const BlockTile tile = block_tile(over, kHeight, kWidth);
  const int x = tile.x + threadIdx.x;
  if (tile.image >= over.batch || x >= extent.pitch) return;
  const int j = x < used_columns ? border_index(x - over.pad_x, over.width, over.padding) : -1;
  const float* in = input + tile.image * input_pixels(over);
  float* out = padded + tile.image * extent.floats();
  float pixels[kEach];
  UNROLL
  for (int k = 0; k < kEach; ++k) {
    const int y = tile.y + k * kThreadRows + threadIdx.y;
    const int i = y < used_rows ? border_index(y - over.pad_y, over.height, over.padding) : -1;
    pixels[k] = i < 0 || j < 0 ? 0.0f : in[static_cast<std::int64_t>(i) * over.width + j];
  }
  UNROLL
  for (int k = 0; k < kEach; ++k) {
    const int y = tile.y + k * kThreadRows + threadIdx.y;
    if (y < extent.rows) out[static_cast<std::int64_t>(y) * extent.pitch + x] = pixels[k];
  }
}

/// @param filter [rows][columns]  @param padded [extent.rows][extent.pitch], zeroed
__global__ void place_filter(const float* filter, float* padded, Image image, Extent extent) {
  for (int r = threadIdx.y; r < image.rows; r += blockDim.y)
    for (int s = threadIdx.x; s < image.columns; s += blockDim.x)
      padded[static_cast<std::int64_t>(r) * extent.pitch + s] = filter[r * image.columns + s];
}

/// Replaces the spectrum by its conjugate times `scale`.
__global__ void conjugate(float2* spectrum, std::int64_t count, float scale) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) spectrum[i] = {spectrum[i].x * scale, -spectrum[i].y * scale};
}

/// @param spectra [batch][count]  @param filter [count]
__global__ void multiply(float2* spectra, const float2* filter, std::int64_t count, int batch) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const float2 b = filter[i];
  for (int image = blockIdx.y; image < batch; image += gridDim.y) {
    const float2 a = spectra[image * count + i];
    spectra[image * count + i] = {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};
  }
}

/// @param padded [batch][extent.rows][extent.pitch]
__global__ void crop_images(const float* padded, float* output, Image image, Extent extent) {
  const BlockTile tile = block_tile(image, kHeight, kWidth);
  const int x = tile.x + threadIdx.x;
  if (tile.image >= image.batch || x >= image.out_width) return;
  const float* in = padded + tile.image * extent.floats();
  float* out = output + tile.image * output_pixels(image);
  UNROLL
  for (int k = 0; k < kEach; ++k) {
    const int y = tile.y + k * kThreadRows + threadIdx.y;
    if (y < image.out_height)
      out[static_cast<std::int64_t>(y) * image.out_width + x] = in[static_cast<std::int64_t>(y) * extent.pitch + x];
  }
}

// The module has a CUDA runtime of its own, and with it its own checks.
void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw DeviceError(std::string(what) + " failed: " + cudaGetErrorString(status));
}
void require(cufftResult status, const char* what) {
  if (status != CUFFT_SUCCESS) throw DeviceError(std::string(what) + " failed: cuFFT says " + std::to_string(status));
}

/// Device memory with an owner.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer() { cudaFree(floats_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void allocate(std::int64_t count) {
    cudaFree(std::exchange(floats_, nullptr));
    require(cudaMalloc(&floats_, static_cast<std::size_t>(count) * sizeof(float)), "allocating memory for the FFT");
  }
  float* floats() const { return floats_; }
  float2* spectrum() const { return reinterpret_cast<float2*>(floats_); }

 private:
  float* floats_ = nullptr;
};

/// A plan of cuFFT with an owner.
class Plan {
 public:
  Plan() = default;
  ~Plan() {
    if (made_) cufftDestroy(handle_);
  }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// @param type CUFFT_R2C or CUFFT_C2R, in place
  void make(const Extent& extent, cufftType type, int batch) {
    int size[] = {extent.rows, extent.columns};
    int real[] = {extent.rows, extent.pitch}, complex[] = {extent.rows, extent.pitch / 2};
    const int real_step = static_cast<int>(extent.floats()), complex_step = real_step / 2;
    const bool forward = type == CUFFT_R2C;
    if (made_) cufftDestroy(handle_);
    made_ = false;
    require(cufftPlanMany(&handle_, 2, size, forward ? real : complex, 1, forward ? real_step : complex_step,
                          forward ? complex : real, 1, forward ? complex_step : real_step, type, batch),
            "planning an FFT");
    made_ = true;
  }
  void forward(const Buffer& buffer, Stream stream) const {
    require(cufftSetStream(handle_, stream), "an FFT's stream");
    require(cufftExecR2C(handle_, buffer.floats(), buffer.spectrum()), "the forward FFT");
  }
  void inverse(const Buffer& buffer, Stream stream) const {
    require(cufftSetStream(handle_, stream), "an FFT's stream");
    require(cufftExecC2R(handle_, buffer.spectrum(), buffer.floats()), "the inverse FFT");
  }
  std::int64_t work_bytes() const {
    std::size_t bytes = 0;
    require(cufftGetSize(handle_, &bytes), "asking for an FFT's work area");
    return static_cast<std::int64_t>(bytes);
  }

 private:
  cufftHandle handle_ = 0;
  bool made_ = false;
};

class FftConvolution final : public Stage {
  const char* library() const override {
    static const std::string name = [] {
      std::string text = "cuFFT";
      for (const auto part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
        int value = 0;
        require(cufftGetProperty(part, &value), "asking for the version");
        text += (part == MAJOR_VERSION ? " " : ".") + std::to_string(value);
      }
      return text;
    }();
    return name.c_str();
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_image(problem);
    if (!verdict.accepted()) return verdict;
    const std::int64_t floats = extent_of(problem).floats();
    if (floats > INT32_MAX / problem.n)
      return Verdict::refuse("the FFT indexes its buffer with 32 bits: at most {} floats; got {} images of {}",
                             INT32_MAX, problem.n, floats);
    return Verdict::accept();
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Image image = image_of(problem);
    const Extent extent = extent_of(problem);
    const std::int64_t count = extent.floats() / 2;
    images_.allocate(extent.floats() * image.batch);
    filter_.allocate(extent.floats());
    forward_.make(extent, CUFFT_R2C, image.batch);
    inverse_.make(extent, CUFFT_C2R, image.batch);

    Plan plan;
    plan.make(extent, CUFFT_R2C, 1);
    require(cudaMemsetAsync(filter_.floats(), 0, static_cast<std::size_t>(extent.floats()) * sizeof(float), stream),
            "clearing the filter's buffer");
    place_filter<<<1, dim3(kWidth, kThreadRows), 0, stream>>>(tensors.filter, filter_.floats(), image, extent);
    plan.forward(filter_, stream);
    conjugate<<<blocks(count), kThreads, 0, stream>>>(filter_.spectrum(), count,
                                                      1.0f / static_cast<float>(extent.points()));
    require(cudaStreamSynchronize(stream), "transforming the filter");  // before its plan goes
    state_memory(static_cast<std::int64_t>(sizeof(float)) * extent.floats() * (image.batch + 1) +
                 forward_.work_bytes() + inverse_.work_bytes());
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Image image = image_of(problem);
    const Extent extent = extent_of(problem);
    const std::int64_t count = extent.floats() / 2;
    Image padded = image;
    padded.out_height = extent.rows, padded.out_width = extent.pitch;
    const dim3 block(kWidth, kThreadRows);

    // 1.
    pad_images<<<image_grid(padded, kHeight, kWidth), block, 0, stream>>>(tensors.input, images_.floats(), padded,
                                                                          extent, image.out_height + image.rows - 1,
                                                                          image.out_width + image.columns - 1);
    // 2.
    forward_.forward(images_, stream);
    // 3.
    multiply<<<dim3(blocks(count), static_cast<unsigned>(std::min(image.batch, 65535))), kThreads, 0, stream>>>(
        images_.spectrum(), filter_.spectrum(), count, image.batch);
    // 4.
    inverse_.inverse(images_, stream);
    // 5.
    crop_images<<<image_grid(image, kHeight, kWidth), block, 0, stream>>>(images_.floats(), tensors.output, image,
                                                                          extent);
    require(cudaGetLastError(), "a kernel of the FFT convolution");
  }

  // A bound of the norm, not of each output: ||computed - exact|| <= n u ||exact||, where a transform of N points has
  // n = 6.7 log2(N) (Higham, Accuracy and Stability, 2nd ed., theorem 24.2), and there are three. The error spreads
  // over all outputs, the small ones too. It does so evenly with normal tensors; where the filter takes away most of
  // the image (an edge filter on a bright picture, say), more of it is left than this bound allows.
  ErrorModel error_model(const ConvProblem& problem, const float*) const override {
    constexpr int kPerFactorOfTwo = 20;
    ErrorModel errors = static_cast<std::int64_t>(
        std::ceil(kPerFactorOfTwo * std::log2(static_cast<double>(extent_of(problem).points()))));
    errors.spread = true;
    return errors;
  }

  static unsigned blocks(std::int64_t count) { return static_cast<unsigned>((count + kThreads - 1) / kThreads); }

  Plan forward_, inverse_;
  Buffer images_, filter_;  ///< [batch][rows][pitch], [rows][pitch]; spectra in the same place
};

}  // namespace
}  // namespace convladder

extern "C" convladder::Stage* convladder_cufft_stage() { return new convladder::FftConvolution; }

/// @file
/// The module `convladder_npp`: NPP's filter of images of floats, and every call of NPP. NPP takes one image at a time.
/// What lies outside it NPP adds in a copy, which is part of the time.
#include <cuda_runtime_api.h>
#include <nppcore.h>
#include <nppi_data_exchange_and_initialization.h>
#include <nppi_filtering_functions.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/kernel/tracks/image.hpp"
#include "common/stage/workspace.hpp"

namespace convladder {
namespace {

void require(NppStatus status, const char* what) {
  if (status != NPP_NO_ERROR)  // warnings are above it, and mean that something was left undone
    throw DeviceError(std::string("NPP: ") + what + " ended with status " + std::to_string(status));
}

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw DeviceError(std::string("NPP: ") + what + ": " + cudaGetErrorString(status));
}

NppStreamContext context_of(Stream stream) {
  NppStreamContext context{};
  context.hStream = stream;
  require(cudaGetDevice(&context.nCudaDeviceId), "asking for the device");
  const auto ask = [&](int* value, cudaDeviceAttr attribute) {
    require(cudaDeviceGetAttribute(value, attribute, context.nCudaDeviceId), "asking the device");
  };
  int shared = 0;
  ask(&context.nMultiProcessorCount, cudaDevAttrMultiProcessorCount);
  ask(&context.nMaxThreadsPerMultiProcessor, cudaDevAttrMaxThreadsPerMultiProcessor);
  ask(&context.nMaxThreadsPerBlock, cudaDevAttrMaxThreadsPerBlock);
  ask(&shared, cudaDevAttrMaxSharedMemoryPerBlock);
  ask(&context.nCudaDevAttrComputeCapabilityMajor, cudaDevAttrComputeCapabilityMajor);
  ask(&context.nCudaDevAttrComputeCapabilityMinor, cudaDevAttrComputeCapabilityMinor);
  context.nSharedMemPerBlock = static_cast<std::size_t>(shared);
  return context;
}

class NppFilter final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_image(problem);
    if (!verdict.accepted()) return verdict;
    const bool padded = problem.pad_h > 0 || problem.pad_w > 0;
    if (padded && problem.padding == Padding::reflect)
      return Verdict::refuse("NPP's filter of floats repeats the edge or has zeros outside; got reflect");
    // The last rows and columns came out wrong, wherever the anchor is, on an H100; why is not known. 1 x 1, 3 x 5,
    // 7 x 7, 11 x 4 and 11 x 11 were right.
    if (problem.r == problem.s && (problem.r == 3 || problem.r == 5))
      return Verdict::refuse("NPP's filter of {} x {} floats came out wrong in the last rows and columns", problem.r,
                             problem.s);
    return verdict;
  }

  const char* library() const override {
    static const std::string name = [] {
      const NppLibraryVersion* version = nppGetLibVersion();
      return "NPP " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
             std::to_string(version->build);
    }();
    return name.c_str();
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Image image = image_of(problem);
    // output(x) = sum over i of filter(i) * input(x + anchor - i): NPP's filter is the reverse of ours, and its anchor
    // the last tap.
    const auto count = static_cast<std::size_t>(problem.filter_size());
    std::vector<float> filter(count), reversed(count);
    require(cudaStreamSynchronize(stream), "waiting for the filter");
    require(cudaMemcpy(filter.data(), tensors.filter, count * sizeof(float), cudaMemcpyDeviceToHost), "the filter");
    for (std::size_t i = 0; i < count; ++i) reversed[i] = filter[count - 1 - i];
    filter_.allocate(problem.filter_size());
    require(cudaMemcpy(filter_.floats(), reversed.data(), count * sizeof(float), cudaMemcpyHostToDevice), "the filter");
    if (pads(image)) padded_.allocate(std::int64_t{image.batch} * padded_rows(image) * padded_columns(image));
    context_ = context_of(stream);
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    const Image image = image_of(problem);
    context_.hStream = stream;
    for (int n = 0; n < image.batch; ++n) {
      const float* input = tensors.input + std::int64_t{n} * image.height * image.width;
      if (pads(image)) input = pad(image, input, n);
      float* output = tensors.output + std::int64_t{n} * image.out_height * image.out_width;
      require(nppiFilter_32f_C1R_Ctx(input, padded_columns(image) * kFloat, output, image.out_width * kFloat,
                                     {image.out_width, image.out_height}, filter_.floats(), {image.columns, image.rows},
                                     {image.columns - 1, image.rows - 1}, context_),
              "its filter");
    }
  }

  /// @return image n with what lies outside
  const float* pad(const Image& image, const float* input, int n) const {
    const NppiSize size{image.width, image.height}, whole{padded_columns(image), padded_rows(image)};
    float* padded = padded_.floats() + std::int64_t{n} * whole.width * whole.height;
    if (image.padding == Padding::zero) {
      require(nppiCopyConstBorder_32f_C1R_Ctx(input, size.width * kFloat, size, padded, whole.width * kFloat, whole,
                                              image.pad_y, image.pad_x, 0, context_),
              "its copy with a border of zeros");
    } else {
      require(nppiCopyReplicateBorder_32f_C1R_Ctx(input, size.width * kFloat, size, padded, whole.width * kFloat, whole,
                                                  image.pad_y, image.pad_x, context_),
              "its copy with a border of the edge");
    }
    return padded;
  }

  static bool pads(const Image& image) { return image.pad_y > 0 || image.pad_x > 0; }
  static int padded_rows(const Image& image) { return image.height + 2 * image.pad_y; }
  static int padded_columns(const Image& image) { return image.width + 2 * image.pad_x; }

  static constexpr int kFloat = static_cast<int>(sizeof(float));
  NppStreamContext context_{};
  Workspace filter_{*this, "NPP's filter"}, padded_{*this, "NPP's padded images"};
};

}  // namespace
}  // namespace convladder

extern "C" convladder::Stage* convladder_npp_stage() { return new convladder::NppFilter; }

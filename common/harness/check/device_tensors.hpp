/// @file
/// The tensors of a problem in device memory, in the element type and layout that a stage takes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/stage/problem.hpp"

namespace convladder {

/// What the input's and the output's elements are.
enum class Elements {
  floats,       ///< fp32, NCHW
  floats_nhwc,  ///< fp32, NHWC
  halves,       ///< fp16, NHWC
  bf16s,        ///< bf16, NHWC
  bytes,        ///< int8 (quantise.hpp), NHWC
};

/// "fp32 NCHW", "fp32 NHWC", "fp16 NHWC", "bf16 NHWC", "int8 NHWC".
std::string_view to_string(Elements elements);

/// Input, filter and output, the first two filled in, and what an epilogue adds.
class DeviceTensors {
 public:
  /// @param input (n, c, h, w), rounded where elements are halves, bf16 or bytes  @param filter (k, c/groups, r, s)
  /// @param output_step of bytes
  /// @throws MachineError if the memory is not there
  DeviceTensors(const ConvProblem& problem, Elements elements, const float* input, const float* filter,
                float output_step = 1);

  /// The same with bias and residual, where the problem has them.
  DeviceTensors(const ConvProblem& problem, Elements elements, const HostTensors& tensors, float output_step = 1);

  /// Others on the device, with the same input, filter, bias and residual, and an output of their own.
  DeviceTensors copy() const;

  /// Another input. @param input (n, c, h, w)
  void set_input(const float* input);
  /// Another residual, of a problem that has one. @param residual (n, k, p, q)
  void set_residual(const float* residual);
  Tensors view() const;                                   ///< for a stage
  std::int64_t bytes() const;                             ///< of all of them
  const DeviceBuffer& output() const { return output_; }  ///< as the stage writes it
  void poison_output();                                   ///< with kPoison, kHalfPoison or kInt8Poison
  /// Copies the output to the host. @param output (n, k, p, q)
  void download_output(float* output) const;
  /// The output from a copy of its bytes; every poison becomes kPoison. @param output (n, k, p, q)
  void unpack_output(const std::byte* bytes, float* output) const;
  /// Names of the tensors with a damaged guard band.
  std::vector<const char*> damaged() const;

 private:
  DeviceTensors() = default;

  float upload(const float* values, std::int64_t channels, std::int64_t pixels, DeviceBuffer& buffer) const;

  ConvProblem problem_;
  Elements elements_ = Elements::floats;
  float input_step_ = 1, output_step_ = 1, residual_step_ = 1;
  DeviceBuffer input_, filter_, output_;
  std::optional<DeviceBuffer> bias_, residual_;
};

/// The index of the first finite number that becomes infinite where it is rounded to such elements, if there is one.
std::optional<std::size_t> first_beyond(Elements elements, const std::vector<float>& values);

}  // namespace convladder

#include "common/harness/check/device_tensors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "common/harness/check/half_bits.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/stage/half_convert.hpp"

namespace convladder {
namespace {

std::size_t bytes_of(std::int64_t count, Elements elements) {
  const std::size_t size = elements == Elements::halves || elements == Elements::bf16s ? sizeof(std::uint16_t)
                           : elements == Elements::bytes                               ? sizeof(std::int8_t)
                                                                                       : sizeof(float);
  return static_cast<std::size_t>(count) * size;
}

/// Calls `convert(from, to)` for each element of `n` images: `from` is its place in NCHW and `to` its place in NHWC.
template <class Convert>
void for_each_element(std::int64_t n, std::int64_t c, std::int64_t pixels, const Convert& convert) {
  constexpr std::int64_t kPixels = 64;  // at once: what they touch in either layout stays in the first-level cache
  const std::int64_t pieces = (pixels - 1) / kPixels + 1;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (n * c * pixels >= 1 << 14)
#endif
  for (std::int64_t piece = 0; piece < n * pieces; ++piece) {
    const std::int64_t image = piece / pieces, begin = piece % pieces * kPixels;
    const std::int64_t end = std::min(begin + kPixels, pixels);
    for (std::int64_t channel = 0; channel < c; ++channel)
      for (std::int64_t pixel = begin; pixel < end; ++pixel)
        convert((image * c + channel) * pixels + pixel, (image * pixels + pixel) * c + channel);
  }
}

}  // namespace

std::string_view to_string(Elements elements) {
  constexpr std::string_view kNames[] = {"fp32 NCHW", "fp32 NHWC", "fp16 NHWC", "bf16 NHWC", "int8 NHWC"};
  return kNames[static_cast<int>(elements)];
}

DeviceTensors::DeviceTensors(const ConvProblem& problem, Elements elements, const float* input, const float* filter,
                             float output_step)
    : problem_(problem),
      elements_(elements),
      output_step_(output_step),
      input_(bytes_of(problem.input_size(), elements), "input"),
      filter_(bytes_of(problem.filter_size(), Elements::floats), "filter"),
      output_(bytes_of(problem.output_size(), elements), "output") {
  filter_.upload(filter);
  set_input(input);
}

DeviceTensors::DeviceTensors(const ConvProblem& problem, Elements elements, const HostTensors& tensors,
                             float output_step)
    : DeviceTensors(problem, elements, tensors.input.data(), tensors.filter.data(), output_step) {
  if (problem.has_bias()) {
    bias_.emplace(bytes_of(problem.k, Elements::floats), "bias");
    bias_->upload(tensors.bias.data());
  }
  if (problem.has_residual()) {
    residual_.emplace(bytes_of(problem.output_size(), elements), "residual");
    set_residual(tensors.residual.data());
  }
}

DeviceTensors DeviceTensors::copy() const {
  DeviceTensors result;
  result.problem_ = problem_;
  result.elements_ = elements_;
  result.input_step_ = input_step_;
  result.output_step_ = output_step_;
  result.residual_step_ = residual_step_;
  result.input_ = input_.copy();
  result.filter_ = filter_.copy();
  result.output_ = DeviceBuffer(output_.bytes(), "output");
  if (bias_) result.bias_ = bias_->copy();
  if (residual_) result.residual_ = residual_->copy();
  return result;
}

void DeviceTensors::set_input(const float* input) {
  input_step_ = upload(input, problem_.c, problem_.h * problem_.w, input_);
}

void DeviceTensors::set_residual(const float* residual) {
  residual_step_ = upload(residual, problem_.k, problem_.p() * problem_.q(), residual_.value());
}

/// Fills a buffer of the stage's elements. @param values (n, channels, pixels)  @return the step of bytes
float DeviceTensors::upload(const float* values, std::int64_t channels, std::int64_t pixels,
                            DeviceBuffer& buffer) const {
  const std::int64_t size = problem_.n * channels * pixels;
  if (elements_ == Elements::floats) {
    buffer.upload(values);
    return 1;
  }
  const auto upload_as = [&]<class Element>(Element, const auto& convert) {
    const auto elements_of_nhwc = std::make_unique_for_overwrite<Element[]>(static_cast<std::size_t>(size));
    for_each_element(problem_.n, channels, pixels, [&](std::int64_t from, std::int64_t to) {
      elements_of_nhwc[static_cast<std::size_t>(to)] = convert(values[from]);
    });
    buffer.upload(elements_of_nhwc.get());
  };
  if (elements_ == Elements::floats_nhwc) {
    upload_as(float{}, [](float value) { return value; });
  } else if (elements_ == Elements::halves) {
    upload_as(std::uint16_t{}, [](float value) { return to_half_bits(value); });
  } else if (elements_ == Elements::bf16s) {
    upload_as(std::uint16_t{}, [](float value) { return bf16_bits(value); });
  } else {
    const float step = int8_step(std::span(values, static_cast<std::size_t>(size)));
    upload_as(std::int8_t{}, [step](float value) { return int8_of(value, step); });
    return step;
  }
  return 1;
}

Tensors DeviceTensors::view() const {
  Tensors tensors{nullptr, filter_.floats(), nullptr};
  if (bias_) tensors.bias = bias_->floats();
  if (elements_ == Elements::halves) {
    tensors.half_input = static_cast<const __half*>(input_.data());
    tensors.half_output = static_cast<__half*>(output_.data());
    if (residual_) tensors.half_residual = static_cast<const __half*>(residual_->data());
  } else if (elements_ == Elements::bf16s) {
    tensors.bf16_input = static_cast<const bfloat16*>(input_.data());
    tensors.bf16_output = static_cast<bfloat16*>(output_.data());
  } else if (elements_ == Elements::bytes) {
    tensors.byte_input = static_cast<const std::int8_t*>(input_.data());
    tensors.byte_output = static_cast<std::int8_t*>(output_.data());
    tensors.input_step = input_step_;
    tensors.output_step = output_step_;
    if (residual_) tensors.byte_residual = static_cast<const std::int8_t*>(residual_->data());
    tensors.residual_step = residual_step_;
  } else {
    tensors.input = input_.floats();
    tensors.output = output_.floats();
  }
  return tensors;
}

void DeviceTensors::poison_output() {
  constexpr std::uint32_t kFourBytes = 0x01010101u * static_cast<std::uint8_t>(kInt8Poison);
  output_.poison(elements_ == Elements::bytes ? kFourBytes : kPoison);
}

std::int64_t DeviceTensors::bytes() const {
  return static_cast<std::int64_t>(input_.bytes() + filter_.bytes() + output_.bytes() + (bias_ ? bias_->bytes() : 0) +
                                   (residual_ ? residual_->bytes() : 0));
}

void DeviceTensors::download_output(float* output) const {
  if (elements_ == Elements::floats) return output_.download(output);
  const auto bytes = std::make_unique_for_overwrite<std::byte[]>(output_.bytes());
  output_.download(bytes.get());
  unpack_output(bytes.get(), output);
}

void DeviceTensors::unpack_output(const std::byte* bytes, float* output) const {
  if (elements_ == Elements::floats) {
    std::memcpy(output, bytes, output_.bytes());
    return;
  }
  for_each_element(problem_.n, problem_.k, problem_.p() * problem_.q(), [&](std::int64_t to, std::int64_t from) {
    if (elements_ == Elements::floats_nhwc) {
      std::memcpy(output + to, bytes + from * static_cast<std::int64_t>(sizeof(float)), sizeof(float));
      return;
    }
    if (elements_ == Elements::bytes) {
      const auto steps = static_cast<std::int8_t>(bytes[from]);
      output[to] = steps == kInt8Poison ? std::bit_cast<float>(kPoison) : static_cast<float>(steps) * output_step_;
      return;
    }
    std::uint16_t bits;
    std::memcpy(&bits, bytes + from * static_cast<std::int64_t>(sizeof bits), sizeof bits);
    const float value = elements_ == Elements::bf16s ? bf16_value(bits) : from_half_bits(bits);
    output[to] = bits == kHalfPoison ? std::bit_cast<float>(kPoison) : value;
  });
}

std::vector<const char*> DeviceTensors::damaged() const {
  std::vector<const char*> names;
  if (!input_.guards_intact()) names.push_back("input");
  if (!filter_.guards_intact()) names.push_back("filter");
  if (!output_.guards_intact()) names.push_back("output");
  if (bias_ && !bias_->guards_intact()) names.push_back("bias");
  if (residual_ && !residual_->guards_intact()) names.push_back("residual");
  return names;
}

std::optional<std::size_t> first_beyond(Elements elements, const std::vector<float>& values) {
  if (elements != Elements::halves && elements != Elements::bf16s) return std::nullopt;
  const double overflow = elements == Elements::halves ? kHalfOverflow : kBf16Overflow;
  std::size_t first = values.size();
#ifdef _OPENMP
#pragma omp parallel for schedule(static) reduction(min : first) if (values.size() >= 1 << 14)
#endif
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) && std::abs(static_cast<double>(values[i])) >= overflow) first = std::min(first, i);
  }
  if (first == values.size()) return std::nullopt;
  return first;
}

}  // namespace convladder

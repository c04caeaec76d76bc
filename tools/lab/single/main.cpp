#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <vector>

namespace {

using convladder::ConvProblem;

enum class Elements { floats, halves, bytes };
constexpr Elements kElements = Elements::ELEMENTS;  // of input and output
constexpr bool kChannelsLast = CHANNELS_LAST;       // NHWC instead of NCHW
constexpr double kBound = BOUND;                    // of the relative RMS error
constexpr int kLaunches = 20;                       // that are timed

// The sum of every output in double precision, from the inputs that the stage reads.
std::vector<double> reference(const ConvProblem& x, const std::vector<float>& input, const std::vector<float>& filter) {
  const auto border = [&](std::int64_t i, std::int64_t size) -> std::int64_t {
    if (i >= 0 && i < size) return i;
    if (x.padding == convladder::Padding::zero) return -1;
    if (x.padding == convladder::Padding::replicate) return i < 0 ? 0 : size - 1;
    return i < 0 ? -i : 2 * (size - 1) - i;
  };
  std::vector<double> output;
  const std::int64_t channels = x.c / x.groups;
  for (std::int64_t n = 0; n < x.n; ++n)
    for (std::int64_t k = 0; k < x.k; ++k)
      for (std::int64_t p = 0; p < x.p(); ++p)
        for (std::int64_t q = 0; q < x.q(); ++q) {
          double sum = 0;
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t r = 0; r < x.r; ++r)
              for (std::int64_t s = 0; s < x.s; ++s) {
                const std::int64_t i = border(p * x.stride_h - x.pad_h + r * x.dilation_h, x.h);
                const std::int64_t j = border(q * x.stride_w - x.pad_w + s * x.dilation_w, x.w);
                if (i < 0 || j < 0) continue;
                const std::int64_t channel = k / (x.k / x.groups) * channels + c;
                sum += static_cast<double>(input[((n * x.c + channel) * x.h + i) * x.w + j]) *
                       filter[((k * channels + c) * x.r + r) * x.s + s];
              }
          output.push_back(sum);
        }
  return output;
}

// Where an element of (n, c, h, w) lies in the stage's layout.
std::size_t place(std::size_t element, std::int64_t c, std::int64_t h, std::int64_t w) {
  if (!kChannelsLast) return element;
  const auto plane = static_cast<std::size_t>(h * w), channels = static_cast<std::size_t>(c);
  return (element / plane / channels * plane + element % plane) * channels + element / plane % channels;
}

template <class T>
float largest(const std::vector<T>& values) {
  double most = 0;
  for (const T value : values) most = std::max(most, std::fabs(static_cast<double>(value)));
  return static_cast<float>(most);
}

#if defined(__CUDACC__)
// An array in device memory.
class Array {
 public:
  explicit Array(std::size_t bytes) : bytes_(bytes) { convladder::check_cuda(cudaMalloc(&data_, bytes), "memory"); }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  void upload(const void* from) {
    convladder::check_cuda(cudaMemcpy(data_, from, bytes_, cudaMemcpyDefault), "upload");
  }
  void download(void* to) { convladder::check_cuda(cudaMemcpy(to, data_, bytes_, cudaMemcpyDefault), "download"); }
  void poison() {
    convladder::check_cuda(cudaMemset(data_, kElements == Elements::bytes ? 0x80 : 0xff, bytes_), "fill");
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

void wait() { convladder::check_cuda(cudaDeviceSynchronize(), "kernels"); }

// Microseconds of one call.
template <class Work>
double time_of(const Work& work) {
  cudaEvent_t begin, end;
  convladder::check_cuda(cudaEventCreate(&begin), "event");
  convladder::check_cuda(cudaEventCreate(&end), "event");
  convladder::check_cuda(cudaEventRecord(begin), "event");
  for (int i = 0; i < kLaunches; ++i) work();
  convladder::check_cuda(cudaEventRecord(end), "event");
  convladder::check_cuda(cudaEventSynchronize(end), "event");
  float milliseconds = 0;
  convladder::check_cuda(cudaEventElapsedTime(&milliseconds, begin, end), "event");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return 1000.0 * milliseconds / kLaunches;
}

std::uint16_t half_bits(float value) { return __half_as_ushort(__float2half_rn(value)); }
float value_of_half(std::uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
#else
class Array {
 public:
  explicit Array(std::size_t bytes) : bytes_(bytes), data_(bytes / 4 + 1) {}
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_.data());
  }
  void upload(const void* from) { std::memcpy(data_.data(), from, bytes_); }
  void download(void* to) { std::memcpy(to, data_.data(), bytes_); }
  void poison() { std::memset(data_.data(), 0xff, bytes_); }

 private:
  std::size_t bytes_;
  std::vector<float> data_;
};

void wait() {}

// Microseconds of one call.
template <class Work>
double time_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kLaunches; ++i) work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / kLaunches;
}

std::uint16_t half_bits(float) { return 0; }
float value_of_half(std::uint16_t) { return 0; }
#endif

// One line: the shape, the error, the time. Whether it is right.
bool run(const ConvProblem& x) {
  std::printf("n=%lld c=%lld h=%lld w=%lld k=%lld r=%lld s=%lld pad=%lld,%lld stride=%lld groups=%lld padding=%d: ",
              static_cast<long long>(x.n), static_cast<long long>(x.c), static_cast<long long>(x.h),
              static_cast<long long>(x.w), static_cast<long long>(x.k), static_cast<long long>(x.r),
              static_cast<long long>(x.s), static_cast<long long>(x.pad_h), static_cast<long long>(x.pad_w),
              static_cast<long long>(x.stride_h), static_cast<long long>(x.groups), static_cast<int>(x.padding));
  // Normal inputs and filters. A filter of one channel is the product of a column and a row, which stage 08 wants.
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> input(static_cast<std::size_t>(x.input_size())), filter(static_cast<std::size_t>(x.filter_size()));
  for (float& value : input) value = normal(random);
  for (float& value : filter) value = normal(random);
  if (x.c == 1 && x.k == 1) {
    std::vector<float> column(static_cast<std::size_t>(x.r)), row(static_cast<std::size_t>(x.s));
    for (float& value : column) value = normal(random);
    for (float& value : row) value = normal(random);
    for (std::size_t i = 0; i < filter.size(); ++i) filter[i] = column[i / row.size()] * row[i % row.size()];
  }

  // The input in the stage's element type; the reference reads the rounded one.
  convladder::Tensors tensors{};
  const std::size_t width = kElements == Elements::floats ? 4 : kElements == Elements::halves ? 2 : 1;
  std::vector<char> bytes(input.size() * width);
  if (kElements == Elements::bytes) tensors.input_step = largest(input) / 127;
  for (std::size_t i = 0; i < input.size(); ++i) {
    char* const to = &bytes[place(i, x.c, x.h, x.w) * width];
    if (kElements == Elements::halves) {
      const std::uint16_t half = half_bits(input[i]);
      input[i] = value_of_half(half);
      std::memcpy(to, &half, width);
    } else if (kElements == Elements::bytes) {
      const auto steps = static_cast<std::int8_t>(std::lround(input[i] / tensors.input_step));
      input[i] = steps * tensors.input_step;
      std::memcpy(to, &steps, width);
    } else {
      std::memcpy(to, &input[i], width);
    }
  }
  const std::vector<double> exact = reference(x, input, filter);
  if (kElements == Elements::bytes) tensors.output_step = largest(exact) / 127;

  const std::unique_ptr<convladder::Stage> stage(make_stage());
  const convladder::DeviceLimits limits = convladder::device_limits();
  convladder::Verdict verdict = stage->check(x, limits);
  if (verdict.accepted()) verdict = stage->check_filter(x, filter.data());
  USE_CONFIGURATION
  if (!verdict.accepted()) {
    std::printf("refused: %s\n", verdict.reason());
    return false;
  }
  Array in(bytes.size()), taps(filter.size() * 4), out(exact.size() * width);
  in.upload(bytes.data());
  taps.upload(filter.data());
  out.poison();
  tensors.filter = taps.as<float>();
  if (kElements == Elements::floats) {
    tensors.input = in.as<float>();
    tensors.output = out.as<float>();
  } else if (kElements == Elements::halves) {
    tensors.half_input = in.as<__half>();
    tensors.half_output = out.as<__half>();
  } else {
    tensors.byte_input = in.as<std::int8_t>();
    tensors.byte_output = out.as<std::int8_t>();
  }
  stage->prepare(x, tensors, nullptr);
  wait();
  stage->launch(x, tensors, nullptr);
  wait();
  const double time = time_of([&] { stage->launch(x, tensors, nullptr); });

  // What the last launch left.
  std::vector<char> result(exact.size() * width);
  out.download(result.data());
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const char* const from = &result[place(i, x.k, x.p(), x.q()) * width];
    double value = 0;
    if (kElements == Elements::halves) {
      std::uint16_t half;
      std::memcpy(&half, from, width);
      value = value_of_half(half);
    } else if (kElements == Elements::bytes) {
      value = static_cast<double>(static_cast<signed char>(*from)) * tensors.output_step;
    } else {
      float single;
      std::memcpy(&single, from, width);
      value = single;
    }
    error += (value - exact[i]) * (value - exact[i]);
    norm += exact[i] * exact[i];
  }
  error = std::sqrt(error / norm);
  const bool right = error <= kBound;  // no NaN is
  std::printf("error %.2g (bound %.2g), %.2f us: %s\n", error, kBound, time, right ? "right" : "WRONG");
  return right;
}

// A problem of n, c, h, w, k, r, s; padded so that the output is as large as the input where the stride is 1.
ConvProblem shape(int n, int c, int h, int w, int k, int r, int s, convladder::Padding padding) {
  ConvProblem x;
  x.n = n, x.c = c, x.h = h, x.w = w, x.k = k, x.r = r, x.s = s;
  x.pad_h = (r - 1) / 2, x.pad_w = (s - 1) / 2;
  x.padding = padding;
  return x;
}

}  // namespace

int main() {
  using convladder::Padding;
  std::vector<ConvProblem> shapes = {SHAPES};
  CHANGE_SHAPES
  bool right = true;
  try {
    for (const ConvProblem& x : shapes) right = run(x) && right;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 2;
  }
  return right ? 0 : 1;
}

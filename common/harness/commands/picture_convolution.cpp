#include "common/harness/commands/picture_convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/device/host.hpp"
#include "common/harness/device/timing.hpp"
#include "common/harness/run/runner.hpp"
#include "common/kernel/tracks/byte_images.hpp"

namespace convladder {
namespace {

/// fp32 holds every integer below.
constexpr double kExactIntegers = 0x1p24;
/// Samples that are compared with the host's, about.
constexpr std::int64_t kCompared = 4096;
/// How long one replay of a timed graph should last.
constexpr double kGroupUs = 2000;

/// Device memory of a sample: in and out; as fp32 in, out and, in stage 08, between.
constexpr std::int64_t kDeviceBytes = 2, kDeviceFloatBytes = 12;
/// Host memory of a sample: in the file's form twice, as fp32 in and, for a magnitude, twice out.
constexpr std::int64_t kHostBytes = 16;

double magnitude_sum(const std::vector<float>& taps) {
  double sum = 0;
  for (const float tap : taps) sum += std::abs(static_cast<double>(tap));
  return sum;
}

bool all_integers(const std::vector<float>& taps) {
  return std::all_of(taps.begin(), taps.end(), [](float tap) { return tap == std::nearbyint(tap); });
}

/// The input index that padded position `i` reads along one dimension, or -1 where it reads zero. Written apart from
/// border.hpp, so that what is compared with the kernels does not share their errors.
std::int64_t source_index(std::int64_t i, std::int64_t size, Padding padding) {
  const std::int64_t last = size - 1;
  if (padding == Padding::replicate) return std::clamp<std::int64_t>(i, 0, last);
  if (padding == Padding::reflect) return last - std::abs(last - std::abs(i));
  return i < 0 || i > last ? -1 : i;
}

std::vector<std::int64_t> source_indices(std::int64_t outputs, std::int64_t taps, std::int64_t pad, std::int64_t size,
                                         Padding padding) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < outputs + taps - 1; ++i) indices.push_back(source_index(i - pad, size, padding));
  return indices;
}

/// One output in double, summed in the order of the taps. A product of a sample (16 bits) and a tap (24) is exact.
template <class Pixel>
class HostSum {
 public:
  /// @param planes (n, h, w)  Both must outlive this.
  HostSum(const ConvProblem& problem, const std::vector<Pixel>& planes, const std::vector<float>& taps)
      : problem_(problem),
        planes_(planes),
        taps_(taps),
        rows_(source_indices(problem.p(), problem.r, problem.pad_h, problem.h, problem.padding)),
        columns_(source_indices(problem.q(), problem.s, problem.pad_w, problem.w, problem.padding)) {}

  /// @param index in (n, p, q)
  double operator()(std::int64_t index) const {
    const std::int64_t x = index % problem_.q(), y = index / problem_.q() % problem_.p();
    const Pixel* const plane = planes_.data() + index / problem_.q() / problem_.p() * problem_.h * problem_.w;
    double sum = 0;
    for (std::int64_t r = 0; r < problem_.r; ++r) {
      const std::int64_t i = rows_[static_cast<std::size_t>(y + r)];
      if (i < 0) continue;
      for (std::int64_t s = 0; s < problem_.s; ++s) {
        const std::int64_t j = columns_[static_cast<std::size_t>(x + s)];
        if (j < 0) continue;
        sum += static_cast<double>(taps_[static_cast<std::size_t>(r * problem_.s + s)]) * plane[i * problem_.w + j];
      }
    }
    return sum;
  }

 private:
  const ConvProblem& problem_;
  const std::vector<Pixel>& planes_;
  const std::vector<float>& taps_;
  std::vector<std::int64_t> rows_, columns_;  // of the input, or -1, for each position that a window covers
};

/// The colour channels, one after the other.
template <class Pixel>
std::vector<Pixel> planes_of(const Picture& picture) {
  const std::int64_t pixels = picture.width * picture.height;
  std::vector<Pixel> planes(static_cast<std::size_t>(pixels * picture.colours()));
  for (std::int64_t c = 0; c < picture.colours(); ++c) {
    for (std::int64_t i = 0; i < pixels; ++i)
      planes[static_cast<std::size_t>(c * pixels + i)] = static_cast<Pixel>(picture.sample(i * picture.channels + c));
  }
  return planes;
}

/// Every `step`-th output is compared. Odd, so that a power of two across does not always meet the same column.
std::int64_t comparison_step(std::int64_t outputs) { return outputs / kCompared | 1; }

/// The stage on the filter's sets of taps, one after the other.
class PictureRun {
 public:
  PictureRun(const StageInfo& info, const ConvProblem& problem, const Picture& picture, const PictureFilter& filter)
      : info_(info), problem_(problem), filter_(filter), result_{picture, false, 0, {}, {}}, stage_(info.make()) {}

  FilteredPicture execute() {
    result_.as_bytes = filters_bytes(info_, picture(), filter_);
    if (result_.as_bytes) {
      filter_bytes();
    } else {
      filter_floats();
    }
    return std::move(result_);
  }

 private:
  Picture& picture() { return result_.picture; }
  double white() const { return result_.picture.white(); }

  /// floor(level + 1/2), saturated.
  int rounded(double level) const { return static_cast<int>(std::clamp(std::floor(level + 0.5), 0.0, white())); }

  /// The value that is rounded, from the sum or the two sums. Of integers it rounds as the exact value does: a quotient
  /// is a half, which a double holds, or at least 1 / (2 * 65 * 65) away from one; the root of an integer is no half,
  /// and comes as near as 2^-22, where the largest is 2^19 and a double's roundings take 2^-33.
  double level(double first, double second) const {
    return filter_.taps.size() == 1 ? first / filter_.divisor : std::sqrt(first * first + second * second);
  }

  /// What the stage may be off by in one output. In the worst case, unlike the checker: in an even area of a picture
  /// roundings are all alike, and do not cancel.
  double error_bound(const std::vector<float>& taps) const {
    const ErrorModel errors = stage_->error_model(problem_, taps.data());
    const double nu = static_cast<double>(errors.roundings) * 0x1p-24;
    const double bound = nu / (1 - nu) * magnitude_sum(taps) + errors.filter_error * static_cast<double>(taps.size());
    return bound * white() * (1 + 0x1p-20);  // the last for the host's own roundings, in double
  }

  std::string place(std::int64_t index) const {
    const std::int64_t q = problem_.q(), p = problem_.p();
    return fmt::format("channel {}, row {}, column {}", index / q / p, index / q % p, index % q);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DeviceError(fmt::format("{} gave a wrong picture, which was not written: {}", info_.folder, what));
  }

  /// Runs the stage on the planes. Times are added to the result's.
  /// @param planes (n, h, w)  @return (n, p, q)
  template <class Pixel>
  std::vector<Pixel> run(const std::vector<Pixel>& planes, const std::vector<float>& taps) {
    std::vector<Pixel> sums(static_cast<std::size_t>(problem_.output_size()));
    DeviceBuffer input(planes.size() * sizeof(Pixel), "input"), filter(taps.size() * sizeof(float), "filter"),
        output(sums.size() * sizeof(Pixel), "output");
    filter.upload(taps.data());
    const auto prepare = [&](Stream stream) {
      const bool floats = std::is_same_v<Pixel, float>;
      stage_->prepare(problem_,
                      {floats ? input.floats() : nullptr, filter.floats(), floats ? output.floats() : nullptr}, stream);
    };
    const auto launch = [&](Stream stream) {
      if constexpr (std::is_same_v<Pixel, float>) {
        stage_->launch(problem_, {input.floats(), filter.floats(), output.floats()}, stream);
      } else {
        dynamic_cast<ByteImageFilter&>(*stage_).launch_bytes(problem_, static_cast<const Pixel*>(input.data()),
                                                             static_cast<Pixel*>(output.data()),
                                                             static_cast<float>(filter_.divisor), stream);
      }
    };
    const auto filter_once = [&] {
      stage_.reset(info_.make());  // a new one for each set of tensors
      input.upload(planes.data());
      run_and_wait(prepare);
      run_and_wait(launch);
      output.download(sums.data());
    };
    output.poison();
    filter_once();
    if (backend() == Backend::gpu) {  // what was above also loaded the code
      GraphTimer timer({launch}, repetitions_for(launch, kGroupUs));
      const TimeSeries series{take_samples([&] { return timer.sample(); })};
      result_.kernels_us = result_.kernels_us.value_or(0) + series.median();
      output.poison();
      const auto start = std::chrono::steady_clock::now();
      filter_once();
      const std::chrono::duration<double, std::micro> whole = std::chrono::steady_clock::now() - start;
      result_.whole_us = result_.whole_us.value_or(0) + whole.count();
      if (!input.guards_intact() || !filter.guards_intact() || !output.guards_intact() || !stage_->workspace_intact())
        fail("something wrote outside its memory; --backend sim or compute-sanitizer names the line");
    }
    return sums;
  }

  void filter_bytes() {
    const std::vector<float>& taps = filter_.taps.front();
    const std::vector<std::uint8_t> planes = planes_of<std::uint8_t>(picture());
    const std::vector<std::uint8_t> levels = run(planes, taps);
    const HostSum<std::uint8_t> host_sum(problem_, planes, taps);
    // A byte that was not written still holds its part of the poison.
    const auto poison = std::bit_cast<std::array<std::uint8_t, sizeof kPoison>>(kPoison);
    const std::int64_t step = comparison_step(problem_.output_size());
    for (std::int64_t i = 0; i < problem_.output_size(); ++i) {
      const int found = levels[static_cast<std::size_t>(i)];
      if (i % step != 0 && found != poison[static_cast<std::size_t>(i) % sizeof kPoison]) continue;
      const int expected = rounded(level(host_sum(i), 0));
      if (found != expected) fail(fmt::format("{} is {}, not {}", place(i), found, expected));
    }
    fill([&](std::int64_t i) -> int { return levels[static_cast<std::size_t>(i)]; });
  }

  void filter_floats() {
    const std::vector<float> planes = planes_of<float>(picture());
    const std::size_t sets = filter_.taps.size();
    std::vector<std::vector<float>> found;
    std::vector<HostSum<float>> host_sums;
    double bound = 0;
    for (const std::vector<float>& taps : filter_.taps) {
      found.push_back(run(planes, taps));
      host_sums.emplace_back(problem_, planes, taps);
      bound = std::max(bound, error_bound(taps));
      compare(found.back(), host_sums.back(), error_bound(taps));
    }
    // A sum of integers is the integer next to what the stage gave.
    const bool exact = bound < 0.5 && std::all_of(filter_.taps.begin(), filter_.taps.end(), all_integers);
    // Of the level: of two sums, the root moves by at most sqrt(2) times what each of them does.
    const double reach = exact ? 0 : sets == 1 ? bound / filter_.divisor : 1.5 * bound;
    std::atomic<std::int64_t> on_host = 0;
    fill([&](std::int64_t i) {
      const auto sum = [&](std::size_t set) -> double {
        if (set >= sets) return 0;
        const double value = found[set][static_cast<std::size_t>(i)];
        return exact ? std::nearbyint(value) : value;
      };
      const double near = level(sum(0), sum(1));
      if (const int lowest = rounded(near - reach); lowest == rounded(near + reach)) return lowest;
      on_host.fetch_add(1, std::memory_order_relaxed);
      return rounded(level(host_sums[0](i), sets > 1 ? host_sums[1](i) : 0));
    });
    result_.on_host = on_host;
  }

  /// Every output must have been written and be a number; a few thousand must be what the host gets, within the bound.
  void compare(const std::vector<float>& found, const HostSum<float>& host_sum, double bound) const {
    const std::int64_t step = comparison_step(problem_.output_size());
    for (std::int64_t i = 0; i < problem_.output_size(); ++i) {
      const float sum = found[static_cast<std::size_t>(i)];
      if (std::bit_cast<std::uint32_t>(sum) == kPoison) fail(place(i) + " was never written");
      if (!std::isfinite(sum)) fail(fmt::format("{} is {}", place(i), sum));
      if (i % step != 0) continue;
      const double expected = host_sum(i);
      if (!(std::abs(sum - expected) <= bound))
        fail(fmt::format("{} is {}, not {} (give or take {:.2g})", place(i), sum, expected, bound));
    }
  }

  /// Sets the colour samples of the picture. @param value_at of an index in (n, p, q)
  template <class ValueAt>
  void fill(const ValueAt& value_at) {
    const std::int64_t width = picture().width, height = picture().height, colours = picture().colours();
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 16)
#endif
    for (std::int64_t row = 0; row < colours * height; ++row) {
      const std::int64_t c = row / height, y = row % height;
      for (std::int64_t x = 0; x < width; ++x) {
        picture().set_sample((y * width + x) * picture().channels + c,
                             value_at((c * problem_.p() + y) * problem_.q() + x));
      }
    }
  }

  const StageInfo& info_;
  const ConvProblem& problem_;
  const PictureFilter& filter_;
  FilteredPicture result_;
  std::unique_ptr<Stage> stage_;
};

}  // namespace

ConvProblem picture_problem(const Picture& picture, const PictureFilter& filter, Padding padding) {
  return {.n = picture.colours(),
          .h = picture.height,
          .w = picture.width,
          .r = filter.rows,
          .s = filter.columns,
          .pad_h = filter.rows / 2,
          .pad_w = filter.columns / 2,
          .padding = padding};
}

bool filters_bytes(const StageInfo& stage, const Picture& picture, const PictureFilter& filter) {
  const std::unique_ptr<Stage> instance(stage.make());
  const std::vector<float>& taps = filter.taps.front();
  return dynamic_cast<ByteImageFilter*>(instance.get()) != nullptr && picture.depth == 8 && filter.taps.size() == 1 &&
         all_integers(taps) && picture.white() * magnitude_sum(taps) < kExactIntegers;
}

std::int64_t most_picture_samples(bool as_bytes) {
  return std::min(device_info().memory_bytes / (as_bytes ? kDeviceBytes : kDeviceFloatBytes),
                  host_memory_bytes() / kHostBytes);
}

FilteredPicture filter_picture(const StageInfo& stage, const ConvProblem& problem, const Picture& picture,
                               const PictureFilter& filter) {
  return PictureRun(stage, problem, picture, filter).execute();
}

}  // namespace convladder

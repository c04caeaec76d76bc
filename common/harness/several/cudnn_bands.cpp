#include "common/harness/several/cudnn_bands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/harness/baselines/cudnn_baseline.hpp"
#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/half_bits.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/device_gpu.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/ladder/banded_layer.hpp"
#include "common/harness/several/timed.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

/// (n, c, pixels) as cuDNN takes it in a layout and precision.
std::vector<char> encoded(const std::vector<float>& values, std::int64_t n, std::int64_t c, std::int64_t pixels,
                          bool nhwc, Precision precision) {
  const std::size_t size = precision == Precision::fp16 ? 2 : 4;
  std::vector<char> bytes(values.size() * size);
#pragma omp parallel for collapse(2)
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t channel = 0; channel < c; ++channel) {
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        const auto from = static_cast<std::size_t>((i * c + channel) * pixels + pixel);
        const auto to = nhwc ? static_cast<std::size_t>((i * pixels + pixel) * c + channel) : from;
        const std::uint16_t half = half_bits(values[from]);
        std::memcpy(bytes.data() + to * size, size == 2 ? static_cast<const void*>(&half) : &values[from], size);
      }
    }
  }
  return bytes;
}

/// Rows [first, first + count) of each channel; rows outside of the image are zeros.
template <class Number>
std::vector<Number> rows_of(const std::vector<Number>& planes, std::int64_t channels, std::int64_t height,
                            std::int64_t width, std::int64_t first, std::int64_t count) {
  std::vector<Number> rows(static_cast<std::size_t>(channels * count * width));
  for (std::int64_t channel = 0; channel < channels; ++channel)
    for (std::int64_t row = std::max<std::int64_t>(first, 0); row < std::min(first + count, height); ++row)
      std::copy_n(planes.begin() + (channel * height + row) * width, width,
                  rows.begin() + (channel * count + row - first) * width);
  return rows;
}

/// A rank's band, the rows around it, and all of them joined: in NCHW each channel is a plane of its own, in NHWC all
/// are one.
struct Band {
  std::int64_t planes, row_bytes, rows, halo;
  DeviceBuffer own, sent_up, sent_down, from_above, from_below, joined;

  Band(std::int64_t planes, std::int64_t row_bytes, std::int64_t rows, std::int64_t halo)
      : planes(planes),
        row_bytes(row_bytes),
        rows(rows),
        halo(halo),
        own(bytes_of(rows), "a band"),
        sent_up(bytes_of(halo), "sent rows"),
        sent_down(bytes_of(halo), "sent rows"),
        from_above(bytes_of(halo), "received rows"),
        from_below(bytes_of(halo), "received rows"),
        joined(bytes_of(rows + 2 * halo), "a band and its halo") {}
  std::size_t bytes_of(std::int64_t count) const { return static_cast<std::size_t>(planes * count * row_bytes); }

  /// Copies rows of each plane. @param to_rows of a plane of the target
  void copy(const DeviceBuffer& to, std::int64_t to_rows, std::int64_t to_row, const DeviceBuffer& from,
            std::int64_t from_rows, std::int64_t from_row, std::int64_t count, Stream stream) const {
    const auto width = static_cast<std::size_t>(count * row_bytes);
    require(cudaMemcpy2DAsync(static_cast<char*>(to.data()) + to_row * row_bytes,
                              static_cast<std::size_t>(to_rows * row_bytes),
                              static_cast<const char*>(from.data()) + from_row * row_bytes,
                              static_cast<std::size_t>(from_rows * row_bytes), width, static_cast<std::size_t>(planes),
                              cudaMemcpyDeviceToDevice, stream),
            "copying rows");
  }
  /// Exchanges the rows at both ends with the neighbours, and joins all. In NCHW the rows are packed first.
  void exchange_and_join(Ranks& ranks, Stream stream) const {
    const int above = ranks.rank() - 1, below = ranks.rank() + 1;
    const bool packed = planes > 1;
    if (packed) {
      copy(sent_up, halo, 0, own, rows, 0, halo, stream);
      copy(sent_down, halo, 0, own, rows, rows - halo, halo, stream);
    }
    const void* const up = packed ? sent_up.data() : own.data();
    const void* const down =
        packed ? sent_down.data() : static_cast<const char*>(own.data()) + (rows - halo) * row_bytes;
    const auto bytes = static_cast<std::int64_t>(bytes_of(halo));
    ranks.group_start();
    if (above >= 0) {
      ranks.send(up, bytes, above, stream);
      ranks.receive(from_above.data(), bytes, above, stream);
    }
    if (below < ranks.ranks()) {
      ranks.send(down, bytes, below, stream);
      ranks.receive(from_below.data(), bytes, below, stream);
    }
    ranks.group_end();
    const std::int64_t all = rows + 2 * halo;
    copy(joined, all, 0, from_above, halo, 0, halo, stream);
    copy(joined, all, halo, own, rows, 0, rows, stream);
    copy(joined, all, halo + rows, from_below, halo, 0, halo, stream);
  }
};

/// cuDNN's fastest for a problem. @throws MachineError where there is none
CudnnBaseline fastest_of(const ConvProblem& problem, const HostTensors& tensors, const Reference& reference,
                         Precision precision) {
  CudnnBaseline baseline = measure_cudnn(problem, tensors, reference, precision);
  if (!baseline.best() || !baseline.best_candidate)
    throw MachineError(baseline.unavailable.empty() ? "cuDNN has nothing for this problem" : baseline.unavailable);
  return baseline;
}

/// What a candidate needs beside its input.
struct Convolution {
  std::shared_ptr<const CudnnCandidate> candidate;
  DeviceBuffer filter, output, workspace;

  Convolution(const CudnnBaseline& baseline, const ConvProblem& problem, const std::vector<float>& taps,
              Precision precision)
      : candidate(baseline.best_candidate),
        output(static_cast<std::size_t>(problem.output_size()) * (precision == Precision::fp16 ? 2 : 4),
               "cuDNN's output"),
        workspace(static_cast<std::size_t>(candidate->workspace_bytes), "cuDNN's workspace") {
    const std::vector<char> bytes =
        encoded(taps, problem.k, problem.c, problem.r * problem.s, candidate->nhwc, precision);
    filter = DeviceBuffer(bytes.size(), "cuDNN's filter");
    filter.upload(bytes.data());
  }
  void launch(const DeviceBuffer& input, Stream stream) const {
    const std::string refusal = candidate->run({input.data(), filter.data()}, output.data(), workspace.data(), stream);
    if (!refusal.empty()) throw DeviceError("cuDNN: " + refusal);
  }
};

std::string name_of(const CudnnBaseline& baseline) {
  return fmt::format("{}, {}", baseline.best()->algorithm, baseline.best()->layout);
}

}  // namespace

CudnnBands measure_cudnn_bands(const ConvProblem& problem, Precision precision, Ranks& ranks, int samples) {
  const std::int64_t halo = problem.pad_h;
  if (problem.n != 1 || problem.padding != Padding::zero || problem.r != 2 * halo + 1 || problem.p() != problem.h ||
      problem.h / ranks.ranks() < std::max<std::int64_t>(halo, 1))
    throw UsageError(
        "cuDNN in bands needs one image, padding by zeros to the same size, and bands as high as the halo");
  const StageInfo& stage = find_stage(precision == Precision::fp16 ? "33" : "36");
  const Stream stream = device_stream();
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);

  // What cuDNN's results are checked with: the stage's, which the tests hold against the reference.
  Reference reference;
  {
    DeviceTensors tensors(problem, stage.tensors, host.input.data(), host.filter.data());
    const std::unique_ptr<Stage> one(stage.make());
    use_default(*one, problem);
    one->prepare(problem, tensors.view(), stream);
    one->launch(problem, tensors.view(), stream);
    wait_for_stream("the stage");
    std::vector<float> output(static_cast<std::size_t>(problem.output_size()));
    tensors.download_output(output.data());
    reference.output.assign(output.begin(), output.end());
  }
  const Part part = band_part(problem, ranks.rank(), ranks.ranks());
  ConvProblem band = problem;
  band.h = part.rows + 2 * halo;
  band.pad_h = 0;
  const std::vector<float> rows = rows_of(host.input, problem.c, problem.h, problem.w, part.first_row - halo, band.h);
  const Reference band_reference{
      rows_of(reference.output, problem.k, problem.p(), problem.q(), part.first_output, part.rows), {}};

  CudnnBands result;
  CudnnBaseline on_band, on_one;
  std::string failure;
  try {
    on_band = fastest_of(band, {rows, host.filter}, band_reference, precision);
    on_one = fastest_of(problem, host, reference, precision);
  } catch (const MachineError& error) {
    failure = error.what();
  }
  if (ranks.largest(failure.empty() ? 0 : 1, stream) > 0)  // on all or on none
    throw MachineError(failure.empty() ? "another rank has no cuDNN for this problem" : failure);
  const bool nhwc = on_band.best_candidate->nhwc;
  if (ranks.largest(nhwc ? 1 : 0, stream) + ranks.largest(nhwc ? 0 : 1, stream) > 1)
    throw MachineError("cuDNN is fastest in NCHW on some GPUs, and in NHWC on others");
  result.all = name_of(on_band);
  result.one = name_of(on_one);

  {
    const std::int64_t pixel = (precision == Precision::fp16 ? 2 : 4) * (nhwc ? problem.c : 1);
    const Band own(nhwc ? 1 : problem.c, problem.w * pixel, part.rows, halo);
    const std::vector<char> loaded =
        encoded(rows_of(host.input, problem.c, problem.h, problem.w, part.first_row, part.rows), 1, problem.c,
                part.rows * problem.w, nhwc, precision);
    require(cudaMemcpy(own.own.data(), loaded.data(), loaded.size(), cudaMemcpyHostToDevice), "loading a band");
    for (const DeviceBuffer* zeros : {&own.from_above, &own.from_below})  // the first and the last rank receive less
      require(cudaMemset(zeros->data(), 0, zeros->bytes()), "filling padding");
    fill_with_nan(own.joined.data(), static_cast<std::int64_t>(own.joined.bytes()), stream);
    const Convolution convolution(on_band, band, host.filter, precision);
    const Work all = [&](Stream s) {
      own.exchange_and_join(ranks, s);
      convolution.launch(own.joined, s);
    };
    all(stream);
    ranks.wait(stream, "cuDNN in bands");
    const std::vector<char> expected = encoded(rows, 1, problem.c, band.h * problem.w, nhwc, precision);
    std::vector<char> joined(own.joined.bytes());
    own.joined.download(joined.data());
    if (ranks.largest(joined == expected ? 0 : 1, stream) > 0)
      throw DeviceError("cuDNN in bands: the joined rows are not those of the image");
    result.times.all = time_on_all({all}, samples, ranks);
  }
  const Convolution convolution(on_one, problem, host.filter, precision);
  const std::vector<char> bytes =
      encoded(host.input, 1, problem.c, problem.h * problem.w, convolution.candidate->nhwc, precision);
  DeviceBuffer input(bytes.size(), "cuDNN's input");
  input.upload(bytes.data());
  result.times.one = time_on_all({[&](Stream s) { convolution.launch(input, s); }}, samples, ranks);
  return result;
}

}  // namespace convladder

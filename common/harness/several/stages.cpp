#include "common/harness/several/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/device_gpu.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/ladder/banded_layer.hpp"
#include "common/harness/several/timed.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

std::int64_t buffer_bytes(const Part& part) { return part.problem.n * part.problem.h * part.row_bytes; }

/// A rank's part of a problem in its GPU's memory: its own rows are there, and what it must receive is NaN.
struct LoadedPart {
  Part part;
  std::unique_ptr<SharedMemory> shared, signals;  ///< where all ranks touch the buffer
  DeviceBuffer buffer, output;
  std::int64_t output_row_bytes;

  /// @param whole the input, on this GPU
  /// @param sharing ranks that touch each other's buffers; else null
  LoadedPart(const ConvProblem& problem, const Part& of, std::int64_t output_bytes, std::int64_t row_of_output,
             const void* whole, Ranks* sharing)
      : part(of),
        buffer(static_cast<std::size_t>(sharing ? 0 : buffer_bytes(of)), "buffer"),
        output(static_cast<std::size_t>(output_bytes), "part of the output"),
        output_row_bytes(row_of_output) {
    part.buffer = buffer.floats();
    if (sharing) {
      shared = std::make_unique<SharedMemory>(*sharing, buffer_bytes(of));
      signals = std::make_unique<SharedMemory>(*sharing, kSignals * sizeof(unsigned));
      for (int rank = 0; rank < sharing->ranks(); ++rank) {
        part.peers.buffers[rank] = static_cast<float*>(shared->of(rank));
        part.peers.signals[rank] = static_cast<unsigned*>(signals->of(rank));
      }
      part.buffer = part.peers.buffers[sharing->rank()];
    }
    part.output = output.floats();
    const Stream stream = device_stream();
    take_away(stream);
    take_output_away(stream);
    bring(problem, whole, stream);
    require(cudaStreamSynchronize(stream), "loading a part");
  }

  /// Fills the buffer with NaN: of floats and of halves.
  void take_away(Stream stream) const { fill_with_nan(part.buffer, buffer_bytes(part), stream); }
  /// And the output.
  void take_output_away(Stream stream) const {
    fill_with_nan(part.output, static_cast<std::int64_t>(output.bytes()), stream);
  }

  /// Fills the rank's own rows, and those of padding by zeros.
  void bring(const ConvProblem& problem, const void* whole, Stream stream) const {
    const auto row_bytes = static_cast<std::size_t>(part.row_bytes);
    for (std::int64_t image = 0; image < part.problem.n; ++image) {
      const auto* const from =
          static_cast<const char*>(whole) + ((part.first_image + image) * problem.h + part.first_row) * part.row_bytes;
      require(cudaMemcpyAsync(part.row(image, part.above), from, static_cast<std::size_t>(part.rows) * row_bytes,
                              cudaMemcpyDeviceToDevice, stream),
              "copying a band");
      for (std::int64_t at = 0; at < part.problem.h; ++at)
        if (source_row(problem, part, at) < 0)
          require(cudaMemsetAsync(part.row(image, at), 0, row_bytes, stream), "filling a row of padding");
    }
  }

  /// Whether it has the bits of a whole output.
  bool equals(const ConvProblem& problem, const std::vector<char>& whole) const {
    if (part.problem.n == 0) return true;
    std::vector<char> own(output.bytes());
    output.download(own.data());
    const std::int64_t image_bytes = part.problem.p() * output_row_bytes;
    for (std::int64_t image = 0; image < part.problem.n; ++image) {
      const char* const expected =
          whole.data() + ((part.first_image + image) * problem.p() + part.first_output) * output_row_bytes;
      if (std::memcmp(own.data() + image * image_bytes, expected, static_cast<std::size_t>(image_bytes)) != 0)
        return false;
    }
    return true;
  }
};

/// A stage as its ranks run it: 40 to 43 on pictures, beside 09; 33 and 36 on the bands of a layer, beside themselves.
class Runner {
 public:
  Runner(const std::string& name, const ConvProblem& problem, const Ranks& ranks)
      : problem_(problem), alone_(of_layers(name) ? name : "09") {
    const StageInfo& alone = find_stage(alone_);
    elements_ = alone.tensors;
    one_.reset(alone.make());
    if (of_layers(name)) {
      layer_ = std::make_unique<BandedLayer>(alone, problem, ranks.rank(), ranks.ranks());
      part_ = layer_->part();
      output_bytes_ = layer_->output_bytes();
      output_row_bytes_ = layer_->output_row_bytes();
    } else {
      stage_.reset(find_stage(name).make());
      part_ = pictures().part(problem, ranks.rank(), ranks.ranks());
      output_row_bytes_ = 4 * problem.q();
      output_bytes_ = part_.problem.n == 0 ? 0 : part_.problem.n * part_.problem.p() * output_row_bytes_;
    }
  }

  Elements elements() const { return elements_; }
  Stage& one() { return *one_; }
  std::int64_t bytes() const { return buffer_bytes(part_) + output_bytes_; }

  /// The least that the slowest rank could take.
  double floor(const Reached& reached, Ranks& ranks) const {
    double own = 0;
    if (part_.problem.n > 0) {
      const std::int64_t claimed = one_->predict(part_.problem).flops, direct = part_.problem.flops();
      std::int64_t received = 0;  // rows of one image
      for (std::int64_t at = 0; at < part_.problem.h; ++at)
        if ((at < part_.above || at >= part_.above + part_.rows) && source_row(problem_, part_, at) >= 0) ++received;
      own = floor_us(find_stage(alone_), part_.problem,
                     static_cast<double>(claimed > 0 ? std::min(claimed, direct) : direct),
                     static_cast<double>(received * part_.row_bytes * part_.problem.n), reached);
    }
    return ranks.largest(own, device_stream());
  }

  const void* input_of(const Tensors& whole) const {
    return elements_ == Elements::halves ? static_cast<const void*>(whole.half_input) : whole.input;
  }
  LoadedPart load(const Tensors& whole, Ranks& ranks) {
    const bool shares = !layer_ && pictures().touches_others();
    return LoadedPart(problem_, part_, output_bytes_, output_row_bytes_, input_of(whole), shares ? &ranks : nullptr);
  }
  void prepare(const Tensors& whole, Stream stream) {
    if (layer_)
      layer_->prepare(whole, stream);
    else
      stage_->prepare(problem_, whole, stream);
  }
  Work launch(const Part& loaded, Communicator& all) {
    return [this, &all, own = loaded](Stream stream) {
      if (layer_)
        layer_->launch(own, all, stream);
      else
        pictures().launch_rank(problem_, own, all, stream);
    };
  }

 private:
  SeveralStage& pictures() { return dynamic_cast<SeveralStage&>(*stage_); }

  ConvProblem problem_;
  std::string alone_;  ///< the stage on one GPU
  Elements elements_;
  std::unique_ptr<Stage> one_, stage_;
  std::unique_ptr<BandedLayer> layer_;
  Part part_{};
  std::int64_t output_bytes_ = 0, output_row_bytes_ = 0;
};

}  // namespace

std::string refusal_of(const std::string& stage, int ranks) {
  return stage == "43" && ranks > kMostRanks ? fmt::format("at most {} GPUs", kMostRanks) : "";
}

Measured measure_stage(const std::string& name, const ConvProblem& problem, const Reached& reached, Ranks& ranks,
                       int samples) {
  const Stream stream = device_stream();
  Runner runner(name, problem, ranks);
  Stage& one = runner.one();
  if (const Verdict verdict = one.check(problem, device_limits()); !verdict.accepted())
    throw UsageError(verdict.reason());
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  std::vector<std::unique_ptr<DeviceTensors>> wholes;
  const auto add_whole = [&] {
    wholes.push_back(
        std::make_unique<DeviceTensors>(problem, runner.elements(), host.input.data(), host.filter.data()));
  };
  add_whole();
  const Tensors tensors = wholes.front()->view();
  use_default(one, problem);
  one.prepare(problem, tensors, stream);
  one.launch(problem, tensors, stream);
  wait_for_stream("one GPU");
  std::vector<char> expected(wholes.front()->output().bytes());
  wholes.front()->output().download(expected.data());

  std::vector<LoadedPart> parts;
  parts.push_back(runner.load(tensors, ranks));
  runner.prepare(tensors, stream);
  const auto check = [&](const char* when) {
    const bool wrong = !parts.front().equals(problem, expected);
    if (ranks.largest(wrong ? 1 : 0, stream) > 0)
      throw DeviceError(fmt::format("{} has other bits than one GPU, {}{}", name, when,
                                    wrong ? fmt::format(" (rank {})", ranks.rank()) : ""));
  };
  runner.launch(parts.front().part, ranks)(stream);
  ranks.wait(stream, "the stage");
  check("before timing");

  Measured measured{};
  measured.floor = runner.floor(reached, ranks);
  measured.all = time_on_all({runner.launch(parts.front().part, ranks)}, samples, ranks);
  measured.one = time_on_all({[&](Stream s) { one.launch(problem, tensors, s); }}, samples, ranks);
  // Rows that come and go: a rank has its own just before the launch, and no longer than that. Every second rank comes
  // late, and then the others.
  for (int late = 0; late < 2; ++late) {
    const LoadedPart& loaded = parts.front();
    loaded.take_away(stream);
    loaded.take_output_away(stream);
    ranks.barrier(stream);
    if (ranks.rank() % 2 == late) one.launch(problem, tensors, stream);
    loaded.bring(problem, runner.input_of(tensors), stream);
    runner.launch(loaded.part, ranks)(stream);
    loaded.take_away(stream);
    ranks.wait(stream, "the stage after timing");
    check("after timing");
  }
  // With its rows again: a stage may take longer where they are NaN.
  parts.front().bring(problem, runner.input_of(tensors), stream);

  // Cold: copies that exceed L2, as many on each rank.
  const std::size_t copies = copies_past_l2(runner.bytes(), ranks);
  while (parts.size() < copies) parts.push_back(runner.load(tensors, ranks));
  std::vector<Work> all;
  for (const LoadedPart& loaded : parts) all.push_back(runner.launch(loaded.part, ranks));
  measured.all_cold = time_on_all(all, samples, ranks);
  parts.clear();
  const std::size_t whole_copies = copies_past_l2(wholes.front()->bytes(), ranks);
  while (wholes.size() < whole_copies) add_whole();
  all.clear();
  for (const auto& whole : wholes)
    all.emplace_back([&, view = whole->view()](Stream s) { one.launch(problem, view, s); });
  measured.one_cold = time_on_all(all, samples, ranks);
  return measured;
}

std::vector<ChangedLaunch> measure_parts(const std::string& name, const ConvProblem& problem, Ranks& ranks,
                                         int samples) {
  const Stream stream = device_stream();
  Runner runner(name, problem, ranks);
  if (const Verdict verdict = runner.one().check(problem, device_limits()); !verdict.accepted())
    throw UsageError(verdict.reason());
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const DeviceTensors whole(problem, runner.elements(), host.input.data(), host.filter.data());
  const LoadedPart loaded = runner.load(whole.view(), ranks);
  runner.prepare(whole.view(), stream);
  const auto bytes = static_cast<double>(buffer_bytes(loaded.part));
  const bool all_alike = ranks.largest(bytes, stream) == -ranks.largest(-bytes, stream);
  std::vector<ChangedLaunch> launches;
  for (const Change change : changes_of(name)) {
    if (change == Change::own_rows && !all_alike) continue;  // others' rows may lie where it has none
    Part part = loaded.part;
    if (change == Change::own_rows) std::ranges::fill(part.peers.buffers, part.buffer);
    Probe plain(ranks, change, /*events=*/false), probe(ranks, change, /*events=*/true);
    ChangedLaunch launch{change, time_on_all({runner.launch(part, plain)}, samples, ranks), 0, {}};
    std::array<std::vector<double>, 3> ends;
    const auto add = [&] {
      const Ends its = probe.ends();
      for (const auto& [end, all] : {std::pair{its.exchange, &ends[0]}, {its.second, &ends[1]}, {its.first, &ends[2]}})
        if (end) all->push_back(*end);
    };
    launch.time_with_events = time_on_all({runner.launch(part, probe)}, samples, ranks, add);
    const auto median = [](std::vector<double>& times) -> std::optional<double> {
      if (times.empty()) return std::nullopt;
      std::ranges::sort(times);
      return times[times.size() / 2];
    };
    launch.ends = {median(ends[0]), median(ends[1]), median(ends[2])};
    launches.push_back(launch);
  }
  return launches;
}

}  // namespace convladder

/// @file
/// The program `several`: stages 40 to 43, and layers by 33 and 36 in bands, on several GPUs, one process each.
///
///     torchrun --standalone --no-python --nproc-per-node 2 build/bin/several --json several.json
///
/// Each stage runs on each workload on all GPUs, is compared bit by bit with 09 on one GPU, and is timed beside it.
/// Then exchanges of rows of many lengths are timed alone. Times are of CUDA graphs, and of the slowest rank.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/device_gpu.hpp"
#include "common/harness/device/timing.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/banded_layer.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/several/ranks.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;
using Work = std::function<void(Stream)>;

struct Options {
  std::vector<std::string> stages{"40", "41", "42", "43", "33", "36"}, shapes;
  std::string padding = "zero", json, id_file = "convladder-several.id";
  int samples = 15;
};

/// Of each filter: a batch to divide, images of several sizes, and one that grows with the number of ranks. And layers.
std::vector<std::pair<std::string, std::string>> usual_shapes(int ranks) {
  std::vector<std::pair<std::string, std::string>> shapes;
  const auto image = [&](const std::string& name, int n, int w, int h, int side) {
    shapes.emplace_back(fmt::format("{} {}x{}", name, side, side),
                        fmt::format("n={},h={},w={},r={},s={}", n, h, w, side, side));
  };
  for (const int side : {3, 11, 31}) {
    image("960x960", 1, 960, 960, side);
    image("3840x2160", 1, 3840, 2160, side);
    image("6000x4000", 1, 6000, 4000, side);
    image(fmt::format("3840x{}, weak", 2160 * ranks), 1, 3840, 2160 * ranks, side);
  }
  for (const int side : {3, 11}) image("8x3840x2160", 8, 3840, 2160, side);
  const auto layer = [&](const std::string& name, int w, int h) {
    shapes.emplace_back(name + " c=k=64", fmt::format("c=64,k=64,h={},w={},r=3,s=3", h, w));
  };
  layer("224x224", 224, 224);
  layer("960x960", 960, 960);
  layer("1920x1080", 1920, 1080);
  layer("4096x4096", 4096, 4096);
  layer(fmt::format("960x{}, weak", 960 * ranks), 960, 960 * ranks);
  return shapes;
}

/// Microseconds of one launch on the slowest rank: the median over samples that all ranks begin together.
double time_on_all(const std::vector<Work>& copies, int samples, Ranks& ranks) {
  constexpr int kRounds = 20;
  const Stream stream = device_stream();
  for (const Work& work : copies) work(stream);  // NCCL joins two ranks at their first exchange
  ranks.wait(stream, "the first launch");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a graph");
  for (int round = 0; round < kRounds; ++round)
    for (const Work& work : copies) work(stream);
  require(cudaStreamEndCapture(stream, &graph), "ending a graph");
  require(cudaGraphInstantiate(&replay, graph, 0), "instantiating a graph");
  cudaEvent_t begin = nullptr, end = nullptr;
  require(cudaEventCreate(&begin), "creating an event");
  require(cudaEventCreate(&end), "creating an event");
  std::vector<double> times;
  for (int sample = -2; sample < samples; ++sample) {
    ranks.barrier(stream);
    require(cudaEventRecord(begin, stream), "recording an event");
    require(cudaGraphLaunch(replay, stream), "launching a graph");
    require(cudaEventRecord(end, stream), "recording an event");
    ranks.wait(stream, "a graph");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "reading a time");
    const double slowest = ranks.largest(milliseconds, stream);
    if (sample >= 0) times.push_back(1e3 * slowest / (kRounds * static_cast<double>(copies.size())));
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

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
    output.poison();
    if (part.problem.n == 0) return;
    const auto row_bytes = static_cast<std::size_t>(part.row_bytes);
    const auto bytes = static_cast<std::size_t>(buffer_bytes(part));
    require(cudaMemset(part.buffer, 0xFF, bytes), "filling a buffer");  // NaN, of floats and of halves
    for (std::int64_t image = 0; image < part.problem.n; ++image) {
      const auto* const from =
          static_cast<const char*>(whole) + ((part.first_image + image) * problem.h + part.first_row) * part.row_bytes;
      require(cudaMemcpy(part.row(image, part.above), from, static_cast<std::size_t>(part.rows) * row_bytes,
                         cudaMemcpyDeviceToDevice),
              "copying a band");
      for (std::int64_t at = 0; at < part.problem.h; ++at)
        if (source_row(problem, part, at) < 0)
          require(cudaMemset(part.row(image, at), 0, row_bytes), "filling a row of padding");
    }
    require(cudaDeviceSynchronize(), "loading a part");
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

/// Whether the stage runs on the bands of a layer.
bool of_layers(const std::string& stage) { return stage == "33" || stage == "36"; }

/// A stage as its ranks run it: 40 to 43 on pictures, beside 09; 33 and 36 on the bands of a layer, beside themselves.
class Runner {
 public:
  Runner(const std::string& name, const ConvProblem& problem, const Ranks& ranks) : problem_(problem) {
    const StageInfo& alone = find_stage(of_layers(name) ? name : "09");
    elements_ = alone.tensors;
    one_.reset(alone.make());
    if (of_layers(name)) {
      layer_ = std::make_unique<BandedLayer>(alone, problem, ranks.rank(), ranks.ranks());
      part_ = layer_->part();
      output_bytes_ = layer_->output_bytes();
      output_row_bytes_ = layer_->output_row_bytes();
    } else {
      stage_.reset(find_stage(name).make());
      if (pictures().touches_others() && ranks.ranks() > kMostRanks)
        throw UsageError(
            fmt::format("{} wants at most {} GPUs; got {}", find_stage(name).folder, kMostRanks, ranks.ranks()));
      part_ = pictures().part(problem, ranks.rank(), ranks.ranks());
      output_row_bytes_ = 4 * problem.q();
      output_bytes_ = part_.problem.n == 0 ? 0 : part_.problem.n * part_.problem.p() * output_row_bytes_;
    }
  }

  Elements elements() const { return elements_; }
  Stage& one() { return *one_; }
  std::int64_t bytes() const { return buffer_bytes(part_) + output_bytes_; }

  LoadedPart load(const Tensors& whole, Ranks& ranks) {
    const void* const input = elements_ == Elements::halves ? static_cast<const void*>(whole.half_input) : whole.input;
    const bool shares = !layer_ && pictures().touches_others();
    return LoadedPart(problem_, part_, output_bytes_, output_row_bytes_, input, shares ? &ranks : nullptr);
  }
  void prepare(const Tensors& whole, Stream stream) {
    if (layer_)
      layer_->prepare(whole, stream);
    else
      stage_->prepare(problem_, whole, stream);
  }
  Work launch(const LoadedPart& loaded, Ranks& ranks) {
    return [this, &ranks, own = loaded.part](Stream stream) {
      if (layer_)
        layer_->launch(own, ranks, stream);
      else
        pictures().launch_rank(problem_, own, ranks, stream);
    };
  }

 private:
  SeveralStage& pictures() { return dynamic_cast<SeveralStage&>(*stage_); }

  ConvProblem problem_;
  Elements elements_;
  std::unique_ptr<Stage> one_, stage_;
  std::unique_ptr<BandedLayer> layer_;
  Part part_{};
  std::int64_t output_bytes_ = 0, output_row_bytes_ = 0;
};

/// One stage on one workload.
struct Measured {
  double hot, cold, one_hot, one_cold;
};

Measured measure(const std::string& name, const ConvProblem& problem, Ranks& ranks, int samples) {
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
  runner.launch(parts.front(), ranks)(stream);
  ranks.wait(stream, "the stage");
  check("before timing");

  Measured measured{};
  measured.hot = time_on_all({runner.launch(parts.front(), ranks)}, samples, ranks);
  measured.one_hot = time_on_all({[&](Stream s) { one.launch(problem, tensors, s); }}, samples, ranks);
  parts.front().output.poison();
  runner.launch(parts.front(), ranks)(stream);
  ranks.wait(stream, "the stage after timing");
  check("after timing");

  // Cold: copies that exceed L2, as many on each rank.
  constexpr std::int64_t kMostCopies = 16;
  const auto copies_of = [&](std::int64_t bytes) {
    const std::int64_t copies = cold_copies(std::max<std::int64_t>(bytes, 1), device_limits().l2_bytes);
    return static_cast<std::size_t>(ranks.largest(static_cast<double>(std::min(copies, kMostCopies)), stream));
  };
  const std::size_t copies = copies_of(runner.bytes());
  while (parts.size() < copies) parts.push_back(runner.load(tensors, ranks));
  std::vector<Work> all;
  for (const LoadedPart& loaded : parts) all.push_back(runner.launch(loaded, ranks));
  measured.cold = time_on_all(all, samples, ranks);
  parts.clear();
  const std::size_t whole_copies = copies_of(wholes.front()->bytes());
  while (wholes.size() < whole_copies) add_whole();
  all.clear();
  for (const auto& whole : wholes)
    all.emplace_back([&, view = whole->view()](Stream s) { one.launch(problem, view, s); });
  measured.one_cold = time_on_all(all, samples, ranks);
  return measured;
}

/// An exchange both ways between neighbours of a ring, alone.
double time_exchange(std::int64_t bytes, Ranks& ranks, int samples) {
  DeviceBuffer from(static_cast<std::size_t>(bytes), "sent"), to(static_cast<std::size_t>(bytes), "received");
  const int next = (ranks.rank() + 1) % ranks.ranks(), before = (ranks.rank() + ranks.ranks() - 1) % ranks.ranks();
  DeviceBuffer back_from(static_cast<std::size_t>(bytes), "sent"), back_to(static_cast<std::size_t>(bytes), "received");
  return time_on_all({[&](Stream s) {
                       ranks.group_start();
                       ranks.send(from.data(), bytes, next, s);
                       ranks.receive(to.data(), bytes, before, s);
                       if (ranks.ranks() > 2) {  // of two, the next rank is the one before
                         ranks.send(back_from.data(), bytes, before, s);
                         ranks.receive(back_to.data(), bytes, next, s);
                       }
                       ranks.group_end();
                     }},
                     samples, ranks);
}

Json grid(const std::string& how, const std::string& corner, std::vector<std::string> columns) {
  const DeviceInfo info = device_info();
  Json formats = Json::array();
  for (std::size_t i = 0; i < columns.size(); ++i) formats.push_back(".2f");
  return {{"device", {{"name", info.name}, {"compute_capability", info.compute_capability}}},
          {"how", how},
          {"corner", corner},
          {"columns", columns},
          {"format", formats},
          {"rows", Json::array()}};
}

void run(const Options& options, Ranks& ranks) {
  const bool first = ranks.rank() == 0;
  const std::string how = fmt::format(
      "bin/several on {} GPUs, a process each, NCCL {}: medians of {} replays of CUDA graphs, of the slowest "
      "rank, in µs; bits compared with one GPU before and after; cold: copies of the tensors past L2",
      ranks.ranks(), nccl_version(), options.samples);
  Json stages = grid(how, "stage and workload", {"all GPUs, hot", "all GPUs, cold", "one GPU, hot", "one GPU, cold"});
  Json exchanges = grid(how, "bytes each way", {"exchange"});
  // After each row, for a run that does not come to its end.
  const auto write = [&](const std::string& ending, const Json& table) {
    if (!first || options.json.empty()) return;
    const std::filesystem::path file(options.json);
    write_file(ending.empty() ? file : file.parent_path() / (file.stem().string() + ending), table.dump(1) + "\n");
  };
  std::vector<std::pair<std::string, std::string>> shapes;
  for (const std::string& shape : options.shapes) shapes.emplace_back(shape, shape);
  if (shapes.empty()) shapes = usual_shapes(ranks.ranks());
  for (const auto& [name, text] : shapes) {
    ConvProblem problem = parse_shape(text);
    problem.padding = parse_padding(options.padding);
    for (const std::string& stage : options.stages) {
      if (stage == "40" && problem.n < ranks.ranks()) continue;  // GPUs without work
      if (of_layers(stage) != (problem.c > 1)) continue;         // layers, or pictures
      const Measured m = measure(stage, problem, ranks, options.samples);
      const std::string row = std::string(find_stage(stage).folder) + " " + name;
      if (first)
        fmt::print("{:40} {:9.2f} µs on {}, {:9.2f} on one: {:.2f} times; cold {:9.2f}, {:9.2f}\n", row, m.hot,
                   ranks.ranks(), m.one_hot, m.one_hot / m.hot, m.cold, m.one_cold);
      stages["rows"].push_back({{"name", row}, {"values", {m.hot, m.cold, m.one_hot, m.one_cold}}});
      write("", stages);
    }
  }
  if (ranks.ranks() > 1) {
    std::vector<double> sizes, times;
    for (std::int64_t bytes = 1 << 10; bytes <= 1 << 26; bytes *= 4) {
      const double time = time_exchange(bytes, ranks, options.samples);
      if (first) fmt::print("{:>10} bytes each way {:9.2f} µs\n", bytes, time);
      exchanges["rows"].push_back({{"name", std::to_string(bytes)}, {"values", {time}}});
      sizes.push_back(static_cast<double>(bytes));
      times.push_back(time);
    }
    // Time = alpha + bytes / beta, from the shortest and the longest.
    const double beta = (sizes.back() - sizes.front()) / (times.back() - times.front());
    if (first)
      fmt::print("alpha {:.2f} µs, beta {:.1f} GB/s each way\n", times.front() - sizes.front() / beta, beta / 1e3);
  }
  write("", stages);
  if (ranks.ranks() > 1) write("-exchange.json", exchanges);
}

/// 1 where a kernel or a call failed, and 2 where the arguments or the machine cannot be used.
int status_of(const std::exception& error) { return dynamic_cast<const DeviceError*>(&error) ? 1 : 2; }

int command(int count, char** arguments) {
  Options options;
  CLI::App app("Stages for several GPUs, a process each: start it by torchrun, mpirun or srun.", "several");
  app.add_option("--stage", options.stages, "40 to 43 for pictures, 33 and 36 for layers")
      ->check(CLI::IsMember({"40", "41", "42", "43", "33", "36"}));
  app.add_option("--shape", options.shapes, "sizes, as ./lab run takes them; else a list of images");
  app.add_option("--padding", options.padding, "zero, replicate or reflect");
  app.add_option("--samples", options.samples, "replays of each graph")->check(CLI::Range(3, 1000));
  app.add_option("--json", options.json, "a file for the times, and FILE-exchange.json for those of exchanges");
  app.add_option("--id-file", options.id_file, "where the processes meet: a path that all of them see");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  // Before the machine is asked, and before others may wait.
  for (const std::string& shape : options.shapes) {
    ConvProblem problem = parse_shape(shape);
    problem.padding = parse_padding(options.padding);
    validate(problem, std::numeric_limits<std::int64_t>::max());
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // each row when it is measured, into a file, too
  const Place place = place_of_process();
  choose_gpu(place);
  try {
    device_limits();  // there must be a GPU
  } catch (const MachineError& error) {
    throw MachineError(fmt::format("rank {} of {}, which takes GPU {} of its machine: {}", place.rank, place.ranks,
                                   place.local_rank, error.what()));
  }
  const std::unique_ptr<Ranks> ranks = join_ranks(place, options.id_file);
  try {
    run(options, *ranks);
  } catch (const std::exception& error) {
    // Others may wait for this rank, and what it has begun with them cannot be taken back in order.
    fmt::print(stderr, "rank {}: {}\n", place.rank, error.what());
    std::fflush(nullptr);
    std::_Exit(status_of(error));
  }
  return 0;
}

}  // namespace
}  // namespace convladder

int main(int count, char** arguments) {
  try {
    return convladder::command(count, arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return convladder::status_of(error);
  }
}

/// @file
/// The program `several`: stages 40 to 43, layers by 33 and 36 in bands, and chains of layers, on several GPUs, one
/// process each.
///
///     torchrun --standalone --no-python --nproc-per-node 2 build/bin/several --json several.json
///
/// Exchanges of rows of many lengths are timed alone. Then each stage runs on each workload on all GPUs, is compared
/// bit by bit with 09 on one GPU, and is timed beside it. Times are of CUDA graphs, and of the slowest rank.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/integer.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/several/chains.hpp"
#include "common/harness/several/cudnn_bands.hpp"
#include "common/harness/several/measured.hpp"
#include "common/harness/several/ranks.hpp"
#include "common/harness/several/stages.hpp"
#include "common/harness/several/timed.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::vector<std::string> stages{"40", "41", "42", "43", "33", "36"}, shapes;
  std::string padding = "zero", json, id_file = "convladder-several.id", halo;
  int samples = 15, chain = 0;
  bool cudnn = false, parts = false;
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

/// The table of a run: each row is printed and written when it is measured, for a run that does not come to its end.
class Table {
 public:
  Table(const Options& options, const Ranks& ranks)
      : options_(options),
        ranks_(ranks),
        how_(fmt::format(
            "bin/several on {} GPUs, a process each, NCCL {}: medians of {} replays of CUDA graphs, of the slowest "
            "rank, in µs; bits compared with one GPU before and after; cold: copies of the tensors past L2; floor: the "
            "longest of the bytes over the bandwidth, the operations over their rate, and the exchange",
            ranks.ranks(), nccl_version(), options.samples)),
        rows_(grid(how_, "stage and workload",
                   {"all GPUs, hot", "all GPUs, cold", "one GPU, hot", "one GPU, cold", "floor"})),
        exchanges_(grid(how_, "bytes each way", {"exchange"})),
        parts_(grid(how_ +
                        "; parts: launches that are changed, and in launches that record events, when they are over: "
                        "the exchange, the second stream, and the first one without it",
                    "a launch", {"time", "with events", "exchange over", "second over", "first over"})) {}

  void add(const std::string& name, const Measured& m) {
    if (first()) {
      fmt::print("{:40} {:9.2f} µs on {}, {:9.2f} on one: {:.2f} times", name, m.all, ranks_.ranks(), m.one,
                 m.one / m.all);
      if (m.all_cold && m.one_cold) fmt::print("; cold {:9.2f}, {:9.2f}", *m.all_cold, *m.one_cold);
      if (m.floor) fmt::print("; floor {:9.2f}", *m.floor);
      fmt::print("\n");
    }
    rows_["rows"].push_back(
        {{"name", name}, {"values", {cell(m.all), cell(m.all_cold), cell(m.one), cell(m.one_cold), cell(m.floor)}}});
    write("", rows_);
  }
  void add_exchange(std::int64_t bytes, double time) {
    if (first()) fmt::print("{:>10} bytes each way {:9.2f} µs\n", bytes, time);
    exchanges_["rows"].push_back({{"name", std::to_string(bytes)}, {"values", {time}}});
    write("-exchange.json", exchanges_);
  }
  void add_parts(const std::string& name, const std::vector<ChangedLaunch>& launches) {
    for (const ChangedLaunch& launch : launches) {
      const std::string words = words_of(launch.change),
                        row = fmt::format("{}{}{}", name, words.empty() ? "" : ", ", words);
      if (first()) {
        fmt::print("{:56} {:9.2f} µs, with events {:9.2f}", row, launch.time, launch.time_with_events);
        for (const auto& [what, end] : {std::pair{"exchange", launch.ends.exchange},
                                        {"second stream", launch.ends.second},
                                        {"first stream", launch.ends.first}})
          if (end) fmt::print("; {} over at {:9.2f}", what, *end);
        fmt::print("\n");
      }
      parts_["rows"].push_back({{"name", row},
                                {"values",
                                 {launch.time, launch.time_with_events, cell(launch.ends.exchange),
                                  cell(launch.ends.second), cell(launch.ends.first)}}});
    }
    write("-parts.json", parts_);
  }
  void refuse(const std::string& name, const std::string& reason) const {
    if (first()) fmt::print("{:40} refused: {}\n", name, reason);
  }
  bool first() const { return ranks_.rank() == 0; }

 private:
  static Json cell(const std::optional<double>& time) { return time ? Json(*time) : Json(); }
  void write(const std::string& ending, const Json& table) const {
    if (!first() || options_.json.empty()) return;
    const std::filesystem::path file(options_.json);
    write_file(ending.empty() ? file : file.parent_path() / (file.stem().string() + ending), table.dump(1) + "\n");
  }

  const Options& options_;
  const Ranks& ranks_;
  std::string how_;
  Json rows_, exchanges_, parts_;
};

/// What one GPU reaches, and exchanges of many lengths.
Reached measure_machine(const Options& options, Table& table, Ranks& ranks) {
  Reached reached{measure_ceilings()};
  if (ranks.ranks() == 1) return reached;
  std::vector<double> sizes, times;
  for (std::int64_t bytes = 1 << 10; bytes <= 1 << 26; bytes *= 4) {
    times.push_back(time_exchange(bytes, ranks, options.samples));
    sizes.push_back(static_cast<double>(bytes));
    table.add_exchange(bytes, times.back());
  }
  // Time = alpha + bytes / beta, from the shortest and the longest.
  reached.bytes_per_us = (sizes.back() - sizes.front()) / (times.back() - times.front());
  reached.alpha_us = times.front() - sizes.front() / reached.bytes_per_us;
  if (table.first())
    fmt::print("alpha {:.2f} µs, beta {:.1f} GB/s each way\n", reached.alpha_us, reached.bytes_per_us / 1e3);
  return reached;
}

void add_chains(const std::string& name, const ConvProblem& problem, const Options& options, const Reached& reached,
                Table& table, Ranks& ranks) {
  const std::string stage(find_stage(problem.c > 1 ? "33" : "09").folder);
  for (const auto& [halo, word] : {std::pair{Halo::exchanged, "exchanged"}, {Halo::grown, "grown"}}) {
    if (!options.halo.empty() && options.halo != word) continue;
    const std::string row = fmt::format("{} layers, {}, {} {}", options.chain, word, stage, name);
    try {
      table.add(row, measure_chain(problem, options.chain, halo, reached, ranks, options.samples));
    } catch (const UsageError& error) {  // on all ranks alike
      table.refuse(row, error.what());
    }
  }
}

void add_cudnn(const std::string& stage, const std::string& name, const ConvProblem& problem, const Options& options,
               Table& table, Ranks& ranks) {
  const bool halves = stage == "33";
  const std::string row = fmt::format("cuDNN {} {}", halves ? "fp16" : "fp32", name);
  try {
    const CudnnBands cudnn =
        measure_cudnn_bands(problem, halves ? Precision::fp16 : Precision::fp32, ranks, options.samples);
    table.add(row, cudnn.times);
    if (table.first()) fmt::print("    on bands {}; on one {}\n", cudnn.all, cudnn.one);
  } catch (const MachineError& error) {  // on all ranks alike, as the other
    table.refuse(row, error.what());
  } catch (const UsageError& error) {
    table.refuse(row, error.what());
  }
}

void run(const Options& options, Ranks& ranks) {
  Table table(options, ranks);
  const Reached reached = measure_machine(options, table, ranks);
  std::vector<std::pair<std::string, std::string>> shapes;
  for (const std::string& shape : options.shapes) shapes.emplace_back(shape, shape);
  if (shapes.empty()) shapes = usual_shapes(ranks.ranks());
  std::vector<std::pair<std::string, ConvProblem>> problems;
  for (const auto& [name, text] : shapes) {
    problems.emplace_back(name, parse_shape(text));
    problems.back().second.padding = parse_padding(options.padding);
  }
  for (const auto& [name, problem] : problems) {
    if (options.chain > 0) {
      add_chains(name, problem, options, reached, table, ranks);
      continue;
    }
    for (const std::string& stage : options.stages) {
      if (stage == "40" && problem.n < ranks.ranks()) continue;  // GPUs without work
      if (of_layers(stage) != (problem.c > 1)) continue;         // layers, or pictures
      if (options.parts && changes_of(stage).empty()) continue;
      const std::string row = std::string(find_stage(stage).folder) + " " + name;
      if (const std::string reason = refusal_of(stage, ranks.ranks()); !reason.empty())
        table.refuse(row, reason);
      else if (options.parts)
        table.add_parts(row, measure_parts(stage, problem, ranks, options.samples));
      else
        table.add(row, measure_stage(stage, problem, reached, ranks, options.samples));
    }
  }
  if (!options.cudnn || options.chain > 0 || options.parts) return;
  // Last, since choosing among all that cuDNN offers takes long for large layers.
  for (const auto& [name, problem] : problems) {
    for (const std::string& stage : options.stages)
      if (of_layers(stage) && problem.c > 1) add_cudnn(stage, name, problem, options, table, ranks);
  }
}

/// 1 where a kernel or a call failed, and 2 where the arguments or the machine cannot be used.
int status_of(const std::exception& error) { return dynamic_cast<const DeviceError*>(&error) ? 1 : 2; }

void add_integer(CLI::App& app, const std::string& name, int& target, int least, int most, const std::string& help) {
  const auto set = [=, &target](const std::string& text) { target = parse_integer(name, text, least, most); };
  app.add_option_function<std::string>(name, set, help)->type_name(fmt::format("INT in [{} - {}]", least, most));
}

int command(int count, char** arguments) {
  Options options;
  CLI::App app("Stages for several GPUs, a process each: start it by torchrun, mpirun or srun.", "several");
  app.add_option("--stage", options.stages, "40 to 43 for pictures, 33 and 36 for layers")
      ->check(CLI::IsMember({"40", "41", "42", "43", "33", "36"}));
  app.add_option("--shape", options.shapes, "sizes, as ./lab run takes them; else a list of images");
  add_integer(app, "--chain", options.chain, 1, 64, "so many equal layers, one after the other, instead of the stages");
  app.add_option("--halo", options.halo,
                 "of a chain: exchanged before each layer, or grown before the first; else both")
      ->check(CLI::IsMember({"exchanged", "grown"}));
  app.add_flag("--cudnn", options.cudnn, "beside 33 and 36: cuDNN on bands that copies have joined, and on one GPU");
  app.add_flag("--parts", options.parts, "of 41 to 43: what their parts take, instead of the stages")
      ->excludes("--chain");
  app.add_option("--padding", options.padding, "zero, replicate or reflect");
  add_integer(app, "--samples", options.samples, 3, 1000, "replays of each graph");
  app.add_option("--json", options.json,
                 "a file for the times, FILE-exchange.json for those of exchanges, FILE-parts.json for those of parts");
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
    if (problem.has_bias()) throw UsageError("several GPUs compute no epilogue; got --shape " + shape);
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
    print_stderr("rank {}: {}\n", place.rank, error.what());
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
    convladder::print_stderr("{}\n", error.what());
    return convladder::status_of(error);
  }
}

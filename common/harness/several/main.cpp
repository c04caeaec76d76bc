/// @file
/// The program `several`: stages 40 and 41 on several GPUs, one process each.
///
///     torchrun --standalone --no-python --nproc-per-node 2 build/bin/several --json several.json
///
/// Each stage runs on each workload on all GPUs, is compared bit by bit with 09 on one GPU, and is timed beside it.
/// Then exchanges of rows of many lengths are timed alone. Times are of CUDA graphs, and of the slowest rank.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/device_gpu.hpp"
#include "common/harness/device/timing.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/several/ranks.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;
using Work = std::function<void(Stream)>;

struct Options {
  std::vector<std::string> stages{"40", "41"}, shapes;
  std::string padding = "zero", json, id_file = "convladder-several.id";
  int samples = 15;
};

/// Of each: a batch to divide, images of several sizes, and one that grows with the number of ranks.
std::vector<std::pair<std::string, std::string>> usual_shapes(int ranks) {
  std::vector<std::pair<std::string, std::string>> shapes;
  const auto image = [&](const std::string& name, int n, int w, int h, int side) {
    shapes.emplace_back(fmt::format("{} {}x{}", name, side, side),
                        fmt::format("n={},h={},w={},r={},s={}", n, h, w, side, side));
  };
  for (const int side : {3, 11, 31}) {
    image("8x3840x2160", 8, 3840, 2160, side);
    image("960x960", 1, 960, 960, side);
    image("3840x2160", 1, 3840, 2160, side);
    image("6144x4096", 1, 6144, 4096, side);
    image(fmt::format("3840x{}, weak", 2160 * ranks), 1, 3840, 2160 * ranks, side);
  }
  return shapes;
}

/// Microseconds of one launch on the slowest rank: the median over samples that all ranks begin together.
double time_on_all(const std::vector<Work>& copies, int samples, Ranks& ranks) {
  constexpr int kRounds = 20;
  const Stream stream = device_stream();
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
    require(cudaStreamSynchronize(stream), "a graph");
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

std::size_t bytes_of(std::int64_t floats) { return static_cast<std::size_t>(floats) * sizeof(float); }

/// A rank's part in its GPU's memory: its own rows are there, and what it must receive is NaN.
struct LoadedPart {
  Part part;
  DeviceBuffer buffer, output;

  LoadedPart(const ConvProblem& problem, const Part& of, const float* input)
      : part(of),
        buffer(bytes_of(of.problem.input_size()), "buffer"),
        output(bytes_of(of.problem.output_size()), "part of the output") {
    std::vector<float> rows(static_cast<std::size_t>(of.problem.input_size()));
    const std::int64_t width = problem.w;
    for (std::int64_t image = 0; image < of.problem.n; ++image) {
      for (std::int64_t at = 0; at < of.problem.h; ++at) {
        const std::int64_t source = source_row(problem, of, at);
        float* const row = rows.data() + (image * of.problem.h + at) * width;
        const bool own = at >= of.above && at < of.above + of.rows;
        if (own)
          std::copy_n(input + ((of.first_image + image) * problem.h + source) * width, width, row);
        else
          std::fill_n(row, width, source < 0 ? 0.0f : std::nanf(""));
      }
    }
    buffer.upload(rows.data());
    output.poison();
    part.buffer = buffer.floats();
    part.output = output.floats();
  }

  /// Whether it has the bits of a whole output.
  bool equals(const ConvProblem& problem, const std::vector<float>& whole) const {
    std::vector<float> own(static_cast<std::size_t>(part.problem.output_size()));
    output.download(own.data());
    const std::int64_t image_size = part.problem.p() * problem.q();
    for (std::int64_t image = 0; image < part.problem.n; ++image) {
      const float* const expected =
          whole.data() + ((part.first_image + image) * problem.p() + part.first_output) * problem.q();
      if (std::memcmp(own.data() + image * image_size, expected, bytes_of(image_size)) != 0) return false;
    }
    return true;
  }
};

/// One stage on one workload.
struct Measured {
  double hot, cold, one_hot, one_cold;
};

Measured measure(const std::string& stage_name, const ConvProblem& problem, Ranks& ranks, int samples) {
  const Stream stream = device_stream();
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const auto fresh_tensors = [&](DeviceBuffer& input, DeviceBuffer& output) {
    input = DeviceBuffer(bytes_of(problem.input_size()), "input");
    output = DeviceBuffer(bytes_of(problem.output_size()), "output");
    input.upload(host.input.data());
    output.poison();
  };
  DeviceBuffer filter(bytes_of(problem.filter_size()), "filter"), input, output;
  filter.upload(host.filter.data());
  fresh_tensors(input, output);
  const std::unique_ptr<Stage> one(find_stage("09").make()), made(find_stage(stage_name).make());
  auto& stage = dynamic_cast<SeveralStage&>(*made);
  const Tensors tensors{input.floats(), filter.floats(), output.floats()};
  one->prepare(problem, tensors, stream);
  one->launch(problem, tensors, stream);
  wait_for_stream("09 on one GPU");
  std::vector<float> expected(static_cast<std::size_t>(problem.output_size()));
  output.download(expected.data());

  stage.prepare(problem, tensors, stream);
  const Part part = stage.part(problem, ranks.rank(), ranks.ranks());
  std::vector<LoadedPart> parts;
  parts.emplace_back(problem, part, host.input.data());
  const auto run = [&](const LoadedPart& loaded) {
    return [&stage, &problem, &ranks, own = loaded.part](Stream s) { stage.launch_rank(problem, own, ranks, s); };
  };
  const auto check = [&](const char* when) {
    const bool wrong = !parts.front().equals(problem, expected);
    if (ranks.largest(wrong ? 1 : 0, stream) > 0)
      throw DeviceError(fmt::format("{} has other bits than 09 on one GPU, {}{}", stage_name, when,
                                    wrong ? fmt::format(" (rank {})", ranks.rank()) : ""));
  };
  run(parts.front())(stream);
  wait_for_stream("the stage");
  check("before timing");

  Measured measured{};
  measured.hot = time_on_all({run(parts.front())}, samples, ranks);
  const Work alone = [&](Stream s) { one->launch(problem, tensors, s); };
  measured.one_hot = time_on_all({alone}, samples, ranks);
  check("after timing");

  // Cold: copies that exceed L2, as many on each rank.
  const std::int64_t l2 = device_limits().l2_bytes;
  const auto copies_of = [&](std::int64_t floats) {
    return static_cast<int>(
        ranks.largest(static_cast<double>(std::min<std::int64_t>(cold_copies(4 * floats, l2), 16)), stream));
  };
  const int copies = copies_of(std::max<std::int64_t>(part.problem.input_size() + part.problem.output_size(), 1));
  while (static_cast<int>(parts.size()) < copies) parts.emplace_back(problem, part, host.input.data());
  std::vector<Work> all;
  for (const LoadedPart& loaded : parts) all.push_back(run(loaded));
  measured.cold = time_on_all(all, samples, ranks);
  parts.clear();
  const int whole_copies = copies_of(problem.input_size() + problem.output_size());
  std::vector<DeviceBuffer> more(2 * static_cast<std::size_t>(whole_copies));
  all.clear();
  for (std::size_t i = 0; i < more.size(); i += 2) {
    fresh_tensors(more[i], more[i + 1]);
    all.emplace_back([&, view = Tensors{more[i].floats(), filter.floats(), more[i + 1].floats()}](Stream s) {
      one->launch(problem, view, s);
    });
  }
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
      "rank, in µs; bits compared with 09 on one GPU before and after; cold: copies of the tensors past L2",
      ranks.ranks(), nccl_version(), options.samples);
  Json stages = grid(how, "stage and workload", {"all GPUs, hot", "all GPUs, cold", "one GPU, hot", "one GPU, cold"});
  Json exchanges = grid(how, "bytes each way", {"exchange"});
  std::vector<std::pair<std::string, std::string>> shapes;
  for (const std::string& shape : options.shapes) shapes.emplace_back(shape, shape);
  if (shapes.empty()) shapes = usual_shapes(ranks.ranks());
  for (const auto& [name, text] : shapes) {
    ConvProblem problem = parse_shape(text);
    problem.padding = parse_padding(options.padding);
    for (const std::string& stage : options.stages) {
      if (stage == "40" && problem.n < ranks.ranks()) continue;  // GPUs without work
      const Measured m = measure(stage, problem, ranks, options.samples);
      const std::string row = std::string(find_stage(stage).folder) + " " + name;
      if (first)
        fmt::print("{:40} {:9.2f} µs on {}, {:9.2f} on one: {:.2f} times; cold {:9.2f}, {:9.2f}\n", row, m.hot,
                   ranks.ranks(), m.one_hot, m.one_hot / m.hot, m.cold, m.one_cold);
      stages["rows"].push_back({{"name", row}, {"values", {m.hot, m.cold, m.one_hot, m.one_cold}}});
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
  if (!first || options.json.empty()) return;
  write_file(options.json, stages.dump(1) + "\n");
  if (ranks.ranks() == 1) return;
  const std::filesystem::path file(options.json);
  write_file(file.parent_path() / (file.stem().string() + "-exchange.json"), exchanges.dump(1) + "\n");
}

int command(int count, char** arguments) {
  Options options;
  CLI::App app("Stages for several GPUs, a process each: start it by torchrun, mpirun or srun.", "several");
  app.add_option("--stage", options.stages, "40, 41 or both")->check(CLI::IsMember({"40", "41"}));
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
  const Place place = place_of_process();
  choose_gpu(place);
  device_limits();  // there must be a GPU
  run(options, *join_ranks(place, options.id_file));
  return 0;
}

}  // namespace
}  // namespace convladder

int main(int count, char** arguments) {
  try {
    return convladder::command(count, arguments);
  } catch (const convladder::DeviceError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

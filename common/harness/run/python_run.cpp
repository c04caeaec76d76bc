#include "common/harness/run/python_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <string>

#include "common/harness/device/timing.hpp"
#include "common/harness/files/observation_json.hpp"
#include "common/harness/run/host_run.hpp"
#include "common/harness/run/stage_run.hpp"

namespace convladder {
namespace {

using Json = nlohmann::json;

constexpr double kGroupUs = 2000;  // how long one replay of a timed graph should last, as of stages

/// A folder for tensors, in memory where that can be; gone with the object.
class TensorFolder {
 public:
  TensorFolder() {
    std::error_code error;
    const std::filesystem::path memory = "/dev/shm";
    const auto parent = std::filesystem::exists(memory, error) ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "convladder-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw MachineError(fmt::format("no folder for tensors can be made in {}", parent.string()));
    path_ = name;
  }
  ~TensorFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TensorFolder(const TensorFolder&) = delete;
  TensorFolder& operator=(const TensorFolder&) = delete;

  std::string file(const char* name) const { return (path_ / name).string(); }

  std::string write(const char* name, const std::vector<float>& values) const {
    std::ofstream stream(file(name), std::ios::binary);
    stream.write(reinterpret_cast<const char*>(values.data()), bytes(values));
    if (!stream.flush()) throw MachineError(fmt::format("{} cannot be written: is the disk full?", file(name)));
    return file(name);
  }

  void read(const char* name, float* values, std::int64_t count) const {
    const auto size = count * static_cast<std::int64_t>(sizeof(float));
    std::ifstream stream(file(name), std::ios::binary);
    stream.read(reinterpret_cast<char*>(values), size);
    if (stream.gcount() != size) throw DeviceError(fmt::format("{} is shorter than the output", file(name)));
  }

 private:
  static std::streamsize bytes(const std::vector<float>& values) {
    return static_cast<std::streamsize>(values.size() * sizeof(float));
  }

  std::filesystem::path path_;
};

class PythonRun final : public StageRun {
 public:
  PythonRun(PythonProgram& program, const Workload& workload, const RunOptions& options, RunResult& result)
      : StageRun(workload, options, result), program_(program) {}

 private:
  bool on_host() const { return runs_on_host(*result_.stage); }

  Tensors tensors() const override { return {nullptr, nullptr, nullptr}; }

  void place_tensors() override {
    folder_.write("input", workload_.tensors.input);
    folder_.write("filter", workload_.tensors.filter);
  }

  bool prepare() override {
    const Json answer = program_.ask({{"do", "place"},
                                      {"row", result_.stage->program},
                                      {"problem", problem_json(workload_.problem)},
                                      {"dtype", result_.stage->dtype},
                                      {"device", on_host() ? "cpu" : "cuda"},
                                      {"input", folder_.file("input")},
                                      {"filter", folder_.file("filter")}});
    if (answer.contains("refused")) {
      result_.status = Status::refused;
      result_.reason = answer["refused"].get<std::string>();
      return false;
    }
    result_.library = answer.at("library").get<std::string>();
    return true;
  }

  void poison_output() override {
    folder_.write("output", std::vector<float>(static_cast<std::size_t>(workload_.problem.output_size()),
                                               std::bit_cast<float>(kPoison)));
  }

  Observation observe_work(const std::function<void(Stream)>&) override {
    program_.ask({{"do", "run"}, {"output", folder_.file("output")}});
    return {};
  }

  void download_output(float* output) const override {
    folder_.read("output", output, workload_.problem.output_size());
  }

  std::vector<const char*> damaged() const override { return {}; }

  bool has_time() const override { return on_host() || backend() == Backend::gpu; }

  void time_launch() override {
    if (on_host()) {
      result_.time_us = time_on_host(result_.stage->folder, [&] { program_.ask({{"do", "sample"}}); });
      result_.cold_unavailable = "on the CPU the caches are left as the launch before leaves them";
      return;
    }
    result_.time_us = time(1, options_.sampling);
    if (options_.cold) time_cold();
  }

  TimeSummary time(std::int64_t copies, const Sampling& sampling) {
    program_.ask({{"do", "graph"}, {"copies", copies}, {"us", kGroupUs}});
    const TimeSeries series{sampling([&] { return program_.ask({{"do", "sample"}}).at("us").get<double>(); })};
    return {series.median(), series.min(), series.spread(), series.groups};
  }

  void time_cold() {
    const std::int64_t element = takes_halves(*result_.stage) ? 2 : 4;
    const ConvProblem& p = workload_.problem;
    const std::int64_t footprint = (p.input_size() + p.filter_size() + p.output_size()) * element;
    const std::int64_t copies = cold_copies(footprint, device_info().l2_bytes);
    if (copies > kMaxColdCopies) {
      result_.cold_unavailable =
          fmt::format("{} copies of the tensors ({} bytes) do not exceed the L2 cache", kMaxColdCopies, footprint);
      return;
    }
    result_.time_cold_us = time(copies, take_samples);
  }

  void time_product() override {}

  PythonProgram& program_;
  TensorFolder folder_;
};

}  // namespace

void run_in_python(PythonProgram& program, const Workload& workload, const RunOptions& options, RunResult& result) {
  PythonRun(program, workload, options, result).execute();
  if (result.status == Status::ok) program.ask({{"do", "clear"}});  // the memory is for the rows that follow
}

}  // namespace convladder

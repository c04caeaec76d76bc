/// @file
/// What Python calls: stages on arrays of the host, and on a GPU on addresses. The package's Python files make arrays
/// and arguments of it; what JSON can say comes as JSON, as the command line prints it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/harness/commands/bench_plan.hpp"
#include "common/harness/device/barriers.hpp"
#include "common/harness/device/programs.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/observation_json.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/settings.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/run/prepared_stage.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"
#include "common/harness/run/standing.hpp"
#include "common/harness/run/user_problem.hpp"

namespace nb = nanobind;

namespace convladder {
namespace {

using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Shape = std::vector<std::int64_t>;

// ---- One at a time --------------------------------------------------------------------------------------------------

/// The thread that all of the simulator runs in: what kernels share is thread-local, and found in the first thread that
/// asked for it.
class Worker {
 public:
  Worker() {
    std::thread([this] { work(); }).detach();  // ends with the process
  }

  void run(std::packaged_task<void()> task) {
    if (getpid() != process_)
      throw MachineError("the simulator does not run in a forked process; start it by multiprocessing's \"spawn\"");
    std::future<void> done = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    arrived_.notify_one();
    done.get();
  }

 private:
  void work() {
    while (true) {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return !tasks_.empty(); });
      std::packaged_task<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  const pid_t process_ = getpid();
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::packaged_task<void()>> tasks_;
};

/// Runs `work` without Python's lock, and nothing else of this library beside it.
void alone(const std::function<void()>& work) {
  const nb::gil_scoped_release released;
  if (backend() == Backend::sim) {
    static Worker& worker = *new Worker;  // outlives whatever Python frees at its end
    worker.run(std::packaged_task<void()>(work));
    return;
  }
  static std::mutex& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  const OnOwnGpu own;
  work();
}

// ---- Arguments and results ------------------------------------------------------------------------------------------

/// A problem as Python gives it: the arrays' shapes, what `--shape` adds, the padding's mode.
ConvProblem problem_of(const Shape& input, const Shape& filter, const std::optional<std::string>& shape,
                       const std::string& padding) {
  ConvProblem problem = problem_of_arrays(input, filter, shape);
  problem.padding = parse_padding(padding);
  return problem;
}

std::vector<float> values_of(const Floats& array) { return {array.data(), array.data() + array.size()}; }

/// Of an array that may be missing: none.
std::vector<float> values_of(const std::optional<Floats>& array) {
  return array ? values_of(*array) : std::vector<float>();
}

/// Checks a residual's shape. @param problem a valid one  @throws UsageError
void require_residual_shape(const ConvProblem& problem, const Shape& shape) {
  const Shape wanted{problem.n, problem.k, problem.p(), problem.q()};
  if (shape != wanted)
    throw UsageError(fmt::format("the residual must have the output's shape ({}); got ({})", fmt::join(wanted, ", "),
                                 fmt::join(shape, ", ")));
}

/// The output (n, k, p, q) as an array that owns it.
nb::object array_of(const ConvProblem& problem, std::vector<float> values) {
  auto* const kept = new std::vector<float>(std::move(values));
  const nb::capsule owner(kept, [](void* vector) noexcept { delete static_cast<std::vector<float>*>(vector); });
  const std::size_t shape[] = {static_cast<std::size_t>(problem.n), static_cast<std::size_t>(problem.k),
                               static_cast<std::size_t>(problem.p()), static_cast<std::size_t>(problem.q())};
  return nb::cast(nb::ndarray<nb::numpy, float>(kept->data(), 4, shape, owner));
}

/// The rule by which a stage refuses a problem, or "". @param filter or null
std::string rule_of(const StageInfo& stage, const ConvProblem& problem, const float* filter) {
  try {
    if (runs_on_host(stage)) {
      require_valid_on_host(problem);
    } else {
      require_valid(problem);
    }
  } catch (const RefusedError& error) {
    return error.what();
  }
  return refusal(stage, problem, filter);
}

/// As `run` of the command line. @param residual_shape of a problem with a residual
RunResult run(const StageInfo& stage, UserProblem user, const Shape& residual_shape, const RunOptions& options) {
  if (!options.settings.empty()) require_settings(options.settings, {&stage});
  if (const std::string rule = device_refusal(stage); !rule.empty()) throw MachineError(rule);
  require_finite_filter(user.tensors->filter);
  if (std::string rule = rule_of(stage, user.problem, user.tensors->filter.data()); !rule.empty())
    return refused(stage, user.problem, std::move(rule));
  if (user.problem.has_residual()) require_residual_shape(user.problem, residual_shape);
  const Workload workload = make_workload(std::move(user), 1);
  std::vector<RunResult> results{run_stage(stage, workload, options)};
  add_roofline(results.front(), nullptr);
  add_speedups(results);
  return std::move(results.front());
}

// ---- What Python sees -----------------------------------------------------------------------------------------------

std::string stages_json() {
  auto list = nlohmann::ordered_json::array();
  for (const StageInfo& stage : stages()) list.push_back(to_json(stage));
  return text_of(list);
}

/// Whether a stage computes an epilogue.
bool has_epilogue(const std::string& stage) { return std::unique_ptr<Stage>(find_stage(stage).make())->has_epilogue(); }

/// Of a stage's tensors: "fp32 NCHW".
std::string tensors_of(const std::string& stage) { return std::string(to_string(find_stage(stage).tensors)); }

std::string refusal_of_arrays(const std::string& stage, const Shape& input, const Shape& filter,
                              const std::optional<std::string>& shape, const std::string& padding,
                              const std::optional<Floats>& taps) {
  std::string rule;
  alone([&] {
    const std::vector<float> values = values_of(taps);
    rule = rule_of(find_stage(stage), problem_of(input, filter, shape, padding), taps ? values.data() : nullptr);
  });
  return rule;
}

std::string refusal_of_shape(const std::string& stage, const std::string& shape, const std::string& padding) {
  std::string rule;
  alone([&] {
    ConvProblem problem = parse_shape(shape);
    problem.padding = parse_padding(padding);
    rule = rule_of(find_stage(stage), problem, nullptr);
  });
  return rule;
}

/// The block barrier at a line of a kernel's file: "tiled_1d.cu:41". @throws UsageError where `work` passes none there
Barrier barrier_at(const std::string& place, const std::function<void()>& work) {
  std::string known;
  for (Barrier& barrier : barriers_of(work)) {
    const std::string its_place = fmt::format("{}:{}", barrier.file, barrier.line);
    if (its_place == place || its_place.ends_with('/' + place)) return std::move(barrier);
    known += (known.empty() ? "" : ", ") + its_place;
  }
  throw UsageError(
      fmt::format("no block passes a barrier at {}; they pass those at {}", place, known.empty() ? "no line" : known));
}

/// @param without the barrier that does nothing, or ""
/// @return the result's JSON, and its output where it is right
std::pair<std::string, nb::object> simulate(const std::string& stage, const Shape& input_shape, const Floats& input,
                                            const Shape& filter_shape, const Floats& filter,
                                            const std::optional<Floats>& bias, const Shape& residual_shape,
                                            const std::optional<Floats>& residual,
                                            const std::optional<std::string>& shape, const std::string& padding,
                                            const std::string& configuration, const std::string& without) {
  RunResult result;
  std::string json;
  alone([&] {
    UserProblem user;
    user.problem = problem_of(input_shape, filter_shape, shape, padding);
    user.tensors = HostTensors{values_of(input), values_of(filter), values_of(bias), values_of(residual)};
    RunOptions options;
    options.lines = true;
    options.time = false;
    options.keep_output = true;
    options.settings = configuration;
    const auto work = [&] { result = run(find_stage(stage), user, residual_shape, options); };
    if (without.empty())
      work();
    else
      without_barrier(barrier_at(without, work), work);
    json = text_of(to_json(result));
  });
  if (result.status != Status::ok) return {json, nb::none()};
  const ConvProblem problem = result.problem;
  return {json, array_of(problem, std::move(result.output))};
}

/// The rows of stages on their tracks' workloads, or on the user's layers, as `bench --json` has them. Without cuDNN.
std::string bench(std::vector<std::string> names, std::vector<std::string> tracks, std::vector<std::string> shapes,
                  std::optional<std::string> padding) {
  std::string json;
  alone([&] {
    BenchCommand command;
    command.stages = std::move(names);
    command.tracks = std::move(tracks);
    command.shapes = std::move(shapes);
    command.padding = std::move(padding);
    BenchReport report;
    std::optional<Limits> limits;
    for (const PlannedWorkload& planned : planned_workloads(command, backend())) {
      UserProblem user;
      user.name = planned.named.name;
      user.problem = planned.named.problem;
      user.filter = planned.named.filter;
      constexpr std::uint64_t kSeed = 1;
      const Workload workload = make_workload(std::move(user), kSeed);
      std::vector<RunResult> rows;
      for (const StageInfo* stage : planned.stages) {
        if (!on_ladder(*stage) && stage->settings_of == 0) continue;  // another library's
        const bool on_gpu = backend() == Backend::gpu && !runs_on_host(*stage);
        if (on_gpu && !limits) limits = measure_limits();
        rows.push_back(run_stage(*stage, workload, {}));
        add_roofline(rows.back(), on_gpu ? &*limits : nullptr);
      }
      add_speedups(rows);
      for (RunResult& row : rows) report.rows.push_back(std::move(row));
    }
    auto list = nlohmann::ordered_json::array();
    for (const RunResult& row : report.rows) list.push_back(to_json(row));
    json = text_of(list);
  });
  return json;
}

/// A PreparedStage that is made, used and destroyed where it may be.
class Prepared {
 public:
  Prepared(const std::string& stage, const Shape& input_shape, const Shape& filter_shape, const Floats& filter,
           const std::optional<Floats>& bias, const std::optional<std::string>& shape, const std::string& padding,
           const std::string& configuration) {
    alone([&] {
      std::vector<float> taps = values_of(filter);
      require_finite_filter(taps);
      stage_ = std::make_unique<PreparedStage>(find_stage(stage), problem_of(input_shape, filter_shape, shape, padding),
                                               std::move(taps), configuration, values_of(bias));
    });
  }
  ~Prepared() {
    try {
      alone([&] { stage_.reset(); });
    } catch (const MachineError&) {  // in a forked process, which has no part in it
      static_cast<void>(stage_.release());
    }
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  Shape output_shape() const {
    const ConvProblem& problem = stage_->problem();
    return {problem.n, problem.k, problem.p(), problem.q()};
  }

  /// Of a problem with one.
  void require_residual(const Shape& shape) const { require_residual_shape(stage_->problem(), shape); }

  nb::object run(const Floats& input, const std::optional<Floats>& residual) {
    std::vector<float> output;
    alone([&] { output = stage_->run(values_of(input), values_of(residual)); });
    return array_of(stage_->problem(), std::move(output));
  }

  /// @param residual 0 where the problem has none
  void launch(std::uintptr_t input, std::uintptr_t output, std::uintptr_t stream, std::uintptr_t residual) {
    constexpr std::uintptr_t kVector = 16;  // bytes: kernels and TMA move as many at a time
    for (const std::uintptr_t address : {input, output, residual})
      if (address % kVector != 0)
        throw UsageError(
            fmt::format("an array on a GPU must begin at a multiple of {} bytes; got {:#x}: a part of another array is "
                        "to be copied",
                        kVector, address));
    // NOLINTBEGIN(performance-no-int-to-ptr): Python's arrays tell addresses as numbers
    alone([&] {
      stage_->launch(reinterpret_cast<const void*>(input), reinterpret_cast<void*>(output),
                     reinterpret_cast<Stream>(stream), reinterpret_cast<const void*>(residual));
    });
    // NOLINTEND(performance-no-int-to-ptr)
  }

  /// For what is on a stream.
  void wait(std::uintptr_t stream) {
    alone([&] { wait_for(reinterpret_cast<Stream>(stream)); });  // NOLINT(performance-no-int-to-ptr): as above
  }

 private:
  std::unique_ptr<PreparedStage> stage_;
};

/// A sentence about unusable arguments: the command line's options are arguments here.
std::string in_python(std::string message) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"'./lab list' shows", "convladder.stages() lists"},
      {"try ./lab run with --shape", "give a shape"},
      {"--input", "the input"},
      {"--filter", "the filter"},
      {"--stage", "stages"},
      {"--track", "tracks"},
      {"--shape groups", "groups"},
      {"--shape", "shape"},
      {"--configuration", "configuration"},
  };
  for (const auto& [option, words] : kWords)
    for (std::size_t at = 0; (at = message.find(option, at)) != std::string::npos; at += words.size())
      message.replace(at, option.size(), words);
  return message;
}

/// Raises the exception of convladder.errors that belongs to one of the harness's.
void translate(const std::exception_ptr& thrown, void*) {
  const auto raise = [](const char* name, const char* message) {
    PyErr_SetString(nb::module_::import_("convladder.errors").attr(name).ptr(), message);
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const FaultError& error) {
    const nb::object type = nb::module_::import_("convladder.errors").attr("Fault");
    PyErr_SetObject(type.ptr(), type(error.what(), text_of(faults_json(error.faults))).ptr());
  } catch (const RefusedError& error) {
    raise("Refused", error.what());
  } catch (const UsageError& error) {
    raise("BadInput", in_python(error.what()).c_str());
  } catch (const MachineError& error) {
    raise("MachineError", error.what());
  } catch (const DeviceError& error) {
    raise("DeviceError", error.what());
  } catch (const std::bad_alloc&) {
    raise("MachineError", "not enough memory; choose a smaller problem");
  }
}

}  // namespace
}  // namespace convladder

NB_MODULE(CONVLADDER_MODULE, module) {
  using namespace convladder;
  nb::register_exception_translator(translate);
  module.def("stages", &stages_json);
  module.def("no_gpu_reason", &no_gpu_reason);
  module.def("tensors_of", &tensors_of);
  module.def("has_epilogue", &has_epilogue);
  module.def("name_of", [](const std::string& stage) { return std::string(find_stage(stage).name); });
  module.def("on_host", [](const std::string& stage) { return runs_on_host(find_stage(stage)); });
  module.def("refusal_of_arrays", &refusal_of_arrays, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
             nb::arg().none());
  module.def("refusal_of_shape", &refusal_of_shape);
  module.def("simulate", &simulate, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
             nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
  module.def("bench", &bench, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  nb::class_<Prepared>(module, "Prepared")
      .def(nb::init<const std::string&, const Shape&, const Shape&, const Floats&, const std::optional<Floats>&,
                    const std::optional<std::string>&, const std::string&, const std::string&>(),
           nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none(), nb::arg(), nb::arg())
      .def_prop_ro("output_shape", &Prepared::output_shape)
      .def("require_residual", &Prepared::require_residual)
      .def("run", &Prepared::run, nb::arg(), nb::arg().none())
      .def("launch", &Prepared::launch)
      .def("wait", &Prepared::wait);
}

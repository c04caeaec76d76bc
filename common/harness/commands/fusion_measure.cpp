#include "common/harness/commands/fusion_measure.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "common/harness/commands/fusion_space.hpp"
#include "common/harness/commands/tune_command.hpp"
#include "common/harness/commands/tuner.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/text_table.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/harness/ladder/workloads.hpp"
#include "common/harness/report/report.hpp"
#include "common/harness/report/text_report.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"
#include "common/harness/run/user_problem.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kFirst = 26, kLast = 30;
constexpr int kPointSamples = 5;              // of a point's time
constexpr double kSharedBytesPerClock = 128;  // of a multiprocessor: 32 banks of 4 bytes
constexpr std::size_t kFarthest = 3;          // points that the report names

std::vector<const StageInfo*> chosen_stages(const MeasureCommand& command) {
  std::vector<const StageInfo*> chosen;
  for (const std::string& name : command.stages) {
    const StageInfo& stage = find_stage(name);
    if (stage.number < kFirst || stage.number > kLast)
      throw UsageError(fmt::format("--measure is for the stages {} to {}; got {}", kFirst, kLast, stage.folder));
    if (std::find(chosen.begin(), chosen.end(), &stage) == chosen.end()) chosen.push_back(&stage);
  }
  if (!command.stages.empty()) return chosen;
  for (const StageInfo& stage : stages())
    if (stage.number >= kFirst && stage.number <= kLast) chosen.push_back(&stage);
  if (chosen.empty()) throw UsageError("this program has none of the stages 26 to 30; build all of it");
  return chosen;
}

// ---- What a configuration means -------------------------------------------------------------------------------------

const Knob* knob_named(const Configuration& configuration, std::string_view name) {
  const Knobs& knobs = configuration.knobs;
  const Knob* const found =
      std::find_if(knobs.knobs, knobs.knobs + knobs.count, [&](const Knob& knob) { return knob.name == name; });
  return found == knobs.knobs + knobs.count ? nullptr : found;
}

int number_of(const Configuration& configuration, const char* name, int otherwise) {
  return knob_named(configuration, name) ? configuration[name] : otherwise;
}

bool is_set_to(const Configuration& configuration, const char* name, std::string_view word) {
  const Knob* const knob = knob_named(configuration, name);
  return knob && value_text(*knob, configuration[name]) == word;
}

FusedPoint point_of(const StageInfo& stage, const Configuration& configuration) {
  FusedPoint point;
  const bool bytes = precision_of(stage) == Precision::int8;
  point.m = number_of(configuration, "m", bytes ? 2 : point.m);
  point.tbm = number_of(configuration, "tbm", point.tbm);
  point.tbn = number_of(configuration, "tbn", point.tbn);
  point.tbk = number_of(configuration, "tbk", point.tbk);
  point.element_bytes = bytes ? 1 : 2;
  point.sum_bytes = is_set_to(configuration, "sums", "int32") ? 4 : 2;
  point.shares_operands = stage.number == 26;
  if (stage.number == 28)
    point.form = is_set_to(configuration, "fused", "output") ? FusedForm::output : FusedForm::input;
  if (stage.number == 29) point.form = FusedForm::through_l2;
  if (stage.number == 30)
    point.form = is_set_to(configuration, "fusion", "llc") ? FusedForm::through_l2 : FusedForm::input;
  return point;
}

std::string configuration_text(const Configuration& configuration) {
  const Knobs& knobs = configuration.knobs;
  std::vector<std::string> items;
  for (int k = 0; k < knobs.count; ++k)
    items.push_back(fmt::format("{}={}", knobs.knobs[k].name, value_text(knobs.knobs[k], configuration.values[k])));
  return items.empty() ? "(no knobs)" : fmt::format("{}", fmt::join(items, ","));
}

// ---- The points -----------------------------------------------------------------------------------------------------

struct Point {
  const StageInfo* stage;
  std::optional<Configuration> configuration;  // none of a stage without knobs
  std::string text;                            // of the configuration
  std::vector<KernelModel> model;
  std::optional<double> foreseen_us;  // where there is time
  std::string bound;                  // of the kernel that takes longest by the model
  std::vector<FusionRule> broken;     // that concern it
  std::optional<RunResult> result;    // once it is measured

  /// Microseconds on a GPU, in the simulator bytes of the sectors that were asked for; none where it is not right.
  std::optional<double> measured() const {
    if (!result || result->status != Status::ok) return std::nullopt;
    if (result->time_us) return result->time_us->median;
    if (!result->counters) return std::nullopt;
    return 32.0 * static_cast<double>(result->counters->global_load_sectors + result->counters->global_store_sectors);
  }
  /// The same by the model.
  double foreseen() const {
    if (foreseen_us) return *foreseen_us;
    double bytes = 0;
    for (const KernelModel& kernel : model) bytes += kernel.l2_bytes;
    return bytes;
  }
  std::optional<double> ratio() const {
    const std::optional<double> value = measured();
    if (!value) return std::nullopt;
    return *value / foreseen();
  }
};

ModelCeilings ceilings_for(const StageInfo& stage, const Ceilings& measured, const DeviceInfo& device) {
  return {measured.dram_bytes_per_s, measured.l2_bytes_per_s,
          kSharedBytesPerClock * device.multiprocessors * device.sm_clock_mhz * 1e6,
          precision_of(stage) == Precision::int8 ? measured.int8_ops_per_s : measured.fp16_flops_per_s,
          measured.launch_us};
}

void foresee(Point& point, const ConvProblem& problem, const std::optional<Ceilings>& measured) {
  const DeviceInfo device = device_info();
  const FusedPoint fused = point_of(*point.stage, point.configuration.value_or(Configuration{}));
  point.model = fused_model(problem, fused, device_limits().l2_bytes);
  if (measured) {
    const ModelCeilings ceilings = ceilings_for(*point.stage, *measured, device);
    double longest = 0, all = 0;
    for (const KernelModel& kernel : point.model) {
      const char* bound = "";
      const double time = kernel_time(kernel, ceilings, &bound);
      if (time > longest) point.bound = fmt::format("{}: {}", kernel.name, bound);
      longest = std::max(longest, time);
      all += time;
    }
    point.foreseen_us = all;
  }
  if (fused.form != FusedForm::input && fused.form != FusedForm::through_l2) return;
  const DeviceLimits limits = device_limits();
  const FusionGpu gpu{device.name, limits.shared_bytes_per_block, limits.l2_bytes, limits.multiprocessors, 0};
  const Fusion fusion = fused.form == FusedForm::input ? Fusion::shmem : Fusion::llc;
  for (const FusionRule rule :
       fusion_point(FusionLayer(problem, fused.m, fused.element_bytes), gpu, fused.tbm, fused.tbn, fused.tbk).broken)
    if (concerns(rule, fusion)) point.broken.push_back(rule);
}

/// Every configuration of the stage that its own rules let in here; without knobs, the one that there is.
std::vector<Point> points_of(const StageInfo& info, const ConvProblem& problem) {
  const std::unique_ptr<Stage> stage(info.make());
  const auto* const tunable = dynamic_cast<const TunableStage*>(stage.get());
  if (!tunable) return {{&info, std::nullopt, configuration_text({}), {}, {}, "", {}, {}}};
  const DeviceLimits limits = device_limits();
  const auto same = [](const Configuration& a, const Configuration& b) {
    return std::equal(std::begin(a.values), std::end(a.values), std::begin(b.values));
  };
  // A value that leaves the choice to the stage is the twin of what it chooses.
  const Space space(tunable->knobs(), [&](const Configuration& point) {
    return same(tunable->decided(problem, limits, point), point) &&
           tunable->check_configuration(problem, limits, point).accepted();
  });
  std::vector<Point> points;
  for (const Configuration& point : space.valid())
    points.push_back({&info, point, configuration_text(point), {}, {}, "", {}, {}});
  return points;
}

// ---- The report -----------------------------------------------------------------------------------------------------

std::string value_text_of(const Point& point, double value) {
  return point.foreseen_us ? time_text(value) : bytes_text(std::llround(value));
}

std::string rules_text(const Point& point) {
  std::string text;
  for (const FusionRule rule : point.broken) text += static_cast<char>('a' + static_cast<int>(rule));
  return text.empty() ? "-" : text;
}

/// Those that are right, fastest first.
std::vector<const Point*> right_points(const std::vector<Point>& points) {
  std::vector<const Point*> right;
  for (const Point& point : points)
    if (point.measured()) right.push_back(&point);
  std::stable_sort(right.begin(), right.end(),
                   [](const Point* a, const Point* b) { return *a->measured() < *b->measured(); });
  return right;
}

/// How far a ratio is from 1, either way.
double distance(const Point& point) { return std::abs(std::log(*point.ratio())); }

/// Where the model is wrong: its choice for each stage, and the points that are farthest from it.
std::string findings_text(const std::vector<const Point*>& right, const std::vector<const StageInfo*>& stages) {
  std::string text;
  for (const StageInfo* const stage : stages) {
    const Point *fastest = nullptr, *choice = nullptr;
    std::size_t place = 0, points = 0;
    for (const Point* point : right) {
      if (point->stage != stage) continue;
      ++points;
      if (!fastest) fastest = point;
      if (!choice || point->foreseen() < choice->foreseen()) {
        choice = point;
        place = points;
      }
    }
    if (!fastest) continue;
    text += fmt::format("{}: least {} with {}; of what the model foresees least, {} is number {} of {}: {}\n",
                        stage->folder, value_text_of(*fastest, *fastest->measured()), fastest->text, choice->text,
                        place, points, ratio_text(*choice->measured() / *fastest->measured()));
  }
  std::vector<const Point*> far = right;
  std::stable_sort(far.begin(), far.end(), [](const Point* a, const Point* b) { return distance(*a) > distance(*b); });
  if (far.size() > kFarthest) far.resize(kFarthest);
  text += "farthest from the model:\n";
  for (const Point* point : far)
    text += fmt::format("  {} {}: {} where {} is foreseen\n", point->stage->folder, point->text,
                        value_text_of(*point, *point->measured()), value_text_of(*point, point->foreseen()));
  return text;
}

std::string table_text(const std::vector<const Point*>& right) {
  const bool time = !right.empty() && right.front()->foreseen_us;
  TextTable table({"stage", "configuration", time ? "measured" : "counted", "foreseen", "ratio", "by", "breaks"}, 2);
  for (const Point* point : right)
    table.add({std::string(point->stage->folder), point->text, value_text_of(*point, *point->measured()),
               value_text_of(*point, point->foreseen()), fmt::format("{:.2f}", *point->ratio()),
               point->bound.empty() ? "-" : point->bound, rules_text(*point)});
  return table.text();
}

Json json_of(const Point& point) {
  Json configuration = Json::object(), kernels = Json::array(), broken = Json::array();
  if (point.configuration) {
    const Knobs& knobs = point.configuration->knobs;
    for (int k = 0; k < knobs.count; ++k)
      configuration[knobs.knobs[k].name] = value_text(knobs.knobs[k], point.configuration->values[k]);
  }
  for (const KernelModel& kernel : point.model)
    kernels.push_back({{"name", kernel.name},
                       {"dram_bytes", kernel.dram_bytes},
                       {"l2_bytes", kernel.l2_bytes},
                       {"shared_bytes", kernel.shared_bytes},
                       {"operations", kernel.operations}});
  for (const FusionRule rule : point.broken) broken.push_back(key_of(rule));
  const auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"stage", point.stage->name},
          {"number", point.stage->number},
          {"configuration", std::move(configuration)},
          {"status", point.result ? to_string(point.result->status) : "not measured"},
          {"reason", point.result ? point.result->reason : ""},
          {"measured", or_null(point.measured())},
          {"foreseen", point.foreseen()},
          {"ratio", or_null(point.ratio())},
          {"bound", point.bound},
          {"broken", std::move(broken)},
          {"model", std::move(kernels)}};
}

ConvProblem chosen_problem(const MeasureCommand& command) {
  if (!command.shape) return workloads_of(track_of(find_stage("26")).name, backend()).front().problem;
  return parse_fusion_layer(*command.shape);
}

}  // namespace

// ---- The model ------------------------------------------------------------------------------------------------------

std::vector<KernelModel> fused_model(const ConvProblem& problem, const FusedPoint& point, std::int64_t l2_bytes) {
  const FusionLayer layer(problem, point.m, point.element_bytes);
  const auto up = [](std::int64_t value, std::int64_t by) { return (value + by - 1) / by; };
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double positions = real(layer.side) * layer.side, tiles = real(layer.tiles), c = real(layer.c),
               k = real(layer.k);
  const double down = real(up(layer.tiles, point.tbm)), across = real(up(layer.k, point.tbn));
  const double input = 2 * real(problem.input_size()), output = 2 * real(problem.output_size());
  const double v = point.element_bytes * positions * tiles * c, u = point.element_bytes * positions * c * k;
  const double sums = point.sum_bytes * positions * tiles * k;
  const double pixels = 2 * positions * tiles * c;  // as tiles read them, with what they share
  const bool writes_v = point.form != FusedForm::input, writes_sums = point.form != FusedForm::output;

  KernelModel transform{"transform", input + v, pixels + v, 0, 0};
  KernelModel product{"product", 0, 0, 0, 0};
  product.operations =
      2 * positions * (down * point.tbm) * (across * point.tbn) * (real(up(layer.c, point.tbk)) * point.tbk);
  switch (point.form) {
    case FusedForm::none:
      product.dram_bytes = v + u + sums;
      product.l2_bytes = v * across + u * down + sums;
      if (point.shares_operands) product.shared_bytes = 2 * (v * across + u * down);
      break;
    case FusedForm::input:
      product.dram_bytes = input + u + sums;
      product.l2_bytes = pixels * across + u * down + sums;
      product.shared_bytes = 2 * v * across;
      break;
    case FusedForm::through_l2:
      product.dram_bytes = input + u + sums;
      product.l2_bytes = (pixels + 2 * v) * across + u * down + sums;
      break;
    case FusedForm::output:
      product.dram_bytes = v + u + output;
      product.l2_bytes = v * across + u * down + output;
      break;
  }
  KernelModel back{"back", sums + output, sums + output, 0, 0};

  std::vector<KernelModel> kernels;
  if (point.form == FusedForm::none || point.form == FusedForm::output) kernels.push_back(transform);
  kernels.push_back(product);
  if (writes_sums) kernels.push_back(back);
  const bool v_is_a_tensor = writes_v && point.form != FusedForm::through_l2;
  const double all = input + output + u + (v_is_a_tensor ? v : 0) + (writes_sums ? sums : 0);
  if (all <= real(l2_bytes))
    for (KernelModel& kernel : kernels) kernel.dram_bytes = 0;
  return kernels;
}

double kernel_time(const KernelModel& kernel, const ModelCeilings& ceilings, const char** bound) {
  struct Term {
    const char* name;
    double amount, ceiling;
  };
  double longest = 0;
  *bound = "start";
  for (const Term& term : {Term{"DRAM", kernel.dram_bytes, ceilings.dram}, Term{"L2", kernel.l2_bytes, ceilings.l2},
                           Term{"shared memory", kernel.shared_bytes, ceilings.shared},
                           Term{"Tensor Cores", kernel.operations, ceilings.tensor_cores}}) {
    if (term.ceiling <= 0 || 1e6 * term.amount / term.ceiling <= longest) continue;
    longest = 1e6 * term.amount / term.ceiling;
    *bound = term.name;
  }
  return longest + ceilings.launch_us;
}

// ---- The command ----------------------------------------------------------------------------------------------------

void require_usable(const MeasureCommand& command) {
  chosen_stages(command);
  if (command.shape) parse_fusion_layer(*command.shape);
  if (!(command.budget >= 0))
    throw UsageError(fmt::format("--budget must be a number of seconds, 0 for no end; got {}", command.budget));
}

int measure_command(const MeasureCommand& command) {
  const std::vector<const StageInfo*> chosen = chosen_stages(command);
  const ConvProblem problem = chosen_problem(command);
  require_valid(problem);
  std::vector<Point> points;
  for (const StageInfo* const stage : chosen) {
    if (const std::string rule = refusal(*stage, problem, nullptr); !rule.empty()) {
      print_stderr("{} is left out: {}\n", stage->folder, rule);
      continue;
    }
    std::vector<Point> more = points_of(*stage, problem);
    std::move(more.begin(), more.end(), std::back_inserter(points));
  }
  if (points.empty()) throw RefusedError("no stage has a point for this layer on this device; see the rules above");

  std::optional<Ceilings> ceilings;
  if (backend() == Backend::gpu) ceilings = measure_ceilings();
  for (Point& point : points) foresee(point, problem, ceilings);
  // What the budget does not reach is what the model expects least of.
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.foreseen() < b.foreseen(); });

  UserProblem user;
  user.problem = problem;
  const Workload workload = make_workload(std::move(user), 1);
  const Clock::time_point start = Clock::now();
  std::size_t done = 0;
  bool failed = false;
  for (Point& point : points) {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (done > 0 && command.budget > 0 && seconds > command.budget) break;
    print_stderr("{}/{}  {} {} ... ", ++done, points.size(), point.stage->folder, point.text);
    RunOptions options = trial_options(kPointSamples);
    options.configuration = point.configuration;
    point.result = run_stage(*point.stage, workload, options);
    const std::optional<double> value = point.measured();
    print_stderr("{}\n", value ? value_text_of(point, *value)
                               : fmt::format("{}: {}", to_string(point.result->status), point.result->reason));
    failed = failed || (!value && point.result->status != Status::refused);
  }

  const std::vector<const Point*> right = right_points(points);
  if (command.json) {
    Json all = Json::array();
    for (const Point* point : right) all.push_back(json_of(*point));
    for (const Point& point : points)
      if (!point.measured()) all.push_back(json_of(point));
    Json its = nullptr;
    if (ceilings)
      its = {{"dram_bytes_per_s", ceilings->dram_bytes_per_s},
             {"l2_bytes_per_s", ceilings->l2_bytes_per_s},
             {"shared_bytes_per_s", ceilings_for(*chosen.front(), *ceilings, device_info()).shared},
             {"fp16_flops_per_s", ceilings->fp16_flops_per_s},
             {"int8_ops_per_s", ceilings->int8_ops_per_s},
             {"launch_us", ceilings->launch_us}};
    fmt::print("{}", text_of(Json{{"device", device_info().name},
                                  {"unit", ceilings ? "us" : "bytes"},
                                  {"shape", to_string(problem)},
                                  {"ceilings", std::move(its)},
                                  {"points", std::move(all)}}));
    return failed ? 1 : 0;
  }
  fmt::print("{}\n{}: {} of {} points measured, {} of them right\n\n", device_line(device_info()), to_string(problem),
             done, points.size(), right.size());
  if (!right.empty()) fmt::print("{}\n{}", table_text(right), findings_text(right, chosen));
  return failed ? 1 : 0;
}

}  // namespace convladder

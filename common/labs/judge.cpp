/// @file
/// Makes the cases of a lab and gives the marks. It holds the right results, and never runs a student's code: that is
/// the runner's part (runner.cpp), in a process of its own.
///
///     lab-judge cases LAB.json SEED CASES
///     lab-judge marks LAB.json SEED RESULTS [GPU_RESULTS]
///
/// `cases` writes CASES/cases.json, [{shape, padding, elements, output_step, lines, threads}...], and for each case N
/// its tensors as N.input.npy and N.filter.npy. `marks` makes the same cases again, compares what the runner left, and
/// prints {title, minutes, score, max_score, checks: [{name, score, max_score, messages, measured, waits, right,
/// shapes, lost_in, hints}...], cases: [{name, fault, stopped}...]}: `lost_in` are the numbers of the cases that cost a
/// line marks, `fault` is the first that the simulator met in a case, `stopped` why a case did not run to its end,
/// `waits` that a line is graded once outputs are right.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/harness/check/checker.hpp"
#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/check/quantise.hpp"
#include "common/harness/check/reference.hpp"
#include "common/harness/check/winograd_error.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/host.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/npy.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/stage/counters.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// ---- The lab's description, lab.json --------------------------------------------------------------------------------

/// Exponents of powers of two that are drawn as factors: from `least` to `most`.
struct Powers {
  int least = 0, most = 0;
  bool operator==(const Powers&) const = default;
  std::string text() const {
    return least == most ? fmt::format("2^{}", least) : fmt::format("2^{}..2^{}", least, most);
  }
};

/// One launch of the exercise.
struct Case {
  std::string shape;
  Padding padding = Padding::zero;
  InputKind inputs = InputKind::normal;
  double times = 1;      ///< a factor of both tensors
  int roundings = 0;     ///< that its sums may have; 0: as many as a direct sum
  Powers pixels = {};    ///< of the input: a factor for each pixel
  Powers groups = {};    ///< and one for each pixel's each kGroup channels; if any, some groups are 0
  bool lines = false;    ///< counted line by line, for a counter's message
  bool threads = false;  ///< it is of interest how many work on it

  bool same_run(const Case& other) const {
    const auto key = [](const Case& c) { return std::tie(c.shape, c.padding, c.inputs, c.times, c.roundings); };
    return key(*this) == key(other) && pixels == other.pixels && groups == other.groups;
  }
  std::string name() const {
    return fmt::format(
        "{}{}{}{}{}{}{}", shape, padding == Padding::zero ? "" : " ",
        padding == Padding::zero ? "" : to_string(padding), inputs == InputKind::uniform ? " uniform" : "",
        times == 1 ? "" : fmt::format(" times {:g}", times), pixels == Powers() ? "" : " pixels times " + pixels.text(),
        groups == Powers() ? "" : " groups times " + groups.text());
  }
  ConvProblem problem() const {
    ConvProblem problem = parse_shape(shape);
    problem.padding = padding;
    return problem;
  }
};

/// How much of a counter one case may show, and must.
struct Bound {
  std::string counter;
  std::int64_t Counters::*member = nullptr;
  enum class Per { run, output, product } per = Per::run;
  std::optional<double> at_least, at_most;
};

/// A line of the marks: earned if the outputs of its cases are right, in proportion where some are; if its bounds are
/// kept; if all threads stored some of them; or if no case had a fault.
struct Check {
  std::string name;
  std::string hints;  ///< as JSON: texts, the general first; of no_faults a text for each kind of fault, or texts
  int points = 0;
  std::vector<std::size_t> cases;  ///< of the lab; unused for no_faults
  std::vector<Bound> bounds;
  bool no_faults = false;
  bool all_threads = false;
};

struct Lab {
  std::string title;
  int minutes = 0;
  bool on_host = false;   ///< the exercise is C++ for the host
  bool circular = false;  ///< compared with the signal continued periodically, instead of the problem's padding
  FilterForm filter = FilterForm::dense;
  Precision precision = Precision::fp32;
  bool nhwc = false;      ///< whether its floats are in NHWC, as halves and bytes always are
  WinogradForm winograd;  ///< how it computes, unless m is 0
  std::vector<Case> cases;
  std::vector<Check> checks;
};

/// The number of the case in the lab, which it is added to if it is new.
std::size_t case_number(Lab& lab, const Case& a_case) {
  const auto same = [&](const Case& other) { return other.same_run(a_case); };
  const auto found = std::find_if(lab.cases.begin(), lab.cases.end(), same);
  if (found != lab.cases.end()) return static_cast<std::size_t>(found - lab.cases.begin());
  lab.cases.push_back(a_case);
  validate(lab.cases.back().problem(), host_memory_bytes());
  return lab.cases.size() - 1;
}

void require_keys(const Json& json, std::initializer_list<std::string_view> known) {
  for (const auto& item : json.items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      throw UsageError("there is no key " + in_quotes(item.key()) + " here");
}

Bound read_bound(const Json& json) {
  Bound bound;
  bound.counter = json.at("counter").get<std::string>();
  for (const CounterField& field : kCounterFields)
    if (bound.counter == field.name && bound.counter != "flops") bound.member = field.member;
  if (!bound.member) throw UsageError("there is no counter " + in_quotes(bound.counter));
  if (const std::string per = json.value("per", "run"); per == "output" || per == "product")
    bound.per = per == "output" ? Bound::Per::output : Bound::Per::product;
  else if (json.contains("per"))
    throw UsageError("\"per\" must be \"output\" or \"product\", or absent");
  if (json.contains("at_least")) bound.at_least = json.at("at_least").get<double>();
  if (json.contains("at_most")) bound.at_most = json.at("at_most").get<double>();
  if (!bound.at_least && !bound.at_most) throw UsageError("a counter needs \"at_most\" or \"at_least\"");
  return bound;
}

/// Those of `json`, [LEAST, MOST], or 2^0 alone.
Powers read_powers(const Lab& lab, const Json& json, const char* key) {
  if (!json.contains(key)) return {};
  const Json& ends = json.at(key);
  constexpr int kFurthest = 148;  // of 2^-149, fp32's least
  const auto is_power = [](const Json& end) {
    return end.is_number_integer() && end >= -kFurthest && end <= kFurthest;
  };
  if (lab.precision != Precision::fp32 || lab.winograd.m > 0 || !ends.is_array() || ends.size() != 2 ||
      !is_power(ends[0]) || !is_power(ends[1]) || ends[0] > ends[1])
    throw UsageError(
        fmt::format("\"{}\" must be two integers within -{} and {}, the smaller first, in a lab of direct "
                    "sums in fp32, or absent",
                    key, kFurthest, kFurthest));
  return {ends[0].get<int>(), ends[1].get<int>()};
}

void read_shapes(Lab& lab, const Json& json, Check& check) {
  if (json.contains("input") && json.at("input") != "uniform")
    throw UsageError("\"input\" must be \"uniform\", or absent");
  const InputKind inputs = json.contains("input") ? InputKind::uniform : InputKind::normal;
  const int roundings = json.value("roundings", 0);
  if (json.contains("roundings") && (roundings <= 0 || lab.precision != Precision::fp32 || lab.winograd.m > 0))
    throw UsageError("\"roundings\" must be a positive integer, in a lab of direct sums in fp32, or absent");
  const Powers pixels = read_powers(lab, json, "pixel_powers"), groups = read_powers(lab, json, "group_powers");
  for (const Json& shape : json.at("right")) {
    for (const Json& mode : json.value("padding", Json::array({"zero"}))) {
      const Padding padding = parse_padding(mode.get<std::string>());
      const ConvProblem problem = parse_shape(shape.get<std::string>());
      if (padding == Padding::reflect && (problem.pad_w >= problem.w || problem.pad_h >= problem.h))
        continue;  // not defined
      for (const Json& times : json.value("times", Json::array({1}))) {
        if (times.get<double>() <= 0) throw UsageError("\"times\" must be positive numbers");
        check.cases.push_back(case_number(
            lab, {shape.get<std::string>(), padding, inputs, times.get<double>(), roundings, pixels, groups}));
      }
    }
  }
  if (check.cases.empty()) throw UsageError("\"right\" names no shape to run");
}

/// "hint", a text, or "hints": a list of them, or of "no_faults" an object of a text for each kind of fault.
std::string read_hints(const Json& json) {
  if (json.contains("hint") == json.contains("hints")) throw UsageError("a line has either \"hint\" or \"hints\"");
  const Json hints = json.contains("hint") ? Json::array({json.at("hint")}) : json.at("hints");
  if (hints.empty() || !(hints.is_array() || (hints.is_object() && json.contains("no_faults"))) ||
      !std::all_of(hints.begin(), hints.end(), [](const Json& hint) { return hint.is_string(); }))
    throw UsageError("\"hints\" must be texts");
  return hints.dump();
}

Check read_check(Lab& lab, const Json& json) {
  Check check;
  check.name = json.at("name").get<std::string>();
  check.hints = read_hints(json);
  check.points = json.at("points").get<int>();
  if (check.points <= 0 || json.at("points") != check.points) throw UsageError("\"points\" must be a positive integer");
  if (json.contains("right")) {
    require_keys(json, {"name", "points", "hint", "hints", "right", "padding", "input", "times", "roundings",
                        "pixel_powers", "group_powers"});
    read_shapes(lab, json, check);
  } else if (json.contains("all_threads")) {
    require_keys(json, {"name", "points", "hint", "hints", "all_threads"});
    for (const Json& shape : json.at("all_threads")) {
      check.cases.push_back(case_number(lab, {shape.get<std::string>()}));
      lab.cases[check.cases.back()].threads = true;
    }
    if (check.cases.empty() || !lab.on_host)
      throw UsageError("\"all_threads\" names the shapes of a lab that runs on the host");
    check.all_threads = true;
  } else if (json.contains("counter")) {
    require_keys(json, {"name", "points", "hint", "hints", "counter", "per", "at_least", "at_most", "shape", "and"});
    check.bounds.push_back(read_bound(json));
    for (const Json& further : json.value("and", Json::array())) {
      require_keys(further, {"counter", "per", "at_least", "at_most"});
      check.bounds.push_back(read_bound(further));
    }
    check.cases.push_back(case_number(lab, {json.at("shape").get<std::string>()}));
    lab.cases[check.cases.back()].lines = true;
  } else {
    require_keys(json, {"name", "points", "hint", "hints", "no_faults"});
    check.no_faults = json.at("no_faults").get<bool>();
    if (!check.no_faults) throw UsageError("\"no_faults\" must be true");
  }
  return check;
}

void read_precision(Lab& lab, const Json& json) {
  if (json.contains("dtype")) {
    const std::string dtype = json.at("dtype").get<std::string>();
    if (dtype != "fp16" && dtype != "int8") throw UsageError("\"dtype\" must be \"fp16\" or \"int8\", or absent");
    if (lab.on_host) throw UsageError("a lab that runs on the host has no \"dtype\"");
    lab.precision = dtype == "fp16" ? Precision::fp16 : Precision::int8;
  }
  if (json.contains("layout")) {
    if (json.at("layout") != "NHWC" || lab.precision != Precision::fp32 || lab.on_host)
      throw UsageError("\"layout\" must be \"NHWC\", of a lab in fp32 that does not run on the host, or absent");
    lab.nhwc = true;
  }
  if (json.contains("winograd")) {
    const Json& form = json.at("winograd");
    require_keys(form, {"m", "fractions", "half_products", "along_height"});
    lab.winograd = {form.at("m").get<int>(), form.value("fractions", false), lab.precision,
                    form.value("half_products", false), form.value("along_height", false)};
    if (lab.winograd.m != 2 && lab.winograd.m != 4 && lab.winograd.m != 6) throw UsageError("\"m\" must be 2, 4 or 6");
  }
}

/// @throws UsageError that names the file if it is no description of a lab
Lab read_lab(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw UsageError("cannot read " + in_quotes(path.string()));
  try {
    const Json json = Json::parse(file);
    require_keys(json, {"title", "minutes", "runs", "reference", "filter", "dtype", "layout", "winograd", "checks"});
    Lab lab;
    lab.title = json.at("title").get<std::string>();
    lab.minutes = json.at("minutes").get<int>();
    if (json.contains("runs") && json.at("runs") != "host") throw UsageError("\"runs\" must be \"host\", or absent");
    lab.on_host = json.contains("runs");
    if (json.contains("reference") && json.at("reference") != "circular")
      throw UsageError("\"reference\" must be \"circular\", or absent");
    lab.circular = json.contains("reference");
    if (json.contains("filter")) {
      if (json.at("filter") != "rank-one") throw UsageError("\"filter\" must be \"rank-one\", or absent");
      lab.filter = FilterForm::rank_one;
    }
    read_precision(lab, json);
    int points = 0;
    for (const Json& check : json.at("checks")) {
      lab.checks.push_back(read_check(lab, check));
      const auto same = [&](const Check& other) { return other.name == lab.checks.back().name; };
      if (std::count_if(lab.checks.begin(), lab.checks.end(), same) > 1)
        throw UsageError("two checks have the name " + in_quotes(lab.checks.back().name));
      points += lab.checks.back().points;
    }
    if (points != 100) throw UsageError(fmt::format("the points add up to {}; make them 100", points));
    return lab;
  } catch (const Json::exception& error) {
    throw UsageError(fmt::format("{}: {}", path.string(), error.what()));
  } catch (const std::runtime_error& error) {  // UsageError, RefusedError
    throw UsageError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

// ---- Cases ----------------------------------------------------------------------------------------------------------

/// Channels that have a factor in common.
constexpr std::int64_t kGroup = 64;
/// One group in so many is 0, in all its channels.
constexpr std::uint64_t kGroupsPerZero = 8;

/// Multiplies the input by the case's powers of two. What is past fp32's range below is rounded as the format has it.
void spread_sizes(const Case& a_case, const ConvProblem& problem, std::uint64_t seed, std::vector<float>& input) {
  if (a_case.pixels == Powers() && a_case.groups == Powers()) return;
  std::mt19937_64 random(seed);  // the same numbers everywhere
  const auto draw = [&](const Powers& powers) {
    return powers.least + static_cast<int>(random() % static_cast<std::uint64_t>(powers.most - powers.least + 1));
  };
  const bool with_zeros = a_case.groups != Powers();
  const std::int64_t plane = problem.h * problem.w;
  for (std::int64_t pixel = 0; pixel < problem.n * plane; ++pixel) {
    const int of_pixel = draw(a_case.pixels);
    for (std::int64_t first = 0; first < problem.c; first += kGroup) {
      const int exponent = of_pixel + draw(a_case.groups);
      const bool zero = with_zeros && random() % kGroupsPerZero == 0;
      for (std::int64_t c = first; c < std::min(first + kGroup, problem.c); ++c) {
        float& value = input[static_cast<std::size_t>((pixel / plane * problem.c + c) * plane + pixel % plane)];
        value = zero ? 0.0f : std::ldexp(value, exponent);
      }
    }
  }
}

HostTensors tensors_of(const Lab& lab, std::size_t number, std::uint64_t seed) {
  const Case& a_case = lab.cases[number];
  HostTensors tensors = make_inputs(a_case.problem(), a_case.inputs, lab.filter, seed + number);
  for (std::vector<float>* tensor : {&tensors.input, &tensors.filter})
    for (float& value : *tensor) value *= static_cast<float>(a_case.times);
  spread_sizes(a_case, a_case.problem(), seed + number, tensors.input);
  return tensors;
}

std::vector<std::int64_t> input_shape(const ConvProblem& p) { return {p.n, p.c, p.h, p.w}; }
std::vector<std::int64_t> filter_shape(const ConvProblem& p) { return {p.k, p.c / p.groups, p.r, p.s}; }

/// Of the exercise's tensors. Winograd's algorithm in int8 has halves, as stages have.
Elements elements_of(const Lab& lab) {
  if (lab.precision == Precision::int8 && lab.winograd.m == 0) return Elements::bytes;
  if (lab.precision != Precision::fp32) return Elements::halves;
  return lab.nhwc ? Elements::floats_nhwc : Elements::floats;
}

void write_cases(const Lab& lab, std::uint64_t seed, const fs::path& folder) {
  Json list = Json::array();
  for (std::size_t i = 0; i < lab.cases.size(); ++i) {
    const Case& a_case = lab.cases[i];
    const ConvProblem problem = a_case.problem();
    HostTensors tensors = tensors_of(lab, i, seed);
    const float output_step = elements_of(lab) == Elements::bytes
                                  ? int8_step(convolve_reference(problem, tensors.input, tensors.filter).output)
                                  : 1;
    write_npy(folder / fmt::format("{}.input.npy", i), {input_shape(problem), std::move(tensors.input)});
    write_npy(folder / fmt::format("{}.filter.npy", i), {filter_shape(problem), std::move(tensors.filter)});
    list.push_back({{"shape", a_case.shape},
                    {"padding", to_string(a_case.padding)},
                    {"elements", static_cast<int>(elements_of(lab))},
                    {"output_step", output_step},
                    {"lines", a_case.lines},
                    {"threads", a_case.threads}});
  }
  write_file(folder / "cases.json", list.dump());
}

/// The signal with `pad_w` samples on either side, as if it went on periodically: then no padding is left to do. Of
/// images the rows above and below, too.
std::pair<ConvProblem, std::vector<float>> continued(const ConvProblem& problem, const std::vector<float>& input) {
  ConvProblem longer = problem;
  longer.w = problem.w + 2 * problem.pad_w;
  longer.h = problem.h + 2 * problem.pad_h;
  longer.pad_w = longer.pad_h = 0;
  std::vector<float> samples;
  samples.reserve(static_cast<std::size_t>(longer.input_size()));
  const auto wrapped = [](std::int64_t i, std::int64_t size) { return (i % size + size) % size; };
  for (std::int64_t image = 0; image < problem.n * problem.c; ++image) {
    for (std::int64_t i = -problem.pad_h; i < problem.h + problem.pad_h; ++i) {
      const std::int64_t row = image * problem.h + wrapped(i, problem.h);
      for (std::int64_t j = -problem.pad_w; j < problem.w + problem.pad_w; ++j)
        samples.push_back(input[static_cast<std::size_t>(row * problem.w + wrapped(j, problem.w))]);
    }
  }
  return {longer, std::move(samples)};
}

// ---- Marks ----------------------------------------------------------------------------------------------------------

/// What came of one case on one device: "" where all is well, else a sentence.
struct Outcome {
  std::string wrong;    ///< why its output is not right
  std::string faulty;   ///< what went wrong while it ran, be the output right or not
  std::string fault;    ///< the first one, as the runner's JSON has it; "" where there is none
  std::string stopped;  ///< why it did not run to its end, other than by a fault
  Counters counters;
  std::vector<LineCounters> lines;
  int threads = 0, threads_stored = 0;  ///< how many there were, and how many have stored outputs
};

Counters counters_from(const Json& json) {
  Counters counters;
  for (const CounterField& field : kCounterFields) counters.*field.member = json.at(field.name).get<std::int64_t>();
  return counters;
}

std::string fault_text(const Json& fault) {
  const auto text = [&](const char* key) {
    return fault.at(key).is_string() ? fault.at(key).get<std::string>() : std::string();
  };
  const std::string kind = text("kind"), other = text("other");
  std::string sentence = kind;
  if (!text("file").empty())
    sentence += fmt::format(" at {}:{}", text("file"), fault.at("line").is_number() ? fault.at("line").get<int>() : 0);
  if (!text("kernel").empty())
    sentence += fault.at("whole_warp") ? fmt::format(", block {} warp {}", text("block"), fault.at("warp").get<int>())
                                       : fmt::format(", block {} thread {}", text("block"), text("thread"));
  if (other.empty()) return sentence;
  const char* relation = text("kernel").empty()        ? ": "
                         : kind == "race"              ? ", with "
                         : kind == "missing_wait"      ? ", of the copy at "
                         : kind == "divergent_barrier" ? "; others wait at "
                                                       : ": ";
  return sentence + relation + other;
}

/// A direct sum's; or that of two sums one after the other, if these are longer. A tap of rank one was rounded twice.
/// So was each of the three from which its column and row are made, and their quotient once: 9 roundings, and the
/// product. A line of the lab may allow fewer.
SumBound sum_bound(const Lab& lab, const Case& a_case, const ConvProblem& problem) {
  SumBound sum = direct_fp32_bound(problem);
  if (a_case.roundings > 0) sum.steps = a_case.roundings;
  if (lab.filter == FilterForm::rank_one)
    sum.steps = std::max(sum.steps, static_cast<double>(problem.r + problem.s) + 10);
  return sum;
}

CheckResult check_output(const Lab& lab, const Case& a_case, const ConvProblem& problem, const HostTensors& tensors,
                         const std::vector<float>& output) {
  const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  if (lab.winograd.m > 0)
    return check_output(problem, output, reference, winograd_bounds(problem, lab.winograd, tensors));
  if (lab.precision == Precision::fp16)
    return check_output(problem, output, reference, direct_half_bounds(problem, tensors, reference));
  if (lab.precision == Precision::int8)
    return check_output(problem, output, reference, direct_int8_bounds(problem, tensors, reference));
  return check_output(problem, output, reference, sum_bound(lab, a_case, problem));
}

/// Compares the output that the runner left for a case.
void compare(const Lab& lab, const Case& a_case, HostTensors tensors, const fs::path& file, Outcome& outcome) {
  if (!fs::exists(file)) {
    outcome.wrong = "no output";
    return;
  }
  ConvProblem problem = a_case.problem();
  const std::vector<float> output = read_npy(file).values;
  if (lab.circular) std::tie(problem, tensors.input) = continued(problem, tensors.input);
  const CheckResult result = check_output(lab, a_case, problem, tensors, output);
  outcome.wrong = result.message;
  if (result.unwritten > 0) outcome.faulty = result.message;
}

Outcome outcome_of(const Lab& lab, std::size_t number, std::uint64_t seed, const fs::path& folder) {
  const Case& a_case = lab.cases[number];
  const fs::path file = folder / fmt::format("{}.json", number);
  Outcome outcome;
  if (!fs::exists(file)) {
    outcome.wrong = outcome.faulty = outcome.stopped = "not run";
    return outcome;
  }
  const Json json = Json::parse(std::ifstream(file));
  const std::string status = json.at("status").get<std::string>();
  if (status == "refused") {
    outcome.wrong = outcome.faulty = "refused: " + json.at("reason").get<std::string>();
    return outcome;
  }
  if (status == "error") {
    outcome.wrong = outcome.faulty = outcome.stopped = json.at("reason").get<std::string>();
    return outcome;
  }
  compare(lab, a_case, tensors_of(lab, number, seed), folder / fmt::format("{}.output.npy", number), outcome);
  if (status == "fault") {
    const Json& fault = json.at("faults").at(0);
    outcome.fault = fault.dump();
    outcome.faulty = fault_text(fault);
    if (!outcome.wrong.empty()) outcome.wrong = outcome.faulty + "; " + outcome.wrong;
  }
  if (!json.contains("counters")) return outcome;  // on a GPU
  outcome.threads = json.at("threads").at("all").get<int>();
  outcome.threads_stored = json.at("threads").at("stored").get<int>();
  outcome.counters = counters_from(json.at("counters"));
  for (const Json& line : json.at("lines")) {
    outcome.lines.push_back(
        {line.at("file").get<std::string>(), line.at("line").get<int>(), counters_from(line.at("counters"))});
  }
  return outcome;
}

/// Where the counter comes from: the lines with the most of it.
std::vector<std::string> costly_lines(const Bound& bound, std::vector<LineCounters> lines) {
  const auto count = [&](const LineCounters& line) { return line.counters.*bound.member; };
  std::stable_sort(lines.begin(), lines.end(),
                   [&](const LineCounters& a, const LineCounters& b) { return count(a) > count(b); });
  constexpr std::size_t kShown = 3;
  std::vector<std::string> texts;
  for (const LineCounters& line : lines)
    if (texts.size() < kShown && count(line) > 0)
      texts.push_back(fmt::format("{} of them at {}:{}", count(line), line.file, line.line));
  return texts;
}

/// Without an exponent: an integer in full, what is large to the next one, the rest with six digits.
std::string number(double value) {
  return value == std::floor(value) || value >= 1e6 ? fmt::format("{:.0f}", value) : fmt::format("{:.6g}", value);
}

/// A counter of a case, and its bound.
struct Measured {
  bool kept;
  std::string text;  ///< "global_load_bytes per output is 4.156; at most 4.05"

  Measured(const Bound& bound, const Case& a_case, const Outcome& outcome) {
    const ConvProblem problem = a_case.problem();
    const auto per = bound.per == Bound::Per::run      ? 1.0
                     : bound.per == Bound::Per::output ? static_cast<double>(problem.output_size())
                                                       : static_cast<double>(problem.flops()) / 2;
    const double value = static_cast<double>(outcome.counters.*bound.member) / per;
    kept = (!bound.at_most || value <= *bound.at_most) && (!bound.at_least || value >= *bound.at_least);
    text = fmt::format("{}{} is {}", bound.counter,
                       bound.per == Bound::Per::run      ? ""
                       : bound.per == Bound::Per::output ? " per output"
                                                         : " per product",
                       number(value));
    if (bound.at_most) text += "; at most " + number(*bound.at_most);
    if (bound.at_least) text += "; at least " + number(*bound.at_least);
  }
};

/// The sentences of the first two cases, of `all`, and how many more there are.
std::vector<std::string> messages_of(const Lab& lab, const std::vector<std::size_t>& cases, std::size_t all,
                                     const std::vector<Outcome>& outcomes, std::string Outcome::*member) {
  constexpr std::size_t kShown = 2;
  std::vector<std::string> messages;
  for (std::size_t i = 0; i < std::min(cases.size(), kShown); ++i)
    messages.push_back(fmt::format("{}: {}", lab.cases[cases[i]].name(), outcomes[cases[i]].*member));
  if (cases.size() > kShown) messages.push_back(fmt::format("and {} more of {} shapes", cases.size() - kShown, all));
  return messages;
}

/// What is to be said of a line: it is lost if there are messages.
struct Remarks {
  std::vector<std::string> messages;
  std::vector<std::size_t> lost_in;  ///< the cases that cost it marks
  bool too_early = false;            ///< its turn comes once outputs are right: until then its hint is of no use
  std::string measured;              ///< of a counter whose bound is kept
};

/// Those of the cases in which `member` is not empty.
std::vector<std::size_t> cases_with(const std::vector<std::size_t>& cases, const std::vector<Outcome>& outcomes,
                                    std::string Outcome::*member) {
  std::vector<std::size_t> found;
  for (const std::size_t number : cases)
    if (!(outcomes[number].*member).empty()) found.push_back(number);
  return found;
}

Remarks too_early(const Lab& lab, std::size_t number) {
  return {{fmt::format("graded as soon as the output of {} is right", lab.cases[number].name())}, {number}, true, ""};
}

Remarks remarks_on(const Lab& lab, const Check& check, const std::vector<Outcome>& outcomes) {
  Remarks remarks;
  if (check.no_faults) {
    // Code that computes nothing right earns nothing for having no faults.
    const auto is_right = [](const Outcome& outcome) { return outcome.wrong.empty(); };
    const auto has_fault = [](const Outcome& outcome) { return !outcome.fault.empty(); };
    std::vector<std::size_t> all(lab.cases.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    remarks.lost_in = cases_with(all, outcomes, &Outcome::faulty);
    remarks.messages = messages_of(lab, remarks.lost_in, all.size(), outcomes, &Outcome::faulty);
    if (std::none_of(outcomes.begin(), outcomes.end(), is_right) &&
        std::none_of(outcomes.begin(), outcomes.end(), has_fault))
      return {{"graded as soon as a shape is right"}, remarks.lost_in, true, ""};
  } else if (check.all_threads) {
    for (const std::size_t number : check.cases) {
      const Outcome& outcome = outcomes[number];
      if (!outcome.wrong.empty()) return too_early(lab, number);
      const std::string text = fmt::format("{}: {} of {} threads store outputs", lab.cases[number].name(),
                                           outcome.threads_stored, outcome.threads);
      if (outcome.threads_stored < outcome.threads)
        remarks.messages.push_back(text);
      else
        remarks.measured += (remarks.measured.empty() ? "" : "; ") + text;
    }
  } else if (check.bounds.empty()) {
    remarks.lost_in = cases_with(check.cases, outcomes, &Outcome::wrong);
    // A fault is explained elsewhere: here first what has none.
    std::stable_partition(remarks.lost_in.begin(), remarks.lost_in.end(),
                          [&](std::size_t number) { return outcomes[number].fault.empty(); });
    remarks.messages = messages_of(lab, remarks.lost_in, check.cases.size(), outcomes, &Outcome::wrong);
  } else {
    const Case& a_case = lab.cases[check.cases.front()];
    const Outcome& outcome = outcomes[check.cases.front()];
    if (!outcome.wrong.empty()) return too_early(lab, check.cases.front());
    for (const Bound& bound : check.bounds) {
      const Measured measured(bound, a_case, outcome);
      if (measured.kept) {
        remarks.measured += (remarks.measured.empty() ? "" : "; ") + measured.text;
        continue;
      }
      remarks.messages.push_back(fmt::format("{}: {}", a_case.name(), measured.text));
      for (std::string& line : costly_lines(bound, outcome.lines)) remarks.messages.push_back(std::move(line));
    }
  }
  return remarks;
}

std::vector<Outcome> outcomes_in(const Lab& lab, std::uint64_t seed, const fs::path& folder) {
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < lab.cases.size(); ++i) outcomes.push_back(outcome_of(lab, i, seed, folder));
  return outcomes;
}

/// A case is right if it is on both devices; counters are the simulator's.
void add_gpu(std::vector<Outcome>& outcomes, const std::vector<Outcome>& on_gpu) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].wrong.empty() && !on_gpu[i].wrong.empty()) outcomes[i].wrong = "on the GPU: " + on_gpu[i].wrong;
    if (outcomes[i].faulty.empty() && !on_gpu[i].faulty.empty()) outcomes[i].faulty = "on the GPU: " + on_gpu[i].faulty;
  }
}

/// All or none; of a line that asks for right outputs alone the share of its shapes that are right, rounded down.
int points_for(const Check& check, const Remarks& remarks) {
  if (remarks.messages.empty()) return check.points;
  if (check.no_faults || check.all_threads || !check.bounds.empty()) return 0;
  const auto all = static_cast<int>(check.cases.size()), lost = static_cast<int>(remarks.lost_in.size());
  return check.points * (all - lost) / all;
}

Json marks(const Lab& lab, const std::vector<Outcome>& outcomes) {
  Json checks = Json::array();
  int score = 0;
  for (const Check& check : lab.checks) {
    const Remarks remarks = remarks_on(lab, check, outcomes);
    const int earned = points_for(check, remarks);
    score += earned;
    checks.push_back({{"name", check.name},
                      {"score", earned},
                      {"max_score", check.points},
                      {"messages", remarks.messages},
                      {"measured", remarks.measured},
                      {"waits", remarks.too_early},
                      {"right", check.cases.size() - std::min(remarks.lost_in.size(), check.cases.size())},
                      {"shapes", check.cases.size()},
                      {"lost_in", remarks.lost_in},
                      {"hints", Json::parse(check.hints)}});
  }
  Json cases = Json::array();
  for (std::size_t i = 0; i < lab.cases.size(); ++i)
    cases.push_back({{"name", lab.cases[i].name()},
                     {"fault", outcomes[i].fault.empty() ? Json() : Json::parse(outcomes[i].fault)},
                     {"stopped", outcomes[i].stopped}});
  return {{"title", lab.title}, {"minutes", lab.minutes}, {"score", score},
          {"max_score", 100},   {"checks", checks},       {"cases", cases}};
}

std::uint64_t parse_seed(std::string_view text) {
  std::uint64_t seed = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || rest != text.data() + text.size()) throw UsageError("the seed must be an integer");
  return seed;
}

int run(const std::vector<std::string>& arguments) {
  const bool cases = arguments.size() == 4 && arguments[0] == "cases";
  if (!cases && !(arguments.size() >= 4 && arguments.size() <= 5 && arguments[0] == "marks")) {
    fmt::print(stderr, "usage: lab-judge cases LAB.json SEED CASES | marks LAB.json SEED RESULTS [GPU_RESULTS]\n");
    return 2;
  }
  const Lab lab = read_lab(arguments[1]);
  const std::uint64_t seed = parse_seed(arguments[2]);
  if (cases) {
    write_cases(lab, seed, arguments[3]);
    return 0;
  }
  std::vector<Outcome> outcomes = outcomes_in(lab, seed, arguments[3]);
  if (arguments.size() == 5) add_gpu(outcomes, outcomes_in(lab, seed, arguments[4]));
  fmt::print("{}\n", marks(lab, outcomes).dump(2, ' ', false, Json::error_handler_t::replace));
  return 0;
}

}  // namespace
}  // namespace convladder

int main(int count, char** arguments) {
  try {
    return convladder::run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

/// @file
/// The program that a lab's exercise is linked into: runs the exercise on cases that the judge made, and leaves what it
/// computed and what the device saw. It knows neither the right results nor the marks.
///
///     runner CASES RESULTS FIRST
///
/// CASES holds cases.json and the tensors (see judge.cpp). For each case from number FIRST on, RESULTS receives
/// N.output.npy, if the launch came to its end, and then N.json.

#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "common/device.hpp"
#include "common/labs/exercise.hpp"
#include "common/npy.hpp"
#include "common/observation_json.hpp"
#include "common/output_file.hpp"
#include "common/problem_io.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Where the running case's result goes, for a fault that ends the program.
fs::path current_result;

void write_result(const Json& result) {
  write_file(current_result, result.dump(-1, ' ', false, Json::error_handler_t::replace));
}

[[noreturn]] void end_at_fault(const Fault& fault) {
  write_result({{"status", "fault"}, {"faults", faults_json({fault})}});
  _exit(1);
}

Json run_case(const Json& json, const fs::path& cases, const std::string& name, const fs::path& output_file) {
  ConvProblem problem = parse_shape(json.at("shape").get<std::string>());
  problem.padding = parse_padding(json.at("padding").get<std::string>());
  const std::unique_ptr<Stage> exercise(make_exercise());
  if (const Verdict verdict = exercise->check(problem, device_limits()); !verdict.accepted())
    return {{"status", "refused"}, {"reason", verdict.reason()}};

  const NpyArray input = read_npy(cases / (name + ".input.npy")), filter = read_npy(cases / (name + ".filter.npy"));
  DeviceBuffer inputs(input.values.size() * sizeof(float), "input");
  DeviceBuffer filters(filter.values.size() * sizeof(float), "filter");
  DeviceBuffer outputs(static_cast<std::size_t>(problem.output_size()) * sizeof(float), "output");
  inputs.upload(input.values.data());
  filters.upload(filter.values.data());
  outputs.poison();
  const Tensors tensors{inputs.floats(), filters.floats(), outputs.floats()};

  Observation seen =
      observe([&](Stream stream) { prepare_watched(*exercise, problem, tensors, stream, end_at_fault); }, false);
  if (seen.faults.empty()) {
    seen = observe([&](Stream stream) { launch_watched(*exercise, problem, tensors, stream, end_at_fault); },
                   json.at("lines").get<bool>());
    NpyArray output{{problem.n, problem.k, problem.p(), problem.q()},
                    std::vector<float>(static_cast<std::size_t>(problem.output_size()))};
    outputs.download(output.values.data());
    write_npy(output_file, output);
  }
  for (const DeviceBuffer* buffer : {&inputs, &filters, &outputs}) {
    if (buffer->guards_intact()) continue;
    Fault fault;
    fault.kind = "out_of_bounds";
    fault.other = "something wrote just outside a tensor; the simulator or compute-sanitizer names the line";
    seen.faults.push_back(fault);
  }

  Json result{{"status", seen.faults.empty() ? "ok" : "fault"}, {"faults", faults_json(seen.faults)}};
  if (backend() == Backend::sim) {
    result["counters"] = counters_json(seen.counters);
    result["lines"] = lines_json(seen.lines);
  }
  return result;
}

void run(const fs::path& cases, const fs::path& results, std::size_t first) {
  const Json list = Json::parse(std::ifstream(cases / "cases.json"));
  for (std::size_t i = first; i < list.size(); ++i) {
    const std::string name = std::to_string(i);
    current_result = results / (name + ".json");
    Json result;
    try {
      result = run_case(list[i], cases, name, results / (name + ".output.npy"));
    } catch (const DeviceError& error) {
      result = {{"status", "error"}, {"reason", error.what()}};
    }
    write_result(result);
  }
}

}  // namespace
}  // namespace convladder

int main(int count, char** arguments) {
  if (count != 4) {
    fmt::print(stderr, "usage: runner CASES RESULTS FIRST\n");
    return 2;
  }
  try {
    convladder::run(arguments[1], arguments[2], std::stoul(arguments[3]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

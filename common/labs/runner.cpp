/// @file
/// The program that a lab's exercise is linked into: runs the exercise on cases that the judge made, and leaves what it
/// computed and what the device saw. It knows neither the right results nor the marks.
///
///     runner CASES RESULTS FIRST
///
/// CASES holds cases.json and the tensors (see judge.cpp). For each case from number FIRST on, RESULTS receives
/// N.output.npy, unless host code did what it may not, and then N.json.

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/npy.hpp"
#include "common/harness/files/observation_json.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/labs/exercise.hpp"

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

/// The host keeps no copy that the exercise could find.
DeviceTensors device_tensors(const ConvProblem& problem, const Json& json, const fs::path& cases,
                             const std::string& name) {
  const NpyArray input = read_npy(cases / (name + ".input.npy")), filter = read_npy(cases / (name + ".filter.npy"));
  return DeviceTensors(problem, static_cast<Elements>(json.at("elements").get<int>()), input.values.data(),
                       filter.values.data(), json.at("output_step").get<float>());
}

Json run_case(const Json& json, const fs::path& cases, const std::string& name, const fs::path& output_file) {
  ConvProblem problem = parse_shape(json.at("shape").get<std::string>());
  problem.padding = parse_padding(json.at("padding").get<std::string>());
  Stage& exercise = *make_exercise();  // never deleted: its destructor would be code that nobody watches
  const DeviceLimits limits = device_limits();
  if (const Verdict verdict = check_watched(exercise, problem, limits, end_at_fault); !verdict.accepted())
    return {{"status", "refused"}, {"reason", verdict.reason()}};

  DeviceTensors device = device_tensors(problem, json, cases, name);
  device.poison_output();
  const Tensors tensors = device.view();

  await_threads(json.at("threads").get<bool>());
  // Preparing counts too: else it could do the launch's work.
  Observation seen = observe([&](Stream stream) { run_watched(exercise, problem, tensors, stream, end_at_fault); },
                             json.at("lines").get<bool>());
  NpyArray output{{problem.n, problem.k, problem.p(), problem.q()},
                  std::vector<float>(static_cast<std::size_t>(problem.output_size()))};
  std::vector<std::byte> bytes(device.output().bytes());
  download_output(device.output(), bytes.data());
  device.unpack_output(bytes.data(), output.values.data());
  write_npy(output_file, output);

  if (!device.damaged().empty()) {
    Fault fault;
    fault.kind = "out_of_bounds";
    fault.other = "something wrote just outside a tensor; the simulator or compute-sanitizer names the line";
    seen.faults.push_back(fault);
  }

  Json result{{"status", seen.faults.empty() ? "ok" : "fault"}, {"faults", faults_json(seen.faults)}};
  const Threads threads = threads_seen();
  result["threads"] = {{"all", threads.all}, {"stored", threads.stored}};
  if (counts_accesses()) {
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
    } catch (const MachineError&) {
      throw;
    } catch (const std::exception& error) {
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

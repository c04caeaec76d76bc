// A row in Python, on the host, by small programs that need nothing but Python: what is right, what is wrong, what
// fails.
#include "common/harness/run/python_run.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "common/harness/baselines/python_rows.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/python_program.hpp"
#include "tests/folder.hpp"

namespace convladder {
namespace {

/// Copies the input, which is right for a filter of one tap that is 1, and adds `error` to the last output.
constexpr const char* kCopy = R"(
import array, json, sys
for line in sys.stdin:
    request, answer = json.loads(line), {}
    if request["do"] == "place":
        values = array.array("f", open(request["input"], "rb").read())
        values[-1] += ERROR
        answer = {"library": "a copy of " + request["row"] + " " + request["dtype"] + " on " + request["device"]}
    if request["do"] == "run":
        values[:COUNT].tofile(open(request["output"], "r+b"))
    print(json.dumps(answer), flush=True)
)";

/// A file with a program, where words of kCopy or of another text are replaced.
class Script {
 public:
  explicit Script(const std::string& text) : path_(folder_ / "rows.py") { std::ofstream(path_) << text; }
  const std::filesystem::path& path() const { return path_; }

 private:
  Folder folder_;
  std::filesystem::path path_;
};

std::string copy_with(const std::string& error, const std::string& count) {
  std::string text = kCopy;
  text.replace(text.find("ERROR"), 5, error);
  return text.replace(text.find("COUNT"), 5, count);
}

RunResult result_of(const std::string& text, const char* python = "python3") {
  const StageInfo* row = nullptr;
  for (const StageInfo& each : python_rows())
    if (runs_on_host(each)) row = &each;
  REQUIRE(row);
  const Script script(text);
  PythonProgram program(python, script.path());
  Workload workload = make_workload("", parse_shape("h=6,w=7"), InputKind::normal, FilterForm::dense, 1);
  workload.tensors.filter = {1};
  workload.reference = convolve_reference(workload.problem, workload.tensors.input, workload.tensors.filter);
  RunResult result;
  result.stage = row;
  result.problem = workload.problem;
  result.backend = "cpu";
  try {
    run_in_python(program, workload, {}, result);
  } catch (const DeviceError& error) {
    result.status = Status::error;
    result.reason = error.what();
  }
  return result;
}

TEST_CASE("a row in Python is checked, timed and checked again") {
  const RunResult result = result_of(copy_with("0", ""));
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
  CHECK(result.verified);
  CHECK(result.time_us);
  CHECK(result.library == "a copy of torch fp32 on cpu");
}

TEST_CASE("a wrong output of a row in Python is found, and one that was never written") {
  const RunResult wrong = result_of(copy_with("0.01", ""));
  CHECK(wrong.status == Status::wrong);
  CHECK_FALSE(wrong.verified);
  const RunResult unwritten = result_of(copy_with("0", "-1"));
  CHECK(unwritten.status == Status::wrong);
  CHECK_MESSAGE(unwritten.reason.find("never written") != std::string::npos, unwritten.reason);
}

TEST_CASE("a program in Python that refuses, fails, ends or talks otherwise") {
  const std::string answer = "import sys\nfor line in sys.stdin:\n    print('ANSWER', flush=True)\n";
  const auto with = [&](const std::string& text) {
    return std::string(answer).replace(answer.find("ANSWER"), 6, text);
  };
  const RunResult refused = result_of(with(R"({"refused": "PyTorch is missing"})"));
  CHECK(refused.status == Status::refused);
  CHECK(refused.reason == "PyTorch is missing");
  const RunResult failed = result_of(with(R"({"error": "RuntimeError: no memory"})"));
  CHECK(failed.status == Status::error);
  CHECK(failed.reason == "RuntimeError: no memory");
  CHECK(result_of("").reason.find("ended without an answer") != std::string::npos);
  CHECK(result_of(with("hello")).reason.find("answered no JSON object: hello") != std::string::npos);
  CHECK(result_of("", "/nowhere/python").reason.find("CONVLADDER_PYTHON") != std::string::npos);
}

TEST_CASE("a program in Python begins before its first request, and what fails then is told by that") {
  const Script script(
      "import os, sys\nopen(sys.argv[0] + '.begun', 'w').close()\n"
      "for line in sys.stdin: print('{\"process\": %d}' % os.getpid(), flush=True)\n");
  PythonProgram program("python3", script.path());
  program.begin();
  const std::filesystem::path begun = script.path().string() + ".begun";
  for (int i = 0; i < 1000 && !std::filesystem::exists(begun); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(std::filesystem::exists(begun));
  const auto first = program.ask({});
  program.begin();
  CHECK(program.ask({}) == first);
  PythonProgram missing("/nowhere/python", script.path());
  missing.begin();
  CHECK_THROWS_AS(missing.ask({}), DeviceError);
}

TEST_CASE("a program in Python that is still importing is not waited for") {
  const Script script("import time\ntime.sleep(600)\n");
  const auto start = std::chrono::steady_clock::now();
  PythonProgram("python3", script.path()).begin();
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
}

}  // namespace
}  // namespace convladder

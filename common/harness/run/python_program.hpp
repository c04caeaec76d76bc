/// @file
/// A program in Python beside this one, which runs what Python alone has: requests and answers are lines of JSON.
/// common/harness/baselines/python/rows.py says which there are.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace convladder {

/// Started by begin() or the first request, and ended with this object.
class PythonProgram {
 public:
  /// @param python the interpreter  @param script what it runs
  PythonProgram(std::string python, std::filesystem::path script)
      : python_(std::move(python)), script_(std::move(script)) {}
  ~PythonProgram();
  PythonProgram(const PythonProgram&) = delete;
  PythonProgram& operator=(const PythonProgram&) = delete;

  /// Starts it, if it has not been, so that it imports what it needs meanwhile. What fails, the first request tells.
  void begin() noexcept;

  /// Sends a request, and waits for its answer.
  /// @throws DeviceError with the answer's "error"; or if the program cannot run, ends, or answers something else
  nlohmann::json ask(const nlohmann::json& request);

 private:
  void start();
  void end();

  std::string python_;
  std::filesystem::path script_;
  pid_t process_ = 0;
  std::FILE *requests_ = nullptr, *answers_ = nullptr;
};

/// The one of the rows beside the stages: by the Python that CONVLADDER_PYTHON names, or that of the environment of
/// baselines, or python3.
PythonProgram& python_rows_program();

}  // namespace convladder

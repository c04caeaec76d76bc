#include "common/harness/commands/benchmark_flags.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/integer.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {
namespace {

// Of each benchmark. Google Benchmark says nothing of how long more would take.
constexpr int kMostRepetitions = 1000;
constexpr double kMostSeconds = 3600;

[[noreturn]] void refuse_flags() {
  throw UsageError("Google Benchmark does not accept the flags after --; './lab bench -- --help' lists its own");
}

/// Google Benchmark before 1.7 has no say in what a wrong flag does: it prints its help and ends the program.
template <class Count>
void take_known_flags(Count* count, char** arguments) {
  if constexpr (requires { benchmark::Initialize(count, arguments, refuse_flags); }) {
    benchmark::Initialize(count, arguments, refuse_flags);
  } else {
    benchmark::Initialize(count, arguments);
  }
}

}  // namespace

void initialize_benchmark(const std::vector<std::string>& flags) {
  if (const auto file = flag_value(flags, "benchmark_out")) require_writable(*file);
  if (const auto times = flag_value(flags, "benchmark_repetitions"))
    parse_integer("--benchmark_repetitions", *times, 1, kMostRepetitions);
  for (const char* const name : {"benchmark_min_time", "benchmark_min_warmup_time"}) {
    const auto text = flag_value(flags, name);
    if (!text) continue;
    char* rest = nullptr;  // a unit, where Google Benchmark knows some
    const double seconds = std::strtod(text->c_str(), &rest);
    if (rest == text->c_str() || !(seconds <= kMostSeconds))
      throw UsageError(
          fmt::format("--{} must be a number of seconds up to {}; got {}", name, kMostSeconds, in_quotes(*text)));
  }
  static std::vector<std::string> words;  // Google Benchmark keeps a pointer to the first, for its report
  words = {"lab bench"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  take_known_flags(&count, arguments.data());
  if (count > 1) {
    throw UsageError(fmt::format("Google Benchmark does not know {}; './lab bench -- --help' lists its flags",
                                 in_quotes(arguments[1])));
  }
}

void print_benchmark_help() {
  char program[] = "lab bench", help[] = "--help";
  char* arguments[] = {program, help, nullptr};
  int count = 2;
  benchmark::Initialize(&count, arguments);
}

std::optional<std::string> flag_value(const std::vector<std::string>& flags, const std::string& name) {
  std::optional<std::string> value;
  for (const std::string& flag : flags) {
    if (flag == "--" + name) value = "";
    if (flag.starts_with("--" + name + "=")) value = flag.substr(name.size() + 3);
  }
  return value;
}

std::unique_ptr<benchmark::BenchmarkReporter> benchmark_display(const std::vector<std::string>& flags) {
  if (!flag_value(flags, "benchmark_format")) return nullptr;
#if __has_include(<benchmark/export.h>)
  return std::unique_ptr<benchmark::BenchmarkReporter>(benchmark::CreateDefaultDisplayReporter());
#else
  throw UsageError("--benchmark_format needs Google Benchmark 1.7; --benchmark_out=FILE works with this one");
#endif
}

}  // namespace convladder

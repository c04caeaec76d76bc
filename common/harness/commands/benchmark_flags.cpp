#include "common/harness/commands/benchmark_flags.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {
namespace {

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
  if (const auto times = flag_value(flags, "benchmark_repetitions");
      times && std::strtol(times->c_str(), nullptr, 10) < 1)
    throw UsageError(fmt::format("--benchmark_repetitions must be at least 1; got {}", in_quotes(*times)));
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
  for (const std::string& flag : flags) {
    if (flag == "--" + name) return "";
    if (flag.starts_with("--" + name + "=")) return flag.substr(name.size() + 3);
  }
  return std::nullopt;
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

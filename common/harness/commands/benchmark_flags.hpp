/// @file
/// The flags of Google Benchmark: what follows two dashes after the arguments of bench.
#pragma once
#include <benchmark/benchmark.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace convladder {

/// Hands the flags to Google Benchmark, which keeps their values.
/// @throws UsageError if it does not know one or accept its value, with which it might not end, or may not write its
/// file
void initialize_benchmark(const std::vector<std::string>& flags);

/// Google Benchmark's help of its flags, on standard output. Ends the program.
void print_benchmark_help();

/// The value of the last "--NAME=VALUE" among the flags, "" of a bare "--NAME", or nothing. Google Benchmark tells
/// nobody what it was given, but for its filter.
std::optional<std::string> flag_value(const std::vector<std::string>& flags, const std::string& name);

/// What Google Benchmark shows of a run in the form that --benchmark_format names; null without that flag.
/// @throws UsageError if this Google Benchmark is too old to be asked
std::unique_ptr<benchmark::BenchmarkReporter> benchmark_display(const std::vector<std::string>& flags);

}  // namespace convladder

/// @file
/// Results for programs to read: JSON and CSV. What is absent, infinite or NaN is null in JSON and empty in CSV.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/device/timing.hpp"
#include "common/harness/run/run_result.hpp"

namespace convladder {

/// A stage's metadata, as `list --json` gives it.
nlohmann::ordered_json to_json(const StageInfo& stage);

/// One result, as `run --json` gives it.
nlohmann::ordered_json to_json(const RunResult& result);

/// A whole run of `bench`.
struct BenchReport {
  DeviceInfo device;                 ///< before the first stage ran
  DeviceInfo device_after;           ///< after the last
  std::optional<Ceilings> ceilings;  ///< GPU only
  std::vector<RunResult> rows;
  std::string shard = {};  ///< "2/4" where this is a part of a bench; "" for the whole
};
/// The whole report, as `bench --json` writes it: cuDNN's trials stand in the first row of each workload and element
/// type, and are null in those that were measured beside the same.
nlohmann::ordered_json to_json(const BenchReport& report);

/// A line of headings, then one line a result, quoted as in RFC 4180.
std::string to_csv(const std::vector<RunResult>& results);

/// The text of a JSON value, ending in a newline; bytes that are not UTF-8 are replaced. What holds no other object or
/// list stands on one line.
std::string text_of(const nlohmann::ordered_json& json);

}  // namespace convladder

/// @file
/// What `lab tune` found out: a JSON file for each device, stage and problem.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {

/// One configuration, tried.
struct TuningTrial {
  Configuration configuration;
  std::string status;          ///< as in a result's JSON: "ok", "wrong", "fault", "error"
  std::string reason;          ///< "" if ok
  std::optional<double> cost;  ///< if ok: microseconds, or in the simulator estimated cycles
};

/// The trials of one search.
struct TuningSession {
  std::string search;  ///< "annealing"
  std::uint64_t seed = 0;
  std::int64_t budget = 0;   ///< trials that it may make
  bool interrupted = false;  ///< by ctrl-C
  std::string when;          ///< it began, UTC: "2030-01-31T12:00:00Z"
  std::vector<TuningTrial> trials;

  /// The cheapest trial, or null.
  const TuningTrial* best() const;
};

/// What a stage runs with from then on.
struct TunedBest {
  Configuration configuration;
  double cost = 0;
  double default_cost = 0;  ///< measured beside it
  std::string when;
};

/// The whole file.
struct TuningLog {
  std::string device, stage, problem, padding;  ///< "NVIDIA H200", "15-depthwise-tuned", "n=3,c=4,...", "zero"
  std::string measure;                          ///< "time_us" or "estimated_cycles": what a cost is, its key in JSON
  std::string toolkit, driver;                  ///< of CUDA; empty in the simulator
  std::size_t points = 0, valid = 0;            ///< of the configuration space
  std::optional<double> default_cost;           ///< of the default configuration, as a trial
  std::optional<TunedBest> best;                ///< none where nothing beat the default
  std::vector<TuningSession> sessions;          ///< one for each search that ran; the newest last
  std::string shard;                            ///< "2/4" where they searched a part of the space; "" for all of it
};

/// A log without sessions for a stage and a problem on this device.
TuningLog new_tuning_log(const StageInfo& stage, const ConvProblem& problem);

/// Each knob by its name, with its word or its number.
nlohmann::ordered_json to_json(const Configuration& configuration);
/// "8" or "shared".
std::string value_text(const Knob& knob, int value);

/// The log as its file holds it.
nlohmann::ordered_json to_json(const TuningLog& log);
/// Its trials as a cache of Kernel Tuner, schema 1.0.0: a time in ms for each configuration, the last where several
/// searches tried it, or "RuntimeFailedConfig"; knobs with words by their numbers. What was not measured apart, as the
/// time to compile, is 0. In the simulator the estimate stands where the time would, and is the objective.
nlohmann::ordered_json to_kernel_tuner(const TuningLog& log, const Knobs& knobs);
/// Reads to_json()'s text, of a space with these knobs. @throws UsageError, with what does not fit
TuningLog parse_tuning_log(const std::string& text, const Knobs& knobs);

/// Letters and digits, the rest as single dashes: "NVIDIA H200" as "nvidia-h200".
std::string slug(std::string_view text);
/// A problem in the name of a file.
std::string problem_slug(const ConvProblem& problem);

/// Where logs lie: the environment variable CONVLADDER_TUNED, else "tuned" beside the folder of the program.
std::filesystem::path tuning_folder();
/// The file for a stage and a problem on this device.
std::filesystem::path tuning_log_path(const StageInfo& stage, const ConvProblem& problem);

/// The log for a stage and a problem on this device, if there is one. One that is damaged, or of another space, is told
/// on stderr, once, and counts as none.
std::optional<TuningLog> find_tuning_log(const StageInfo& stage, const TunableStage& tunable,
                                         const ConvProblem& problem);

/// The configuration that was found for a stage and a problem on this device, if there is one that can still run.
std::optional<Configuration> tuned_configuration(const StageInfo& stage, const TunableStage& tunable,
                                                 const ConvProblem& problem);

/// Makes the folder of a file in tuning_folder(), and makes sure that the file can be written. @throws UsageError
void require_log(const std::filesystem::path& path);

/// Writes such a file as write_file() does. @throws UsageError
void write_log(const std::filesystem::path& path, std::string_view text);

/// Keeps others with the same folder of logs from measuring on this device at the same time: they would disturb its
/// times, and write the same files.
class DeviceLock {
 public:
  /// @param folder of the device's logs; it is there  @throws MachineError if another process holds it
  explicit DeviceLock(const std::filesystem::path& folder);
  ~DeviceLock();
  DeviceLock(const DeviceLock&) = delete;
  DeviceLock& operator=(const DeviceLock&) = delete;

 private:
  int file_;
};

/// The present time, UTC, as in a log.
std::string time_now();

}  // namespace convladder

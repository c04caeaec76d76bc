/// @file
/// What searches of cuDNN's plans found on this machine: a file for each GPU, version of cuDNN, problem and type.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "common/harness/baselines/cudnn_baseline.hpp"

namespace convladder {

/// A configuration in one of a problem's graphs.
struct CudnnPlanKey {
  bool nhwc = false;
  Precision output = Precision::fp32;
  CudnnConfiguration configuration;
  /// Whether they are the same.
  bool operator==(const CudnnPlanKey&) const = default;
  /// An order, for maps.
  bool operator<(const CudnnPlanKey& other) const {
    return std::tie(nhwc, output, configuration) < std::tie(other.nhwc, other.output, other.configuration);
  }
};

/// What was found out about one.
struct CudnnFinding {
  CudnnOutcome outcome = CudnnOutcome::refused;
  std::optional<double> time_us = {};  ///< where it is right or slower
  std::string family = {};             ///< of its algorithm, as CudnnTrial::family()
};

/// The file grows by a line at a time, so that a run that ends early loses nothing. A plan whose run was begun and not
/// ended lost the GPU's context, or was interrupted: it counts as lost.
class CudnnJournal {
 public:
  /// Reads the file, if there is one; lines that do not fit are passed over.
  explicit CudnnJournal(std::filesystem::path path);

  const std::map<CudnnPlanKey, CudnnFinding>& findings() const { return findings_; }  ///< of all runs
  double searched_s() const { return searched_s_; }                                   ///< by all runs
  bool complete() const { return complete_; }  ///< whether a search tried all that there is
  /// The plans that were running when a program ended, on this problem and on others of its type.
  std::vector<CudnnPlanKey> lost() const;

  void begin(const CudnnPlanKey& key);                             ///< before it runs
  void end(const CudnnPlanKey& key, const CudnnFinding& finding);  ///< after it
  void add_seconds(double seconds, bool complete);                 ///< after a search

 private:
  void write(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
  std::map<CudnnPlanKey, CudnnFinding> findings_;
  double searched_s_ = 0;
  bool complete_ = false, told_ = false;
};

/// The file for a problem and type on this GPU, in the folder of what was tuned here.
std::filesystem::path cudnn_journal_path(const std::string& version, const ConvProblem& problem, Precision precision);

}  // namespace convladder

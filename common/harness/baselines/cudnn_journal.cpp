#include "common/harness/baselines/cudnn_journal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "common/harness/baselines/cudnn_plan_json.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/ladder/tuning_log.hpp"

namespace convladder {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "runs";  // the outcome of what is running

nlohmann::ordered_json line_of(const CudnnPlanKey& key, const char* outcome) {
  return {{"layout", key.nhwc ? "NHWC" : "NCHW"},
          {"output", to_string(key.output)},
          {"engine", key.configuration.engine},
          {"knobs", knobs_json(key.configuration)},
          {"outcome", outcome}};
}

CudnnOutcome parse_outcome(const std::string& name) {
  if (name == kRuns) return CudnnOutcome::lost;  // unless a later line has its end
  for (const CudnnOutcome outcome : kCudnnOutcomes)
    if (name == to_string(outcome)) return outcome;
  throw UsageError("no outcome is called " + name);
}

}  // namespace

CudnnJournal::CudnnJournal(fs::path path) : path_(std::move(path)) {
  std::ifstream file(path_, std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    try {
      const nlohmann::json json = nlohmann::json::parse(line);
      if (json.contains("searched_s")) {
        searched_s_ += json.at("searched_s").get<double>();
        complete_ = complete_ || json.at("complete").get<bool>();
        continue;
      }
      const CudnnPlanKey key{parse_layout(json.at("layout").get<std::string>()),
                             parse_precision(json.at("output").get<std::string>()), parse_cudnn_configuration(json)};
      CudnnFinding finding{parse_outcome(json.at("outcome").get<std::string>()), {}, json.value("family", "")};
      if (json.contains("time_us")) finding.time_us = json.at("time_us").get<double>();
      findings_[key] = finding;
    } catch (const nlohmann::json::exception&) {  // the line that a run was writing when it ended
    } catch (const UsageError&) {
    }
  }
}

std::vector<CudnnPlanKey> CudnnJournal::lost() const {
  std::vector<CudnnPlanKey> keys;
  const auto add = [&keys](const CudnnJournal& journal) {
    for (const auto& [key, finding] : journal.findings_)
      if (finding.outcome == CudnnOutcome::lost) keys.push_back(key);
  };
  add(*this);
  const std::string own = path_.filename().string(), type = own.substr(0, own.find_first_of("-."));
  std::error_code error;
  for (const fs::directory_entry& file : fs::directory_iterator(path_.parent_path(), error)) {
    const std::string name = file.path().filename().string();
    if (!type.empty() && name != own && name.starts_with(type)) add(CudnnJournal(file.path()));
  }
  return keys;
}

void CudnnJournal::begin(const CudnnPlanKey& key) { write(line_of(key, kRuns).dump()); }

void CudnnJournal::end(const CudnnPlanKey& key, const CudnnFinding& finding) {
  findings_[key] = finding;
  nlohmann::ordered_json line = line_of(key, to_string(finding.outcome));
  if (finding.time_us) line["time_us"] = *finding.time_us;
  if (!finding.family.empty()) line["family"] = finding.family;
  write(line.dump());
}

void CudnnJournal::add_seconds(double seconds, bool complete) {
  searched_s_ += seconds;
  complete_ = complete_ || complete;
  write(nlohmann::ordered_json{{"searched_s", seconds}, {"complete", complete}}.dump());
}

void CudnnJournal::write(const std::string& line) {
  if (!file_.is_open() && !told_) {
    std::error_code error;
    fs::create_directories(path_.parent_path(), error);
    file_.open(path_, std::ios::app | std::ios::binary);
    // What an earlier run left unfinished ends here.
    if (file_ && fs::file_size(path_, error) > 0) file_ << '\n';
  }
  if (file_ << line << '\n' << std::flush || std::exchange(told_, true)) return;
  print_stderr("note: {} cannot be written: the search of cuDNN's plans is not kept\n", in_quotes(path_.string()));
}

fs::path cudnn_journal_path(const std::string& version, const ConvProblem& problem, Precision precision) {
  return tuning_folder() / "cudnn" / slug(device_info().name) / version /
         fmt::format("{}-{}.jsonl", to_string(precision), problem_slug(problem));
}

}  // namespace convladder

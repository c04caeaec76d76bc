#include "common/harness/baselines/cudnn_winners.hpp"

#include "common/harness/baselines/cudnn_plan_json.hpp"

namespace convladder {

std::vector<CudnnWinner> parse_cudnn_winners(std::string_view text) {
  std::vector<CudnnWinner> winners;
  try {
    for (const nlohmann::json& json : nlohmann::json::parse(text)) {
      winners.push_back({json.at("gpu").get<std::string>(), json.at("cudnn").get<std::string>(),
                         json.at("problem").get<std::string>(), parse_precision(json.at("dtype").get<std::string>()),
                         parse_layout(json.at("layout").get<std::string>()),
                         parse_precision(json.at("output").get<std::string>()), parse_cudnn_configuration(json),
                         json.at("time_us").get<double>()});
    }
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("these are no winners of cuDNN: ") + error.what());
  }
  return winners;
}

const std::vector<CudnnWinner>& cudnn_winners() {
  static const std::vector<CudnnWinner> winners = parse_cudnn_winners(cudnn_winners_json());
  return winners;
}

}  // namespace convladder

/// @file
/// A plan of cuDNN as JSON: {"layout": "NHWC", "output": "int8", "engine": 4, "knobs": {"24": 28}, ...}, in the journal
/// and among the winners.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "common/harness/baselines/cudnn_module.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/ladder/registry.hpp"

namespace convladder {

/// The type of this name. @throws UsageError if there is none
inline Precision parse_precision(const std::string& name) {
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16, Precision::int8})
    if (name == to_string(precision)) return precision;
  throw UsageError("no element type is called " + name);
}

/// Whether it is NHWC. @throws UsageError if it is neither layout
inline bool parse_layout(const std::string& name) {
  if (name != "NCHW" && name != "NHWC") throw UsageError("no layout is called " + name);
  return name == "NHWC";
}

/// Value by the knob's type.
inline nlohmann::ordered_json knobs_json(const CudnnConfiguration& configuration) {
  auto json = nlohmann::ordered_json::object();
  for (const auto& [type, value] : configuration.knobs) json[std::to_string(type)] = value;
  return json;
}

/// Of the keys engine and knobs. @throws UsageError or a nlohmann::json::exception where they do not fit
inline CudnnConfiguration parse_cudnn_configuration(const nlohmann::json& json) {
  CudnnConfiguration configuration{json.at("engine").get<std::int64_t>(), {}};
  for (const auto& [type, value] : json.at("knobs").items()) {
    if (type.empty() || type.size() > 9 || type.find_first_not_of("0123456789") != std::string::npos)
      throw UsageError("a knob is called " + type);
    configuration.knobs[std::stoll(type)] = value.get<std::int64_t>();
  }
  return configuration;
}

}  // namespace convladder

#include "common/stage/stage.hpp"

#include <cstdarg>
#include <cstdio>

#include "common/stage/tunable.hpp"

namespace convladder {

Verdict Verdict::accept() { return {}; }

Verdict Verdict::refuse(const char* format, ...) {
  Verdict verdict;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(verdict.reason_, sizeof verdict.reason_, format, arguments);
  va_end(arguments);
  return verdict;
}

Stage::~Stage() = default;

bool TunableStage::searched() const { return true; }

Configuration TunableStage::decided(const ConvProblem&, const DeviceLimits&, const Configuration& configuration) const {
  return configuration;
}

Verdict Stage::check_filter(const ConvProblem&, const float*) const { return Verdict::accept(); }

void Stage::prepare(const ConvProblem&, const Tensors&, Stream) {}

bool Stage::launch_without_transform(const ConvProblem&, const Tensors&, Stream) { return false; }

Prediction Stage::predict(const ConvProblem&) const { return {}; }

std::int64_t Stage::workspace_bytes() const { return 0; }

double Stage::filter_error(const ConvProblem&, const float*) const { return 0; }

bool Stage::workspace_intact() const { return true; }

std::int64_t Stage::roundings(const ConvProblem& problem) const { return problem.reduction_length() + 1; }

WinogradForm Stage::winograd(const ConvProblem&) const { return {}; }

bool Stage::errors_spread() const { return false; }

}  // namespace convladder

#include "common/stage/stage.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "common/stage/workspace.hpp"

namespace convladder {

Verdict Verdict::accept() { return {}; }

Verdict Verdict::refusal(const char* rule, const Value* values, int count) {
  const std::string_view text = rule;
  if (std::count(text.begin(), text.end(), '{') != count)
    throw std::logic_error(fmt::format("a rule has other than {} values: {}", count, text));
  fmt::dynamic_format_arg_store<fmt::format_context> arguments;
  for (int i = 0; i < count; ++i) {
    switch (values[i].kind_) {
      case Value::Kind::integer:
        arguments.push_back(values[i].integer_);
        break;
      case Value::Kind::real:
        arguments.push_back(values[i].real_);
        break;
      case Value::Kind::text:
        arguments.push_back(values[i].text_);
        break;
    }
  }
  Verdict verdict;
  fmt::vformat_to_n(verdict.reason_, sizeof verdict.reason_ - 1, text, arguments);
  return verdict;
}

Stage::Stage() = default;
Stage::~Stage() = default;

bool Stage::has_epilogue() const { return false; }

Verdict Stage::check_filter(const ConvProblem&, const float*) const { return Verdict::accept(); }

const char* Stage::library() const { return ""; }

void Stage::prepare(const ConvProblem&, const Tensors&, Stream) {}

void Stage::calibrate(const ConvProblem&, const Tensors&, Stream) {}

bool Stage::launch_without_transform(const ConvProblem&, const Tensors&, Stream) { return false; }

Prediction Stage::predict(const ConvProblem&) const { return {}; }

ErrorModel Stage::error_model(const ConvProblem& problem, const float*) const {
  return {problem.reduction_length() + 1};
}

std::int64_t Stage::workspace_bytes() const {
  std::int64_t bytes = stated_bytes_;
  for (const Workspace* each = workspaces_; each; each = each->next_) bytes += each->bytes();
  return bytes;
}

bool Stage::workspace_intact() const {
  for (const Workspace* each = workspaces_; each; each = each->next_)
    if (!each->intact()) return false;
  return true;
}

void Stage::state_memory(std::int64_t bytes) { stated_bytes_ = bytes; }

}  // namespace convladder

#include "common/harness/files/observation_json.hpp"

#include <nlohmann/json.hpp>
#include <string_view>

#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

using Json = nlohmann::ordered_json;

Json text(std::string_view value) { return value.empty() ? Json() : Json(value); }

Json second_json(const std::optional<FaultAccess>& second) {
  if (!second) return {};
  return {{"file", text(second->file)},     {"line", second->line}, {"block", text(second->block)},
          {"thread", text(second->thread)}, {"warp", second->warp}, {"whole_warp", second->whole_warp},
          {"access", text(second->access)}};
}

}  // namespace

Json problem_json(const ConvProblem& x) {
  Json json{{"n", x.n},
            {"c", x.c},
            {"h", x.h},
            {"w", x.w},
            {"k", x.k},
            {"r", x.r},
            {"s", x.s},
            {"pad_h", x.pad_h},
            {"pad_w", x.pad_w},
            {"stride_h", x.stride_h},
            {"stride_w", x.stride_w},
            {"dilation_h", x.dilation_h},
            {"dilation_w", x.dilation_w},
            {"groups", x.groups},
            {"padding", to_string(x.padding)}};
  if (x.epilogue != Epilogue::none) json["epilogue"] = to_string(x.epilogue);
  return json;
}

Json counters_json(const Counters& counters) {
  Json object;
  for (const CounterField& field : kCounterFields) {
    const std::int64_t value = counters.*field.member;
    object[field.name] = value < 0 ? Json() : Json(value);
  }
  return object;
}

Json faults_json(const std::vector<Fault>& faults) {
  Json list = Json::array();
  for (const Fault& fault : faults) {
    list.push_back({{"kind", fault.kind},
                    {"kernel", text(fault.kernel)},
                    {"file", text(fault.file)},
                    {"line", fault.line > 0 ? Json(fault.line) : Json()},
                    {"block", text(fault.block)},
                    {"thread", text(fault.thread)},
                    {"other", text(fault.other)},
                    {"count", fault.count},
                    {"warp", fault.block.empty() ? Json() : Json(fault.warp)},
                    {"whole_warp", fault.whole_warp},
                    {"access", text(fault.access)},
                    {"second", second_json(fault.second)}});
  }
  return list;
}

Json lines_json(const std::vector<LineCounters>& lines) {
  if (lines.empty()) return {};
  Json list = Json::array();
  for (const LineCounters& line : lines) {
    list.push_back({{"file", line.file}, {"line", line.line}, {"counters", counters_json(line.counters)}});
  }
  return list;
}

}  // namespace convladder

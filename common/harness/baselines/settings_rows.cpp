#include "common/harness/baselines/settings_rows.hpp"

#include <fmt/format.h>

#include <deque>
#include <memory>
#include <string>

#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/tuning_log.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

/// Of stage 35, with a bound that allows all of them.
constexpr std::string_view kTiledStage = "winograd-fp32", kTiles[] = {"4x4", "6x6", "7x4", "7x7"};

/// Rows, and the text that they refer to.
struct Rows {
  std::vector<StageInfo> rows;
  std::deque<std::string> texts;

  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }

  void add(const StageInfo& stage, std::string settings) {
    StageInfo& row = rows.emplace_back(stage);
    row.number = row.previous = 0;
    row.settings_of = stage.number;
    row.settings = keep(std::move(settings));
    row.name = row.folder = keep(fmt::format("{} {}", stage.name, row.settings));
  }

  /// The default does not depend on the problem; any one of the track's will do.
  void add_all(const StageInfo& info, const TunableStage& stage) {
    constexpr DeviceLimits kLimits{90, 227 << 10};
    const Configuration usual = stage.default_configuration(parse_shape("c=64,h=14,w=14,k=64,r=3,s=3"), kLimits);
    for (int k = 0; k < usual.knobs.count; ++k) {
      const Knob& knob = usual.knobs.knobs[k];
      for (int i = 0; i < knob.count; ++i)
        if (knob.values[i] != usual.values[k])
          add(info, fmt::format("{}={}", knob.name, value_text(knob, knob.values[i])));
    }
  }
};

Rows make_rows() {
  Rows result;
  for (const StageInfo& info : stages()) {
    if (info.name == kTiledStage)
      for (const std::string_view tile : kTiles) result.add(info, fmt::format("bound=1e-4,tile={}", tile));
    if (track_of(info).rows_beside != RowsBeside::knobs) continue;
    const std::unique_ptr<Stage> stage(info.make());
    if (const auto* tunable = dynamic_cast<const TunableStage*>(stage.get())) result.add_all(info, *tunable);
  }
  return result;
}

}  // namespace

const std::vector<StageInfo>& settings_rows() {
  static const Rows rows = make_rows();
  return rows.rows;
}

std::vector<const StageInfo*> configurations_of(int number) {
  std::vector<const StageInfo*> result;
  const auto add = [&](const StageInfo& stage, int its_number) {
    if (number > 0 && its_number == number) result.push_back(&stage);
  };
  for (const StageInfo& stage : stages()) add(stage, stage.number);
  for (const StageInfo& row : settings_rows()) add(row, row.settings_of);
  return result;
}

}  // namespace convladder

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

/// Of stages whose knobs span a space that `explore` goes through: what their lessons speak of.
struct Chosen {
  std::string_view stage, settings;
};
constexpr Chosen kChosen[] = {{"winograd-tensor-core", "row_offset=0"}, {"winograd-sync-free", "sync=block"},
                              {"winograd-pkf-shmem", "tbm=32"},         {"winograd-pkf-shmem", "fused=input"},
                              {"winograd-pkf-shmem", "fused=output"},   {"winograd-pkf-llc", "tbm=32"},
                              {"winograd-int8", "fusion=llc"},          {"winograd-int8", "tbm=32"},
                              {"winograd-int8", "fusion=llc,tbm=32"},   {"winograd-int8", "sums=int32"}};

/// Stage 25 as Wang and Zhen, whom it follows, describe it: their blocks, one buffer in shared memory, two in
/// registers.
constexpr std::string_view kFusedStage = "winograd-fused", kTheirForm = "buffers=1,tiles=per-place,registers=2";

/// Rows, and the text that they refer to.
struct Rows {
  std::vector<StageInfo> rows;
  std::deque<std::string> texts;

  std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }

  /// @return whether the stage is among those with chosen settings
  bool add_chosen(const StageInfo& stage) {
    bool any = false;
    for (const Chosen& chosen : kChosen) {
      if (chosen.stage != stage.name) continue;
      add(stage, std::string(chosen.settings));
      any = true;
    }
    return any;
  }

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
    if (track_of(info).rows_beside != RowsBeside::knobs || result.add_chosen(info)) continue;
    const std::unique_ptr<Stage> stage(info.make());
    if (const auto* tunable = dynamic_cast<const TunableStage*>(stage.get())) result.add_all(info, *tunable);
    if (info.name == kFusedStage) result.add(info, std::string(kTheirForm));
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

std::vector<const StageInfo*> previous_configurations(const StageInfo& stage) {
  std::vector<const StageInfo*> result;
  for (const StageInfo* previous : configurations_of(stage.previous))
    if (const StageInfo* const alike = takes_bf16(stage) ? in_type(*previous, stage.dtype) : previous)
      result.push_back(alike);
  return result;
}

}  // namespace convladder

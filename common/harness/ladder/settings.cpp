#include "common/harness/ladder/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/ladder/tuning_log.hpp"

namespace convladder {
namespace {

/// "m=4" as its knob and its value.
struct Setting {
  std::string_view knob, value;
};

std::vector<Setting> split(std::string_view text) {
  std::vector<Setting> settings;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == item.size())
      throw UsageError(fmt::format("--configuration takes knob=value, as in m=4,tbm=32; got {}", in_quotes(item)));
    settings.push_back({item.substr(0, equals), item.substr(equals + 1)});
    if (comma == std::string_view::npos) return settings;
    text.remove_prefix(comma + 1);
  }
}

const Knob* find_knob(const Knobs& knobs, std::string_view name) {
  const auto end = knobs.knobs + knobs.count;
  const auto found = std::find_if(knobs.knobs, end, [&](const Knob& knob) { return knob.name == name; });
  return found == end ? nullptr : found;
}

std::optional<int> find_value(const Knob& knob, std::string_view text) {
  for (int i = 0; i < knob.count; ++i)
    if (value_text(knob, knob.values[i]) == text) return knob.values[i];
  return std::nullopt;
}

/// "2, 4 or 6".
std::string choices_of(const Knob& knob) {
  std::string text;
  for (int i = 0; i < knob.count; ++i)
    text += (i == 0 ? "" : i + 1 < knob.count ? ", " : " or ") + value_text(knob, knob.values[i]);
  return text;
}

/// The stages that have knobs, with them.
struct WithKnobs {
  const StageInfo* stage;
  std::unique_ptr<Stage> instance;
  Knobs knobs;
};

std::vector<WithKnobs> with_knobs(const std::vector<const StageInfo*>& stages) {
  std::vector<WithKnobs> result;
  for (const StageInfo* stage : stages) {
    std::unique_ptr<Stage> instance(stage->make());
    if (const auto* tunable = dynamic_cast<const TunableStage*>(instance.get())) {
      const Knobs knobs = tunable->knobs();
      result.push_back({stage, std::move(instance), knobs});
    }
  }
  return result;
}

[[noreturn]] void throw_unknown_knob(std::string_view name, const std::vector<WithKnobs>& tunable) {
  std::vector<std::string> knobs;
  for (const WithKnobs& each : tunable)
    for (int i = 0; i < each.knobs.count; ++i) {
      std::string knob = fmt::format("{} ({})", each.knobs.knobs[i].name, choices_of(each.knobs.knobs[i]));
      if (std::find(knobs.begin(), knobs.end(), knob) == knobs.end()) knobs.push_back(std::move(knob));
    }
  const bool one = tunable.size() == 1;
  throw UsageError(fmt::format("{} has {} knob {}; {} knobs are {}",
                               one ? tunable.front().stage->folder : std::string_view("none of the stages"),
                               one ? "no" : "a", in_quotes(name), one ? "its" : "their", fmt::join(knobs, ", ")));
}

}  // namespace

void require_settings(std::string_view settings, const std::vector<const StageInfo*>& stages) {
  const std::vector<Setting> all = split(settings);
  const std::vector<WithKnobs> tunable = with_knobs(stages);
  if (tunable.empty()) {
    throw UsageError(
        fmt::format("{} has no configurations to choose from; leave out --configuration", stages.front()->folder));
  }
  for (auto setting = all.begin(); setting != all.end(); ++setting) {
    const auto same = [&](const Setting& other) { return other.knob == setting->knob; };
    if (std::any_of(all.begin(), setting, same))
      throw UsageError(fmt::format("--configuration sets {} twice; choose one value", in_quotes(setting->knob)));
    bool known = false;
    for (const WithKnobs& each : tunable) {
      const Knob* const knob = find_knob(each.knobs, setting->knob);
      if (!knob) continue;
      known = true;
      if (find_value(*knob, setting->value)) continue;
      throw UsageError(fmt::format("{} of {} must be {}; got {}", knob->name, each.stage->folder, choices_of(*knob),
                                   in_quotes(setting->value)));
    }
    if (!known) throw_unknown_knob(setting->knob, tunable);
  }
}

bool apply_settings(std::string_view settings, Configuration& configuration) {
  bool any = false;
  for (const Setting& setting : split(settings)) {
    const Knob* const knob = find_knob(configuration.knobs, setting.knob);
    const std::optional<int> value = knob ? find_value(*knob, setting.value) : std::nullopt;
    if (!value) continue;
    configuration[knob->name] = *value;
    any = true;
  }
  return any;
}

}  // namespace convladder

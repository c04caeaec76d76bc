#include "common/harness/ladder/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {
namespace {

/// The number that the whole text spells, or -1.
int number_of(std::string_view text) {
  int number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size() ? number : -1;
}

/// Of "chapters/03-tiled-1d/", as a shell completes it, the folder's name; anything else as it is.
std::string_view without_path(std::string_view designation) {
  if (!designation.starts_with("chapters/")) return designation;
  if (designation.ends_with('/')) designation.remove_suffix(1);
  return designation.substr(designation.rfind('/') + 1);
}

/// "32c" of a chapter without that step, or "32A".
void throw_if_unknown_step(std::string_view designation) {
  if (designation.size() < 2 || std::isalpha(static_cast<unsigned char>(designation.back())) == 0) return;
  const int number = number_of(designation.substr(0, designation.size() - 1));
  for (const StageInfo& stage : stages()) {
    if (stage.number != number) continue;
    std::vector<std::string_view> labels;
    for (const StageInfo* step : steps_of(stage)) labels.push_back(label_of(*step));
    throw UsageError(fmt::format("unknown step {}; chapter {} has {}{}", in_quotes(designation), label_of(stage),
                                 labels.empty()       ? "no steps"
                                 : labels.size() == 1 ? "the step "
                                                      : "the steps ",
                                 fmt::join(labels, ", ")));
  }
}

[[noreturn]] void throw_unknown_stage(std::string_view designation) {
  std::vector<std::string_view> names;
  for (const std::span<const StageInfo> known : {stages(), steps()}) {
    for (const StageInfo& stage : known) {
      names.push_back(stage.name);
      names.push_back(stage.folder);
    }
  }
  if (stages().size() == 1) {
    throw UsageError(
        fmt::format("unknown stage {}; this program holds {} only", in_quotes(designation), stages().front().folder));
  }
  const std::string_view nearest = nearest_name(designation, names);
  throw UsageError(fmt::format("unknown stage {}{}; './lab list' shows the stages", in_quotes(designation),
                               nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest)));
}

}  // namespace

const StageInfo& find_stage(std::string_view designation) {
  if (const std::size_t colon = designation.rfind(':'); colon != std::string_view::npos)
    return require_type(find_stage(designation.substr(0, colon)), std::string(designation.substr(colon + 1)));
  const int number = number_of(designation);
  const std::string_view folder = without_path(designation);
  for (const StageInfo& stage : stages()) {
    if (stage.number == number || stage.name == designation || stage.folder == folder) return stage;
  }
  for (const StageInfo& step : steps())
    if (label_of(step) == designation || step.name == designation || step.folder == folder) return step;
  if (stages().size() > 1) throw_if_unknown_step(designation);
  throw_unknown_stage(designation);
}

const StageInfo* in_type(const StageInfo& stage, std::string_view dtype) {
  if (stage.dtype == dtype) return &stage;
  for (const std::span<const StageInfo> known : {stages(), variants()})
    for (const StageInfo& each : known)
      if (on_ladder(stage) && each.number == stage.number && each.dtype == dtype) return &each;
  return nullptr;
}

std::vector<std::string_view> types_of(const StageInfo& stage) {
  std::vector<std::string_view> types{stage.dtype};
  for (const StageInfo& variant : variants())
    if (on_ladder(stage) && variant.number == stage.number && variant.dtype != stage.dtype)
      types.push_back(variant.dtype);
  return types;
}

const StageInfo& require_type(const StageInfo& stage, const std::optional<std::string>& dtype) {
  if (!dtype) return stage;
  if (const StageInfo* const found = in_type(stage, *dtype)) return *found;
  throw UsageError(
      fmt::format("{} computes in {}; got {}", stage.folder, fmt::join(types_of(stage), " and "), in_quotes(*dtype)));
}

std::vector<const StageInfo*> steps_of(const StageInfo& stage) {
  std::vector<const StageInfo*> result;
  for (const StageInfo& step : steps())
    if (number_of(label_of(step).substr(0, 2)) == stage.number) result.push_back(&step);
  return result;
}

const Track& track_of(const StageInfo& stage) { return track_named(stage.track); }

bool runs_on_host(const StageInfo& stage) { return track_of(stage).runs_on == RunsOn::host; }

bool all_on_host(const std::vector<const StageInfo*>& stages) {
  return std::all_of(stages.begin(), stages.end(), [](const StageInfo* stage) { return runs_on_host(*stage); });
}

Precision precision_of(const StageInfo& stage) {
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16, Precision::int8})
    if (stage.dtype == to_string(precision)) return precision;
  throw UsageError(fmt::format("the dtype of {} must be fp32, fp16, bf16 or int8; got {}", stage.name, stage.dtype));
}

std::string_view to_string(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
    case Precision::int8:
      return "int8";
  }
  throw std::logic_error("not a precision");
}

bool runs_on(const StageInfo& stage, int capability) {
  const std::string_view text = stage.requires_capability;
  int required = 0;
  if (text.starts_with("sm_")) std::from_chars(text.data() + 3, text.data() + text.size(), required);
  return text.ends_with('a') ? capability == required : capability >= required;
}

}  // namespace convladder

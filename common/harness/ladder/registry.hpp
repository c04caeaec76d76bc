/// @file
/// The stages linked into this program, and the steps of chapters, small programs that lead to a stage: a step is found
/// and runs as a stage does, and is not on the ladder. The build generates the table from chapters/NN-name/stage.json
/// and chapters/NN-name/NNa-name/stage.json.
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/ladder/tracks.hpp"
#include "common/stage/stage.hpp"

namespace convladder {

/// A stage's metadata, from its stage.json, and how to make it.
struct StageInfo {
  int number;
  std::string_view name;  ///< "tiled-1d"; the folder is "03-tiled-1d"
  std::string_view folder;
  std::string_view title, track, idea;
  int previous;                          ///< the stage its speedup is measured against, 0 for the first of a track
  std::string_view dtype;                ///< "fp32", "fp16", "bf16", "int8": what it computes in
  std::string_view layout;               ///< "NCHW", "NHWC"
  std::string_view source;               ///< "KEY: what of it; KEY: ...", keys of docs/references.md
  std::string_view requires_capability;  ///< "sm_70": the oldest GPU that runs it, "sm_90a": the only; JSON "requires"
  Stage* (*make)();
  std::string_view settings = {};       ///< of a row that is a stage with some knobs set ("m=4"): which
  Elements tensors = Elements::floats;  ///< its input and output; the filter is fp32 in KCRS for every stage
  int settings_of = 0;                  ///< of a row with settings: the number of the stage whose knobs they set
  std::string_view shape = {};          ///< of a step: what it runs on unless it is told otherwise
  int half_products = 0;                ///< of fp32 on Tensor Cores: so many products of halves make one; else 0
  std::string_view program = {};        ///< of a row that Python runs: its name there ("torch")
};

/// Whether it is a stage: the number of steps is 0, and that of bench's rows that are no stages.
inline bool on_ladder(const StageInfo& stage) { return stage.number > 0; }
/// Whether it is a step.
inline bool is_step(const StageInfo& stage) { return !stage.shape.empty(); }

/// What its folder begins with, by which it is called: "03"; of a step, "32a".
inline std::string_view label_of(const StageInfo& stage) { return stage.folder.substr(0, stage.folder.find('-')); }

/// What find_stage() finds it by: "03", "32a", "32:bf16".
inline std::string designation_of(const StageInfo& stage) {
  const std::size_t colon = stage.folder.find(':');
  return std::string(label_of(stage)) + std::string(stage.folder.substr(std::min(colon, stage.folder.size())));
}

/// What its track says of it.
const Track& track_of(const StageInfo& stage);

/// Its element type. @throws UsageError if its dtype is none
Precision precision_of(const StageInfo& stage);
/// "fp32", "fp16", "bf16" or "int8".
std::string_view to_string(Precision precision);

/// Whether it runs on the host's processor, with every program, and not on the program's device.
bool runs_on_host(const StageInfo& stage);

/// Whether all of them do.
bool all_on_host(const std::vector<const StageInfo*>& stages);

/// Whether its input and output are bytes. Winograd's algorithm in int8 takes halves: its bytes are made of transformed
/// tiles.
inline bool takes_bytes(const StageInfo& stage) { return stage.tensors == Elements::bytes; }
/// Whether they are halves.
inline bool takes_halves(const StageInfo& stage) { return stage.tensors == Elements::halves; }
/// Whether they are bf16.
inline bool takes_bf16(const StageInfo& stage) { return stage.tensors == Elements::bf16s; }

/// In the order of their numbers.
std::span<const StageInfo> stages();
/// The stages that compute in another type, too, as they do there: with the number of the stage, and with ":bf16" after
/// its name and folder. In the order of their numbers.
std::span<const StageInfo> variants();
/// In the order of their labels.
std::span<const StageInfo> steps();
/// Those of a stage's chapter.
std::vector<const StageInfo*> steps_of(const StageInfo& stage);

/// A stage by number ("1", "01"), name or folder; with ":bf16" behind that, the same stage in this type; a step by its
/// label ("32a"), name or folder.
/// @throws UsageError if there is none, with the nearest names, or with the steps that the chapter has
const StageInfo& find_stage(std::string_view designation);

/// The stage in an element type: itself, or its variant; null if it has none.
const StageInfo* in_type(const StageInfo& stage, std::string_view dtype);
/// What a stage computes in, its own type first.
std::vector<std::string_view> types_of(const StageInfo& stage);
/// As in_type(). @param dtype nothing for the stage itself
/// @throws UsageError if it has none
const StageInfo& require_type(const StageInfo& stage, const std::optional<std::string>& dtype);

/// Whether GPUs of a compute capability, 10 * major + minor, run the stage: from 70 on for "sm_70", 90 alone for
/// "sm_90a".
bool runs_on(const StageInfo& stage, int capability);

}  // namespace convladder

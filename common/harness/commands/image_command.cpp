#include "common/harness/commands/image_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "common/harness/commands/picture_convolution.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/picture.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"

namespace convladder {
namespace {

/// Operations that the simulator does in a second, about; by stage 09 twice as many.
constexpr double kSimulatedPerSecond = 20e6;
/// A wait worth a warning.
constexpr double kLongSeconds = 3;

std::vector<const StageInfo*> image_stages() {
  std::vector<const StageInfo*> found;
  for (const StageInfo& stage : stages()) {
    if (track_of(stage).pictures) found.push_back(&stage);
  }
  return found;
}

/// The stage that was named, or none. @throws UsageError if it is of another track
const StageInfo* chosen_stage(const ImageCommand& command) {
  if (!command.stage) return nullptr;
  const StageInfo& stage = find_stage(*command.stage);
  if (track_of(stage).pictures) return &stage;
  std::vector<std::string_view> folders;
  for (const StageInfo* other : image_stages()) folders.push_back(other->folder);
  throw UsageError(
      fmt::format("{} is of the track {}; image takes {}", stage.folder, stage.track, fmt::join(folders, ", ")));
}

Padding padding_of(const ImageCommand& command) {
  return command.padding ? parse_padding(*command.padding) : Padding::replicate;
}

/// The stage that was named, or the last one that takes problem and filter. @throws RefusedError, MachineError
const StageInfo& stage_for(const ImageCommand& command, const ConvProblem& problem, const PictureFilter& filter) {
  const StageInfo* stage = chosen_stage(command);
  if (!stage) {
    for (const StageInfo* candidate : image_stages()) {
      if (!stage || picture_refusal(*candidate, problem, filter).empty()) stage = candidate;
    }
  }
  if (!stage) throw UsageError("this program has no stage of the track images; build all of it");
  if (const std::string rule = device_refusal(*stage); !rule.empty()) throw MachineError(rule);
  if (const std::string rule = picture_refusal(*stage, problem, filter); !rule.empty())
    throw RefusedError(fmt::format("{} refuses: {}", stage->folder, rule));
  return *stage;
}

/// Says how long the simulator may take, where that is long.
void warn_of_the_wait(const StageInfo& stage, const ConvProblem& problem, const PictureFilter& filter) {
  const std::unique_ptr<Stage> instance(stage.make());
  const std::int64_t claimed = instance->predict(problem).flops;
  const double operations =
      static_cast<double>((claimed > 0 ? claimed : problem.flops()) * static_cast<std::int64_t>(filter.taps.size()));
  const double seconds = operations / kSimulatedPerSecond;
  if (seconds < kLongSeconds) return;
  fmt::print(stderr, "note: the simulator does {:.0f} million operations for this, in about {:.0f} seconds\n",
             operations / 1e6, std::ceil(seconds));
}

std::string times_text(const FilteredPicture& filtered) {
  if (!filtered.kernels_us) return "no time is measured";
  return fmt::format("kernels {:.1f} us, with the copies to and from the GPU {:.1f} us", *filtered.kernels_us,
                     filtered.whole_us.value_or(0));
}

}  // namespace

void require_usable(const ImageCommand& command) {
  picture_filter(command.filter);
  chosen_stage(command);
  padding_of(command);
  require_writable(command.output);
  require_different("OUT", command.output, "IN", command.input);
  if (command.filter.file) require_different("OUT", command.output, "--filter", *command.filter.file);
}

int image_command(const ImageCommand& command) {
  const PictureFilter filter = picture_filter(command.filter);
  ConvProblem problem;
  const StageInfo* chosen = nullptr;
  const auto most_samples = [&](const Picture& header) {
    const std::int64_t most = most_picture_samples(true);
    if (header.width > most / header.channels / header.height) return most;  // whatever the stage
    problem = picture_problem(header, filter, padding_of(command));
    validate(problem, std::numeric_limits<std::int64_t>::max());  // the memory is read_png()'s affair
    chosen = &stage_for(command, problem, filter);
    return most_picture_samples(filters_bytes(*chosen, header, filter));
  };
  const Picture picture = read_png(command.input, most_samples);
  const StageInfo& stage = *chosen;
  if (backend() == Backend::sim) warn_of_the_wait(stage, problem, filter);

  const FilteredPicture filtered = filter_picture(stage, problem, picture, filter);
  write_png(command.output, filtered.picture);
  fmt::print("{}: {}; {}, {}x{}; padding {}\n", command.input.string(), to_string(picture), filter.name, filter.rows,
             filter.columns, to_string(problem.padding));
  fmt::print("{} on {}, as {}: {}; wrote {}\n", stage.folder, device_info().name,
             filtered.as_bytes ? "bytes" : "floats", times_text(filtered), command.output.string());
  return 0;
}

}  // namespace convladder

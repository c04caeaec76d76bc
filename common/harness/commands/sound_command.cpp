#include "common/harness/commands/sound_command.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "common/harness/commands/filter_command.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/report/text_report.hpp"
#include "common/harness/run/runner.hpp"
#include "common/harness/run/user_problem.hpp"

namespace convladder {
namespace {

std::string clipped_text(std::int64_t clipped) {
  if (clipped == 0) return "no sample clipped";
  return fmt::format("{} sample{} clipped", clipped, clipped == 1 ? "" : "s");
}

}  // namespace

void require_usable(const SoundCommand& command) {
  require_sound_files();
  require_usable(command.filter);
  chosen_stage(command.stage, &Track::sounds, "sound");
  require_writable(command.output);
  require_different("OUT", command.output, "IN", command.input);
  require_ending("OUT", command.output, ".wav");
}

ConvProblem sound_problem(const Sound& sound, const SoundFilter& filter) {
  return {
      .n = sound.channels, .w = sound.frames, .s = static_cast<std::int64_t>(filter.taps.size()), .pad_w = filter.pad};
}

RunResult filter_sound(const StageInfo& stage, const ConvProblem& problem, const SoundFilter& filter, Sound& sound) {
  UserProblem user;
  user.problem = problem;
  user.tensors = HostTensors{std::move(sound.samples), filter.taps};
  RunOptions options;
  options.cold = false;
  options.keep_output = true;
  RunResult result = run_stage(stage, make_workload(std::move(user), 0), options);
  if (result.status != Status::ok)
    throw DeviceError(fmt::format("{} gave no sound to be written: {}", stage.folder, verdict_line(result)));
  sound.samples = std::move(result.output);
  sound.frames = problem.q();
  return result;
}

int sound_command(const SoundCommand& command) {
  SoundFilter filter;
  ConvProblem problem;
  const StageInfo* stage = nullptr;
  std::string input;
  const auto accept = [&](const Sound& header) {
    input = to_string(header);
    filter = sound_filter(command.filter, header.sample_rate);
    problem = sound_problem(header, filter);
    require_valid(problem);
    stage = &stage_for(command.stage, &Track::sounds, "sound", problem, {filter.taps});
  };
  Sound sound = read_sound(command.input, accept);
  warn_of_the_wait(*stage, problem, 1);

  const RunResult result = filter_sound(*stage, problem, filter, sound);
  const std::int64_t clipped = write_sound(command.output, sound);
  fmt::print("{}: {}; {}; {} taps\n", command.input.string(), input, filter.name, filter.taps.size());
  fmt::print("{} on {}: {}\n", stage->folder, result.device,
             result.time_us ? fmt::format("kernels {:.1f} us", result.time_us->median) : "no time is measured");
  fmt::print("{}\n{}; wrote {}\n", verdict_line(result), clipped_text(clipped), command.output.string());
  return 0;
}

}  // namespace convladder

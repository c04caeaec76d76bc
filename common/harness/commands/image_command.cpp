#include "common/harness/commands/image_command.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>

#include "common/harness/commands/filter_command.hpp"
#include "common/harness/commands/picture_convolution.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/output_file.hpp"
#include "common/harness/files/picture.hpp"
#include "common/harness/files/problem_io.hpp"

namespace convladder {
namespace {

Padding padding_of(const ImageCommand& command) {
  return command.padding ? parse_padding(*command.padding) : Padding::replicate;
}

std::string times_text(const FilteredPicture& filtered) {
  if (!filtered.kernels_us) return "no time is measured";
  return fmt::format("kernels {:.1f} us, with the copies to and from the GPU {:.1f} us", *filtered.kernels_us,
                     filtered.whole_us.value_or(0));
}

}  // namespace

void require_usable(const ImageCommand& command) {
  picture_filter(command.filter);
  chosen_stage(command.stage, &Track::pictures, "image");
  padding_of(command);
  require_writable(command.output);
  require_different("OUT", command.output, "IN", command.input);
  if (command.filter.file) require_different("OUT", command.output, "--filter", *command.filter.file);
  require_ending("OUT", command.output, ".png");
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
    chosen = &stage_for(command.stage, &Track::pictures, "image", problem, filter.taps);
    return most_picture_samples(filters_bytes(*chosen, header, filter));
  };
  const Picture picture = read_png(command.input, most_samples);
  const StageInfo& stage = *chosen;
  warn_of_the_wait(stage, problem, filter.taps.size());

  const FilteredPicture filtered = filter_picture(stage, problem, picture, filter);
  write_png(command.output, filtered.picture);
  fmt::print("{}: {}; {}, {}x{}; padding {}\n", command.input.string(), to_string(picture), filter.name, filter.rows,
             filter.columns, to_string(problem.padding));
  fmt::print("{} on {}, as {}: {}; wrote {}\n", stage.folder, device_info().name,
             filtered.as_bytes ? "bytes" : "floats", times_text(filtered), command.output.string());
  return 0;
}

}  // namespace convladder

#include "common/harness/commands/cli.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <limits>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/harness/commands/bench.hpp"
#include "common/harness/commands/best_command.hpp"
#include "common/harness/commands/commands.hpp"
#include "common/harness/commands/explore_command.hpp"
#include "common/harness/commands/fusion_measure.hpp"
#include "common/harness/commands/image_command.hpp"
#include "common/harness/commands/prune_command.hpp"
#include "common/harness/commands/sound_command.hpp"
#include "common/harness/commands/trace_command.hpp"
#include "common/harness/commands/tune_command.hpp"
#include "common/harness/device/print_stderr.hpp"
#include "common/harness/device/programs.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/files/integer.hpp"
#include "common/harness/files/spelling.hpp"
#include "common/harness/ladder/registry.hpp"
#include "common/harness/run/refusal.hpp"

namespace convladder {
namespace {

constexpr int kFailed = 1, kUnusable = 2, kRefused = 3;
constexpr std::string_view kCommands[] = {"list",  "run",  "bench",   "best",  "compare", "image",
                                          "sound", "tune", "explore", "prune", "trace"};

int complain(std::string message, int status) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::fflush(stdout);
  print_stderr("./lab: {}\n", message);
  return status;
}

/// Everything that the commands' options set.
struct CommandLine {
  std::string backend = "auto";
  std::optional<std::string> gpu;  ///< which the simulator stands for
  bool json = false, sass = false;
  bool measures = false;             ///< of explore
  std::optional<std::string> dtype;  ///< of run
  std::string stage;                 ///< of run
  std::vector<std::string> stages;   ///< of compare
  RunCommand run;
  CompareCommand compare;
  BenchCommand bench;
  BestCommand best;
  ImageCommand image;
  SoundCommand sound;
  TuneCommand tune;
  ExploreCommand explore;
  MeasureCommand measure;
  PruneCommand prune;
  TraceCommand trace;
};

using Body = std::function<int()>;

/// An option that sets an optional.
template <class Value>
CLI::Option* add_optional(CLI::App& app, const std::string& name, std::optional<Value>& target,
                          const std::string& help) {
  return app.add_option_function<std::string>(
      name, [&target](const std::string& text) { target = text; }, help);
}

/// An option that sets an integer.
template <class Integer, class Target>
CLI::Option* add_integer(CLI::App& app, const std::string& name, Target& target, Integer least, Integer most,
                         const std::string& help) {
  const auto set = [=, &target](const std::string& text) { target = parse_integer(name, text, least, most); };
  return app.add_option_function<std::string>(name, set, help)->type_name("INT");
}

/// An option that sets an optional number.
template <class Value>
void add_number(CLI::App& app, const std::string& name, std::optional<Value>& target, const std::string& help) {
  app.add_option_function<Value>(
      name, [&target](const Value& value) { target = value; }, help);
}

void add_backend(CLI::App& app, CommandLine& line) {
  app.add_option("--backend", line.backend,
                 "auto, gpu or sim; auto takes the GPU where there is one; stages of the track cpu ignore it")
      ->check(CLI::IsMember({"auto", "gpu", "sim"}));
}

void add_gpu(CLI::App& app, CommandLine& line) {
  add_optional(
      app, "--gpu", line.gpu,
      "as in T4: the simulator has that GPU's shared memory, multiprocessors and instructions; default: an H200 "
      "with two multiprocessors")
      ->type_name("NAME");
}

/// Goes on in the program that the options ask for.
/// @param choice of --backend; a GPU by name is the simulator's
void go_on(const CommandLine& line, BackendChoice choice, char** arguments) {
  if (!line.gpu) return continue_on(choice, arguments);
  const Gpu& gpu = gpu_named(*line.gpu);
  if (choice == BackendChoice::gpu)
    throw UsageError("--gpu says what the simulator stands for; leave it out, or use --backend sim");
  continue_on(BackendChoice::sim, arguments);
  stand_for(&gpu);
}

void add_shards(CLI::App& app, Shard& shard, const char* help) {
  app.add_option_function<std::string>(
         "--shards", [&shard](const std::string& text) { shard = parse_shard(text); }, help)
      ->type_name("I/N");
}

void add_problem(CLI::App& app, ProblemOptions& problem) {
  add_optional(app, "--shape", problem.shape,
               "as in c=64,h=56,w=56,k=64,r=3,s=3; keys n, c, h, w, k, r, s, pad_h, pad_w, stride_h, stride_w, "
               "dilation_h, dilation_w, groups, epilogue (none, bias, bias_relu, bias_residual_relu); default: the "
               "track's first workload")
      ->type_name("KEY=N,...");
  add_optional(app, "--padding", problem.padding, "what lies outside the input: zero (default), replicate or reflect")
      ->type_name("MODE");
  add_integer(app, "--seed", problem.seed, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(),
              "of the random input and filter, and of tune's searches")
      ->type_name("UINT");
}

void add_configuration(CLI::App& app, std::string& configuration) {
  const auto set = [&configuration](const std::string& text) {
    if (text.empty()) throw UsageError("--configuration takes knob=value, as in m=4,tbm=32; got ''");
    configuration = text;
  };
  app.add_option_function<std::string>("--configuration", set,
                                       "knobs of a stage that has some, as in m=4; the others keep their defaults")
      ->type_name("KNOB=VALUE,...");
}

void add_list(CLI::App& app, CommandLine& line, Body& body) {
  CLI::App* const list = app.add_subcommand("list", "the stages with their metadata");
  list->add_flag("--json", line.json, "print JSON");
  list->callback([&] { body = [&line] { return list_stages(line.json); }; });
}

void add_dtype(CLI::App& app, std::optional<std::string>& dtype, const char* help) {
  add_optional(app, "--dtype", dtype, help)->type_name("TYPE");
}

int do_run(CommandLine& line, char** arguments) {
  // An unknown stage is told before anything else.
  const StageInfo& stage = require_type(find_stage(line.stage), line.dtype);
  if (runs_on_host(stage)) {
    const std::pair<bool, std::pair<const char*, const char*>> unusable[] = {
        {line.sass, {"has no machine code for a GPU", "--sass"}},
        {line.run.lines, {"has no counters of source lines", "--lines"}},
        {line.gpu.has_value(), {"asks nothing of a GPU", "--gpu"}}};
    for (const auto& [given, texts] : unusable) {
      if (given)
        throw UsageError(
            fmt::format("{} runs on the CPU: it {}; leave out {}", stage.folder, texts.first, texts.second));
    }
    return run_command(stage, line.run);
  }
  if (line.sass) return print_sass(stage);
  BackendChoice choice = parse_backend(line.backend);
  if (line.run.lines) {
    if (choice == BackendChoice::gpu) throw UsageError("--lines counts in the simulator; use it with --backend sim");
    choice = BackendChoice::sim;
  }
  go_on(line, choice, arguments);
  return run_command(stage, line.run);
}

void add_run(CLI::App& app, CommandLine& line, Body& body, char** arguments, bool one_stage) {
  CLI::App* const run = app.add_subcommand("run", "one stage on one problem: checked, then timed or counted");
  CLI::Option* const stage =
      run->add_option("STAGE", line.stage, "a number (3 or 03; a step: 32a; in bf16: 32:bf16), name or folder");
  if (one_stage) {
    line.stage = std::string(stages().front().folder);
  } else {
    stage->required();
  }
  add_dtype(*run, line.dtype, "what the stage computes in, where it can in several: bf16");
  add_problem(*run, line.run.problem);
  add_configuration(*run, line.run.configuration);
  add_backend(*run, line);
  add_gpu(*run, line);
  run->add_flag("--lines", line.run.lines, "counters of each source line (simulator)");
  CLI::Option* const json = run->add_flag("--json", line.run.json, "print one JSON object");
  CLI::Option* const beside = run->add_flag(
      "--beside", line.run.beside, "also run the previous stage and cuDNN on the problem, and print the ratios");
  run->add_flag("--sass", line.sass, "print the machine code of the stage's kernels instead of running them")
      ->excludes(json)
      ->excludes(beside);
  CLI::Option* const input =
      add_optional(*run, "--input", line.run.problem.input, "float32 .npy: (n, c, h, w), or 1-D, or 2-D")
          ->type_name("FILE");
  CLI::Option* const filter =
      add_optional(*run, "--filter", line.run.problem.filter, "float32 .npy: (k, c/groups, r, s), or 1-D, or 2-D")
          ->type_name("FILE");
  input->needs(filter);
  filter->needs(input);
  add_optional(*run, "--output", line.run.output, "where to write the result, (n, k, p, q), as .npy; only on success")
      ->type_name("FILE");
  run->callback([&, arguments] { body = [&line, arguments] { return do_run(line, arguments); }; });
}

void add_bench(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  CLI::App* const bench = app.add_subcommand("bench", "the whole ladder, verified, as a table");
  const auto add_list_option = [&](const char* name, std::vector<std::string>& target, const char* help) {
    bench->add_option(name, target, help)->delimiter(',')->allow_extra_args(false);
  };
  add_list_option("--stage", line.bench.stages, "only these stages (repeat, or separate by commas)");
  add_list_option("--track", line.bench.tracks, "only these tracks");
  add_dtype(*bench, line.bench.dtype, "only stages that compute in fp32, fp16, bf16 or int8, and cuDNN in it");
  // Not separated by commas: names have some.
  CLI::Option* const workload = bench
                                    ->add_option("--workload", line.bench.workloads,
                                                 "this workload by name (repeat), or all; default: the first three")
                                    ->allow_extra_args(false);
  CLI::Option* const shape =
      bench
          ->add_option("--shape", line.bench.shapes,
                       "a layer of your own (repeat), as of run, for every stage that takes it; instead of workloads")
          ->type_name("KEY=N,...")
          ->allow_extra_args(false)
          ->excludes(workload);
  add_optional(*bench, "--padding", line.bench.padding,
               "what lies outside the layer's input: zero (default), replicate or reflect")
      ->type_name("MODE")
      ->needs(shape);
  add_backend(*bench, line);
  add_gpu(*bench, line);
  add_optional(*bench, "--json", line.bench.json, "also write JSON to this file")->type_name("FILE");
  add_optional(*bench, "--csv", line.bench.csv, "also write CSV to this file")->type_name("FILE");
  add_shards(*bench, line.bench.shard, "the I-th of N parts of the workloads; ./lab merge joins their JSON");
  bench
      ->add_option(
          "--cudnn", line.bench.cudnn,
          "heuristics (default): cuDNN's proposals and known winners; exhaustive: search its engines and knobs")
      ->check(CLI::IsMember({"heuristics", "exhaustive"}));
  add_number(*bench, "--cudnn-seconds", line.bench.cudnn_seconds,
             "of an exhaustive search, for each problem and element type; default 60");
  bench->footer(
      "--plot DIR draws the results afterwards.\n--submit DIR writes what a pull request with a GPU's results needs "
      "(docs/measure-your-gpu.md).\nWhat follows -- goes to Google Benchmark, as in: ./lab bench -- "
      "--benchmark_filter=tiled");
  bench->callback([&, arguments] {
    body = [&line, arguments] {
      if (!all_on_host(chosen_stages(line.bench))) go_on(line, parse_backend(line.backend), arguments);
      return bench_command(line.bench);
    };
  });
}

void add_best(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  BestCommand& best = line.best;
  CLI::App* const command =
      app.add_subcommand("best", "the fastest stage and configuration for a layer here, within an error");
  add_problem(*command, best.problem);
  command->add_option("--dtype", best.dtype, "what the stages compute in: fp32 (default), fp16, bf16 or int8")
      ->type_name("TYPE");
  add_number(*command, "--error", best.error,
             "the largest relative error (L2) against the reference in double; default: 1e-5 in fp32, else any");
  command->add_flag("--again", best.again, "measure, whatever an earlier call kept");
  add_backend(*command, line);
  command->add_flag("--json", best.json, "print one JSON object with every candidate");
  command->callback([&, arguments] {
    body = [&line, arguments] {
      require_usable(line.best);
      continue_on(parse_backend(line.backend), arguments);
      return best_command(line.best);
    };
  });
}

void add_compare(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  CLI::App* const compare = app.add_subcommand("compare", "stages side by side on one problem");
  compare->add_option("STAGES", line.stages, "two or more stages; ratios are to the first")
      ->required()
      ->expected(2, CLI::detail::expected_max_vector_size);
  add_problem(*compare, line.compare.problem);
  add_configuration(*compare, line.compare.configuration);
  add_backend(*compare, line);
  add_gpu(*compare, line);
  compare->add_flag("--json", line.compare.json, "print an array of run's JSON objects");
  compare->footer(
      "./lab compare OLD.json NEW.json tells which rows of two files that bench --json wrote are faster, slower or the "
      "same.");
  compare->callback([&, arguments] {
    body = [&line, arguments] {
      std::vector<const StageInfo*> stages;
      for (const std::string& stage : line.stages) stages.push_back(&find_stage(stage));
      if (!all_on_host(stages)) go_on(line, parse_backend(line.backend), arguments);
      return compare_command(stages, line.compare);
    };
  });
}

void add_image(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  ImageCommand& image = line.image;
  CLI::App* const command = app.add_subcommand("image", "a filter on a PNG picture, by a stage of the track images");
  command->add_option("FILTER", image.filter.name, std::string(kPictureFilterNames))->required();
  command->add_option("IN", image.input, "a PNG of 8 or 16 bits; alpha is left as it is")->required();
  command->add_option("OUT", image.output, "the PNG to write")->required();
  add_number(*command, "--sigma", image.filter.sigma, "of gaussian, in pixels; default 2");
  add_integer(*command, "--size", image.filter.size, std::int64_t{1}, kLargestPictureFilter,
              "rows and columns of box (default 5) or of gaussian (default: as far as 3 sigma); 1 to 65");
  add_optional(*command, "--filter", image.filter.file, "of custom: a float32 .npy, or text with a row on each line")
      ->type_name("FILE");
  add_optional(*command, "--stage", image.stage,
               "a number, name or folder; default: the last of the track images that takes the filter");
  add_optional(*command, "--padding", image.padding,
               "what lies beyond the picture's edge: zero, replicate (default) or reflect")
      ->type_name("MODE");
  add_backend(*command, line);
  command->callback([&, arguments] {
    body = [&line, arguments] {
      require_usable(line.image);
      continue_on(parse_backend(line.backend), arguments);
      return image_command(line.image);
    };
  });
}

void add_sound(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  SoundCommand& sound = line.sound;
  CLI::App* const command = app.add_subcommand("sound", "a filter on a WAV file, by a stage of the track signals");
  command->add_option("FILTER", sound.filter.name, std::string(kSoundFilterNames))->required();
  command->add_option("IN", sound.input, "a WAV of integers or floats; each channel is filtered by itself")->required();
  command->add_option("OUT", sound.output, "the WAV to write, of the same format")->required();
  add_number(*command, "--cutoff", sound.filter.cutoff, "of lowpass, in Hz; default 1000");
  add_number(*command, "--delay", sound.filter.delay, "of echo, in milliseconds; default 150");
  add_number(*command, "--bass", sound.filter.bass, "of equalise: gain below 250 Hz in dB, -60 to 20; default 0");
  add_number(*command, "--mid", sound.filter.mid, "of equalise: gain from 250 to 4000 Hz; default 0");
  add_number(*command, "--treble", sound.filter.treble, "of equalise: gain above 4000 Hz; default 0");
  add_optional(*command, "--stage", sound.stage,
               "a number, name or folder; default: the last of the track signals that takes the filter");
  add_backend(*command, line);
  command->callback([&, arguments] {
    body = [&line, arguments] {
      require_usable(line.sound);
      continue_on(parse_backend(line.backend), arguments);
      return sound_command(line.sound);
    };
  });
}

void add_tune(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  TuneCommand& tune = line.tune;
  CLI::App* const command =
      app.add_subcommand("tune", "searches the configurations of a stage, 15 by default, for the fastest here");
  add_optional(*command, "STAGE", tune.stage, "a number, name or folder; default: 15");
  add_problem(*command, tune.problem);
  add_optional(*command, "--workload", tune.workload, "a workload of the track by its name, instead of --shape")
      ->type_name("NAME");
  command->add_option("--search", tune.search,
                      "random, annealing (default), model, exhaustive, or all: one after the other");
  command
      ->add_option("--configuration", tune.configuration,
                   "knobs that stay as they are set, as in filter=shared; the others are searched")
      ->type_name("KNOB=VALUE,...");
  add_shards(*command, tune.shard,
             "search the I-th of N parts of the valid configurations; ./lab merge joins the logs");
  add_integer(*command, "--trials", tune.trials, std::int64_t{0}, std::numeric_limits<std::int64_t>::max(),
              "configurations that each search may try; default 60; 0: as many as are valid");
  add_backend(*command, line);
  add_optional(*command, "--kernel-tuner", tune.kernel_tuner,
               "write the trials to FILE, too, in the format of Kernel Tuner's caches")
      ->type_name("FILE");
  add_optional(*command, "--replay", tune.replay,
               "try nothing: compare random, annealing and model over the trials of a log, ten seeds each")
      ->type_name("LOG");
  command->add_flag("--json", tune.json, "print the log's JSON object instead of the report");
  command->footer(
      "--plot DIR draws DIR/tuning.svg afterwards.\nCtrl-C ends the search and keeps what was found (exit status "
      "130).");
  command->callback([&, arguments] {
    body = [&line, arguments] {
      require_usable(line.tune);
      continue_on(parse_backend(line.backend), arguments);
      return tune_command(line.tune);
    };
  });
}

void add_explore(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  ExploreCommand& explore = line.explore;
  MeasureCommand& measure = line.measure;
  CLI::App* const command =
      app.add_subcommand("explore", "the tiles of partial fusion that a GPU has room for, and why not the others");
  std::vector<CLI::Option*> of_rules;
  add_optional(*command, "--gpu", explore.gpu,
               "by name, as in A100; default: this machine's, else the RTX 2080 Ti; with --measure --backend sim: what "
               "the simulator stands for")
      ->type_name("NAME");
  of_rules.push_back(
      add_optional(*command, "--smem", explore.smem, "shared memory of a block, as in 64K; instead of the GPU's")
          ->type_name("BYTES"));
  of_rules.push_back(
      add_optional(*command, "--l2", explore.l2, "L2 cache, as in 5.5M; instead of the GPU's")->type_name("BYTES"));
  of_rules.push_back(
      add_optional(*command, "--sms", explore.sms, "multiprocessors, instead of the GPU's")->type_name("N"));
  of_rules.push_back(command->add_option("--type", explore.type, "of the transformed tensors: fp16 (default) or int8")
                         ->type_name("TYPE"));
  CLI::Option* const shape =
      command->add_option("--shape", explore.shape, "the layer; default: " + explore.shape + ", 3x3")
          ->type_name("KEY=N,...");
  of_rules.push_back(
      command->add_option("--m", explore.m, "outputs along a tile's side: 2, 4 (default) or 6")->type_name("N"));
  of_rules.push_back(command->add_flag("--all", explore.all, "list every tile with its figures"));
  CLI::Option* const measures =
      command->add_flag("--measure", line.measures,
                        "run what stages 26 to 30 can here, and hold the times against the rules and a model");
  for (CLI::Option* const option : of_rules) measures->excludes(option);
  command->add_option("--stage", measure.stages, "with --measure: only these stages (repeat, or separate by commas)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->needs(measures);
  command->add_option("--budget", measure.budget, "with --measure: begin no further point after so many seconds")
      ->type_name("SECONDS")
      ->needs(measures);
  command->add_option("--backend", line.backend, "with --measure: auto, gpu or sim, which counts instead of timing")
      ->check(CLI::IsMember({"auto", "gpu", "sim"}))
      ->needs(measures);
  command->add_flag("--json", explore.json, "print one JSON object");
  command->callback([&, arguments, shape] {
    const bool has_shape = shape->count() > 0;
    body = [&line, arguments, has_shape] {
      if (!line.measures) return explore_command(line.explore);
      if (has_shape) line.measure.shape = line.explore.shape;
      line.measure.json = line.explore.json;
      require_usable(line.measure);
      line.gpu = line.explore.gpu;
      go_on(line, parse_backend(line.backend), arguments);
      return measure_command(line.measure);
    };
  });
}

void add_prune(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  CLI::App* const command = app.add_subcommand(
      "prune", "which block barriers of a stage's kernels are needed, by the simulator's race check");
  command->add_option("STAGE", line.prune.stage, "a number, name or folder")->required();
  add_configuration(*command, line.prune.configuration);
  command->add_flag("--greedy", line.prune.greedy, "a barrier that is not needed stays away while the next is tried");
  command->add_flag("--json", line.prune.json, "print one JSON object");
  command->callback([&, arguments] {
    body = [&line, arguments] {
      require_usable(line.prune);
      continue_on(BackendChoice::sim, arguments);
      return prune_command(line.prune);
    };
  });
}

void add_trace(CLI::App& app, CommandLine& line, Body& body, char** arguments) {
  TraceCommand& trace = line.trace;
  CLI::App* const command =
      app.add_subcommand("trace", "what one block of a stage's kernels does, event by event, in the simulator");
  command->add_option("STAGE", trace.stage, "a number, name or folder")->required();
  add_problem(*command, trace.problem);
  add_configuration(*command, trace.configuration);
  command->add_option("--block", trace.block, "which block, as in 2 or 0,1; default: the first")->type_name("X,Y,Z");
  add_integer(*command, "--warp", trace.warp, 0, 31, "only what this warp of the block does, and barriers");
  add_integer(*command, "--events", trace.events, std::int64_t{0}, std::numeric_limits<std::int64_t>::max(),
              "of each launch, at most; default: 1000")
      ->type_name("N");
  command->add_flag("--loads", trace.loads, "instead: how often each sector of each tensor is loaded, by all blocks")
      ->excludes("--block", "--warp", "--events");
  command->add_flag("--json", trace.json, "print one JSON object");
  command->callback([&, arguments] {
    body = [&line, arguments] {
      require_usable(line.trace);
      continue_on(BackendChoice::sim, arguments);
      return trace_command(line.trace);
    };
  });
}

/// The first option among the words that the command does not have, and the one that was meant; "" where there is none.
std::string unknown_option(const CLI::App& command, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (!name.starts_with('-') || name.size() < 3 || std::find(known.begin(), known.end(), name) != known.end())
      continue;
    if (name[1] >= '0' && name[1] <= '9') continue;  // a negative number is an option's value
    const std::string_view nearest = nearest_name(name, {known.begin(), known.end()});
    return fmt::format("unknown option {}{}", in_quotes(name),
                       nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest));
  }
  return "";
}

/// CLI11's words on how often an option was given, or with how many values, in ours.
std::string with_plain_count(const std::string& reason) {
  const std::string option = reason.substr(0, reason.find(':'));
  if (reason.find("At Most 1 required") != std::string::npos) return option + " is given more than once; give it once";
  const std::size_t before = reason.find(" required "), after = reason.rfind(" missing");
  if (before == std::string::npos || after == std::string::npos) return reason;
  const std::size_t type = before + std::string_view(" required ").size();
  return fmt::format("{} needs a value, {}", option, reason.substr(type, after - type));
}

/// Says what is wrong with a command line in one line.
int explain(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& words) {
  const auto chosen = app.get_subcommands();
  if (chosen.empty() && !words.empty() && !words.front().starts_with('-')) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(command->get_name());
    return complain(
        fmt::format("unknown command {}; the commands here are {}", in_quotes(words.front()), fmt::join(names, ", ")),
        kUnusable);
  }
  const std::string command = chosen.empty() ? "" : " " + chosen.front()->get_name();
  std::string reason = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) && !chosen.empty()) {
    const std::string option = unknown_option(*chosen.front(), words);
    if (!option.empty()) reason = option;
  }
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch)) reason = with_plain_count(reason);
  return complain(fmt::format("{}; see ./lab{} --help", reason, command), kUnusable);
}

/// Parses and runs. @param words without the program's name @param arguments as they came, for the sibling program
int parse_and_run(std::vector<std::string> words, char** arguments, bool one_stage) {
  CommandLine line;
  Body body;
  CLI::App app("ConvLadder: a ladder of CUDA convolution kernels", "./lab");
  app.require_subcommand(1);
  add_list(app, line, body);
  add_run(app, line, body, arguments, one_stage);
  add_bench(app, line, body, arguments);
  if (!one_stage) add_best(app, line, body, arguments);
  if (!one_stage) add_compare(app, line, body, arguments);
  if (!one_stage) add_image(app, line, body, arguments);
  if (!one_stage) add_sound(app, line, body, arguments);
  if (!one_stage) add_tune(app, line, body, arguments);
  if (!one_stage) add_explore(app, line, body, arguments);
  if (!one_stage) add_prune(app, line, body, arguments);
  if (!one_stage) add_trace(app, line, body, arguments);

  if (!words.empty() && words.front() == "bench") {
    const auto separator = std::find(words.begin(), words.end(), "--");
    if (separator != words.end()) {
      line.bench.benchmark_flags.assign(separator + 1, words.end());
      words.erase(separator, words.end());
    }
  }
  constexpr const char* kFull = "cannot write to the standard output";
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // it takes them last first
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return explain(error, app, words);
    app.exit(error);  // --help
    return std::cout.flush() ? 0 : complain(kFull, kUnusable);
  }
  try {
    const int status = body();
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? status : complain(kFull, kUnusable);
  } catch (const std::system_error&) {  // fmt's, where the text is longer than the stream's buffer
    if (std::ferror(stdout) != 0) return complain(kFull, kUnusable);
    throw;
  }
}

bool names_command(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  return words.front() == "--help" || words.front() == "-h" ||
         std::find(std::begin(kCommands), std::end(kCommands), words.front()) != std::end(kCommands);
}

int guarded(const Body& body) {
  try {
    return body();
  } catch (const RefusedError& error) {
    return complain(error.what(), kRefused);
  } catch (const UsageError& error) {
    return complain(error.what(), kUnusable);
  } catch (const MachineError& error) {
    return complain(error.what(), kUnusable);
  } catch (const std::bad_alloc&) {
    return complain("not enough memory; choose a smaller problem", kUnusable);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  } catch (...) {
    return complain("a stage threw something that is no std::exception", kFailed);
  }
}

}  // namespace

int run_program(int count, char** arguments) {
  // Where the caller has closed one of these, the next file that is opened would take its number, and what is printed.
  // Writing to the standard output stays an error.
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) == -1) open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  std::vector<std::string> words(arguments + 1, arguments + count);
  const bool one_stage = stages().size() == 1;
  if (one_stage && !names_command(words)) words.insert(words.begin(), "run");
  return guarded([&] { return parse_and_run(words, arguments, one_stage); });
}

}  // namespace convladder

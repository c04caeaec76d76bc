#include "common/harness/run/host_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "common/harness/device/host.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/run/refusal.hpp"
#include "common/harness/run/runner.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

/// The direct form without padding, for one image and one channel.
void convolve(const ConvProblem& x, const Tensors& tensors) {
  for (std::int64_t p = 0; p < x.p(); ++p) {
    for (std::int64_t q = 0; q < x.q(); ++q) {
      float sum = 0;
      for (std::int64_t r = 0; r < x.r; ++r)
        for (std::int64_t s = 0; s < x.s; ++s)
          sum += tensors.filter[r * x.s + s] * tensors.input[(p + r) * x.w + q + s];
      tensors.output[p * x.q() + q] = sum;
    }
  }
}

/// A right stage, the base of the wrong ones. It refuses filters of one tap.
class Right : public Stage {
 public:
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    return problem.s > 1 ? Verdict::accept() : Verdict::refuse("the filter is too short");
  }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override { convolve(problem, tensors); }
  void prepare(const ConvProblem&, const Tensors&, Stream) override { state_memory(12); }
};

struct WithProduct : Right {
  bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    convolve(problem, tensors);
    return true;
  }
};

struct WrongProduct : Right {
  bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    convolve(problem, tensors);
    tensors.output[1] += 1;
    return true;
  }
};

struct Unwritten : Right {
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    const float last = tensors.output[problem.output_size() - 1];
    convolve(problem, tensors);
    tensors.output[problem.output_size() - 1] = last;
  }
};

struct WritesPast : Right {
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    convolve(problem, tensors);
    tensors.output[problem.output_size()] = 0;
  }
};

struct WritesBefore : Right {
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    convolve(problem, tensors);
    tensors.output[-1] = 0;
  }
};

struct Unaligned : Right {
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    for (const float* tensor : {tensors.input, tensors.filter, static_cast<const float*>(tensors.output)})
      if (reinterpret_cast<std::uintptr_t>(tensor) % 64 != 0) return;
    convolve(problem, tensors);
  }
};

struct WithoutMemory : Right {
  void prepare(const ConvProblem&, const Tensors&, Stream) override { throw std::bad_alloc(); }
};

/// Right if its knob is 2, which is not its default.
class Tunable final : public TunableStage {
 public:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override { return Verdict::accept(); }
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    if (knob("factor") == 2) convolve(problem, tensors);
  }
  Knobs knobs() const override {
    static constexpr int kValues[] = {1, 2};
    static constexpr Knob kKnobs[] = {{"factor", kValues, 1}};
    return kKnobs;
  }
};

template <class Type>
StageInfo on_cpu() {
  return {0, "test", "test", "", "cpu",    "",
          0, "fp32", "NCHW", "", "sm_999", [] { return static_cast<Stage*>(new Type); }};
}

template <class Type>
RunResult run(const RunOptions& options = {}, std::string_view shape = "h=6,w=9,r=3,s=3,pad_h=0,pad_w=0") {
  static const StageInfo info = on_cpu<Type>();
  return run_stage(info, make_workload("", parse_shape(shape), InputKind::normal, FilterForm::dense, 1), options);
}

TEST_CASE("a stage of the track cpu is checked and timed on the host, whatever the device") {
  RunOptions options;
  options.keep_output = true;
  const RunResult result = run<Right>(options);
  CHECK_MESSAGE(result.status == Status::ok, result.reason);
  CHECK(result.verified);
  CHECK(result.backend == "cpu");
  CHECK(result.device == host_info().name);
  CHECK(result.device.find(" thread") != std::string::npos);
  REQUIRE(result.time_us);
  CHECK(result.time_us->median > 0);
  CHECK(result.time_us->min <= result.time_us->median);
  CHECK(result.prepare_us);
  CHECK(result.workspace_bytes == 12);
  CHECK_FALSE(result.time_cold_us);
  CHECK_FALSE(result.cold_unavailable.empty());
  CHECK_FALSE(result.time_without_transform_us);
  CHECK_FALSE(result.counters);
  CHECK(result.faults.empty());
  CHECK(result.output.size() == 4 * 7);
}

TEST_CASE("without timing it is checked alone") {
  RunOptions options;
  options.time = false;
  const RunResult result = run<WithProduct>(options);
  CHECK(result.verified);
  CHECK_FALSE(result.time_us);
  CHECK_FALSE(result.time_without_transform_us);
}

TEST_CASE("the product alone is timed, and checked") {
  const RunResult right = run<WithProduct>();
  CHECK_MESSAGE(right.status == Status::ok, right.reason);
  REQUIRE(right.time_without_transform_us);
  CHECK(right.time_without_transform_us->median > 0);
  const RunResult wrong = run<WrongProduct>();
  CHECK(wrong.status == Status::wrong);
  CHECK_FALSE(wrong.verified);
  CHECK_MESSAGE(wrong.reason.starts_with("the product alone: 1 of 28 outputs is wrong"), wrong.reason);
}

TEST_CASE("its outputs are poisoned, and guard bands stand around its tensors") {
  CHECK(run<Unwritten>().check->unwritten == 1);
  for (const RunResult& result : {run<WritesPast>(), run<WritesBefore>()}) {
    CHECK(result.status == Status::fault);
    CHECK_MESSAGE(result.reason.find("just outside 'output'") != std::string::npos, result.reason);
    CHECK(result.faults.size() == 1);
  }
  CHECK(run<Unaligned>().status == Status::ok);
}

TEST_CASE("it refuses by its own rules; those of the device do not bind it") {
  const RunResult result = run<Right>({}, "w=5");
  CHECK(result.status == Status::refused);
  CHECK(result.reason == "the filter is too short");
  CHECK(device_refusal(on_cpu<Right>()).empty());  // sm_999 is no matter
}

TEST_CASE("missing memory is no result") { CHECK_THROWS_AS(run<WithoutMemory>(), std::bad_alloc); }

TEST_CASE("it runs with the configuration that is given, else with its default") {
  RunOptions options;
  options.configuration = Tunable().configuration();
  (*options.configuration)["factor"] = 2;
  const RunResult given = run<Tunable>(options), by_default = run<Tunable>();
  CHECK(given.status == Status::ok);
  CHECK(given.configuration->origin == "given");
  CHECK(by_default.status == Status::wrong);
  CHECK(by_default.configuration->origin == "default");
}

}  // namespace
}  // namespace convladder

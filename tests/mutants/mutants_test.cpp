// Checks the checks: each mutant must fail the suite that the stages pass, and for its own reason.
#include <doctest/doctest.h>

#include "tests/mutants/signal_mutants.hpp"
#include "tests/stage_suite.hpp"

using namespace convladder;

namespace {

template <SignalMutation M>
StageInfo mutant() {
  StageInfo info{};
  info.name = info.folder = info.title = "mutant";
  info.track = "signals";
  info.dtype = "fp32";
  info.layout = "NCHW";
  info.requires_capability = "sm_70";
  info.make = &make_signal_mutant<M>;
  return info;
}

/// Runs the suite until `evidence` is found in a rejection; the cases before must not fail for another reason first
/// unless they, too, are rejections.
/// @param in_simulator what a result's reason must contain there  @param on_gpu and on a GPU, where no access is
/// checked
template <SignalMutation M>
void check_rejected(std::string_view in_simulator, std::string_view on_gpu, Padding only_with, InputKind only_for) {
  const std::string_view evidence = backend() == Backend::sim ? in_simulator : on_gpu;
  int rejected = 0, with_evidence = 0, elsewhere = 0;
  std::string reason;
  for (const SuiteCase& suite_case : signal_suite()) {
    const RunResult result = run_case(mutant<M>(), suite_case);
    if (result.status == Status::ok) continue;
    ++rejected;
    reason = result.reason;
    with_evidence += result.reason.find(evidence) != std::string::npos;
    elsewhere += (only_with != Padding::zero && suite_case.problem.padding != only_with) ||
                 (only_for != InputKind::normal && suite_case.inputs != only_for);
  }
  CHECK(rejected > 0);
  CHECK_MESSAGE(with_evidence > 0, reason);
  CHECK(elsewhere == 0);
}

template <SignalMutation M>
void check_rejected(std::string_view in_simulator, std::string_view on_gpu) {
  check_rejected<M>(in_simulator, on_gpu, Padding::zero, InputKind::normal);
}

}  // namespace

TEST_CASE("mutants: the kernel they are made from passes") {
  for (const SuiteCase& suite_case : signal_suite()) {
    CAPTURE(to_string(suite_case));
    const RunResult result = run_case(mutant<SignalMutation::none>(), suite_case);
    CHECK_MESSAGE(result.status == Status::ok, result.reason);
  }
}

TEST_CASE("mutants: a halo one element short is caught") {
  check_rejected<SignalMutation::short_halo>("uninitialized", "outputs are wrong");
}
TEST_CASE("mutants: a halo off by one is caught") {
  check_rejected<SignalMutation::shifted_halo>("outputs are wrong", "outputs are wrong");
}
TEST_CASE("mutants: a flipped filter is caught") {
  check_rejected<SignalMutation::flipped_filter>("outputs are wrong", "outputs are wrong");
}
TEST_CASE("mutants: an unwritten tail is caught") {
  check_rejected<SignalMutation::unwritten_tail>("never written", "never written");
}
TEST_CASE("mutants: a write past the end is caught") {
  check_rejected<SignalMutation::write_past_end>("out_of_bounds", "just outside");
}
TEST_CASE("mutants: a wrong padding value is caught, with replicate padding only") {
  check_rejected<SignalMutation::replicate_reads_zero>("outputs are wrong", "outputs are wrong", Padding::replicate,
                                                       InputKind::normal);
}
TEST_CASE("mutants: reflect off by one is caught, with reflect padding only") {
  check_rejected<SignalMutation::reflect_repeats_edge>("outputs are wrong", "outputs are wrong", Padding::reflect,
                                                       InputKind::normal);
}
TEST_CASE("mutants: a swallowed NaN is caught, by the NaN input only") {
  check_rejected<SignalMutation::nan_swallowed>("outputs are wrong", "outputs are wrong", Padding::zero,
                                                InputKind::nan);
}
TEST_CASE("mutants: an ignored batch is caught") {
  check_rejected<SignalMutation::batch_ignored>("outputs are wrong", "outputs are wrong");
}
// A GPU may well give the right result: that is why the simulator looks.
TEST_CASE("mutants: a missing barrier is caught, as a race (simulator)") {
  check_rejected<SignalMutation::missing_barrier>("race", "");
}

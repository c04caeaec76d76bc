// Checks the simulator's checks of several devices: each mutant must fail, and for its own reason.
#include "tests/mutants/several_mutants.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/files/problem_io.hpp"
#include "common/harness/ladder/registry.hpp"

using namespace convladder;

namespace {

/// What a stage leaves after two launches, and the kind of the first fault in them.
struct Seen {
  std::vector<float> output;
  std::string fault;
};

Seen run(Stage& stage, const ConvProblem& problem) {
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  DeviceTensors tensors(problem, Elements::floats, host.input.data(), host.filter.data());
  run_and_wait([&](Stream stream) { stage.prepare(problem, tensors.view(), stream); });
  Seen seen{std::vector<float>(static_cast<std::size_t>(problem.output_size())), ""};
  for (int launch = 0; launch < 2 && seen.fault.empty(); ++launch) {
    tensors.poison_output();
    const Observation observed = observe([&](Stream stream) { stage.launch(problem, tensors.view(), stream); }, false);
    if (!observed.faults.empty()) seen.fault = observed.faults.front().kind;
  }
  tensors.download_output(seen.output.data());
  return seen;
}

/// @param fault its kind; "": the mutant is right
template <SeveralMutation M>
void check(const std::string& fault) {
  if (backend() == Backend::gpu) return;  // one process, one device
  for (const char* sizes : {"n=2,h=160,w=24,r=3,s=3", "h=330,w=9,r=11,s=3"}) {
    CAPTURE(sizes);
    const ConvProblem problem = parse_shape(sizes);
    const std::unique_ptr<Stage> mutant(make_several_mutant<M>()), one(find_stage("09").make());
    const Seen seen = run(*mutant, problem);
    CHECK(seen.fault == fault);
    if (fault.empty()) CHECK(seen.output == run(*one, problem).output);
  }
}

}  // namespace

TEST_CASE("mutants of 41: what they are made from passes (simulator)") { check<SeveralMutation::none_41>(""); }
TEST_CASE("mutants of 41: a missing wait on the halo is caught (simulator)") {
  check<SeveralMutation::kernel_first>("uninitialized");
}
TEST_CASE("mutants of 41: an exchange that overwrites rows still read is caught (simulator)") {
  check<SeveralMutation::overwrites>("race");
}
TEST_CASE("mutants of 41: a graph without the exchange is caught (simulator)") {
  check<SeveralMutation::not_in_graph_41>("not_captured");
}

TEST_CASE("mutants of 42: what they are made from passes (simulator)") { check<SeveralMutation::none_42>(""); }
TEST_CASE("mutants of 42: a missing wait on the halo is caught (simulator)") {
  check<SeveralMutation::borders_first>("uninitialized");
}
TEST_CASE("mutants of 42: a graph without the exchange is caught (simulator)") {
  check<SeveralMutation::not_in_graph_42>("not_captured");
}
TEST_CASE("mutants of 42: a graph that ends too soon is caught (simulator)") {
  check<SeveralMutation::no_join>("not_captured");
}
TEST_CASE("mutants of 42: an interior that waits without need is caught (simulator)") {
  check<SeveralMutation::late_interior>("uninitialized");
}

TEST_CASE("mutants of 43: what they are made from passes (simulator)") { check<SeveralMutation::none_43>(""); }
TEST_CASE("mutants of 43: a missing wait on the halo is caught (simulator)") {
  check<SeveralMutation::no_wait>("race");
}
TEST_CASE("mutants of 43: a single look at a signal is caught (simulator)") {
  check<SeveralMutation::one_look>("race");
}
TEST_CASE("mutants of 43: a signal stored without release is caught (simulator)") {
  check<SeveralMutation::plain_store>("race");
}
TEST_CASE("mutants of 43: launches that are not counted are caught (simulator)") {
  check<SeveralMutation::same_epoch>("race");
}
TEST_CASE("mutants of 43: rows that are overwritten while others read them are caught (simulator)") {
  check<SeveralMutation::no_done>("race");
  check<SeveralMutation::done_first>("race");
}
TEST_CASE("mutants of 43: a signal that nobody stores is caught (simulator)") {
  check<SeveralMutation::nobody_tells>("deadlock");
}
TEST_CASE("mutants of 43: a graph without the signals is caught (simulator)") {
  check<SeveralMutation::not_in_graph_43>("not_captured");
}

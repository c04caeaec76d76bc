// Which GPU the simulator stands for: how much shared memory it has, and which instructions.

#include <string>

#include "common/simt/machine.hpp"

namespace simt {
namespace {

Target target;

}  // namespace

void set_target(const Target& gpu) { target = gpu; }

std::size_t shared_limit() { return target.shared_bytes; }

void require_instruction(const char* what, Generation generation, Pc pc) {
  const bool alone = generation == Generation::hopper_alone;
  const int first = alone ? 90 : static_cast<int>(generation);
  if (alone ? target.compute_capability == first : target.compute_capability >= first) return;
  const Unwatched unwatched;
  fail(FaultKind::missing_instruction, pc,
       std::string(what) + " needs sm_" + std::to_string(first) + (alone ? "a" : "") + "; " + target.name + " is sm_" +
           std::to_string(target.compute_capability));
}

}  // namespace simt

/// @file
/// `explore --measure`: every point of the design space of partial fusion that stages 26 to 30 run here, checked and
/// timed beside what the rules and a simple model of its bytes and operations foresee. See docs/explore.md.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "common/harness/device/timing.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {

/// What `explore --measure` was asked for.
struct MeasureCommand {
  std::vector<std::string> stages;   ///< default: all of them
  std::optional<std::string> shape;  ///< r = s = 3 unless it says otherwise; default: the track's first workload
  double budget = 0;                 ///< seconds after which no further point is begun; 0: no end
  bool json = false;
};

/// How far a stage's form of the algorithm is fused.
enum class FusedForm {
  none,        ///< transform, product and transform back are three kernels
  input,       ///< the first two are one, V in shared memory
  through_l2,  ///< the same, V in a scratch piece of each block
  output,      ///< the last two are one
};

/// A point as the model sees it.
struct FusedPoint {
  FusedForm form = FusedForm::none;
  int m = 4;                         ///< outputs along a tile's side
  int tbm = 32, tbn = 64, tbk = 64;  ///< tiles, filters and channels of a block
  int element_bytes = 2;             ///< of V and U
  int sum_bytes = 2;                 ///< of M
  bool shares_operands = false;      ///< V and U pass through shared memory on their way to a product of form none
};

/// What one kernel moves and computes, by the model.
struct KernelModel {
  const char* name;  ///< "transform", "product", "back"
  double dram_bytes = 0, l2_bytes = 0, shared_bytes = 0, operations = 0;
};
/// Of a launch, one after the other. @param l2_bytes of the device: tensors that fit it stay there, and no byte of them
/// comes from DRAM
std::vector<KernelModel> fused_model(const ConvProblem& problem, const FusedPoint& point, std::int64_t l2_bytes);

/// What the bytes and operations are divided by.
struct ModelCeilings {
  double dram = 0, l2 = 0, shared = 0;  ///< bytes a second
  double tensor_cores = 0;              ///< operations a second, of the stage's type
  double launch_us = 0;
};
/// Microseconds: the largest of the kernel's terms, and its start. @param bound is set to the name of that term
double kernel_time(const KernelModel& kernel, const ModelCeilings& ceilings, const char** bound);

/// Checks what can be told wrong without a device. @throws UsageError
void require_usable(const MeasureCommand& command);

/// Measures and reports. @return exit status: 1 if a point was wrong, a fault or an error
/// @throws UsageError, RefusedError, MachineError
int measure_command(const MeasureCommand& command);

}  // namespace convladder

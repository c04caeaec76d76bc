/// @file
/// The kernels of stages 15, 38 and 39 with their numbers as constants, as NVRTC sees them: so that these forms run in
/// the simulator too.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

struct ConstantSchedule {
  const char* shape;  ///< the one problem that it runs
  Padding padding;
  Stage* (*make)();
};
extern const ConstantSchedule kConstantSchedules[8];  ///< of 15
extern const ConstantSchedule kConstantPlans[7];      ///< of 38
extern const ConstantSchedule kConstantStrips[10];    ///< of 39

}  // namespace convladder

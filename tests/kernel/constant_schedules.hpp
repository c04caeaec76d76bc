/// @file
/// The kernel of stage 15 with its numbers as constants, as NVRTC sees it: so that this form runs in the simulator too.
#pragma once
#include "common/stage/stage.hpp"

namespace convladder {

struct ConstantSchedule {
  const char* shape;  ///< the one problem that it runs
  Padding padding;
  Stage* (*make)();
};
extern const ConstantSchedule kConstantSchedules[8];

}  // namespace convladder

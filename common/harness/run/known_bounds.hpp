/// @file
/// The bounds of a workload's outputs, which several stages share.
#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "common/harness/check/checker.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/check/reference.hpp"
#include "common/stage/error_model.hpp"
#include "common/stage/problem.hpp"

namespace convladder {

/// Computes the bounds of each way to compute once, and keeps the latest: those of a large layer take longer to compute
/// than the layer itself. For one thread.
class KnownBounds {
 public:
  /// So many bytes of bounds are kept at most, or the latest alone where it is larger.
  static constexpr std::size_t kMostBytes = std::size_t{2} << 30;

  /// @param form of a stage that transforms tiles; of a direct one its `stored` is the type that it computes in, fp16,
  /// bf16 or int8
  std::shared_ptr<const OutputBounds> of(const WinogradForm& form, const ConvProblem& problem,
                                         const HostTensors& tensors, const Reference& reference);

 private:
  std::deque<std::pair<WinogradForm, std::shared_ptr<const OutputBounds>>> known_;  // the latest last
};

}  // namespace convladder

/// @file
/// A layer on several devices: a stage that takes NHWC, on a band of rows of each image, whose borders are exchanged as
/// stage 41 does it.
#pragma once
#include <memory>

#include "common/harness/ladder/registry.hpp"
#include "common/kernel/tracks/several.hpp"

namespace convladder {

/// Lets a stage with knobs run with its own choice for the problem. Others are left alone.
void use_default(Stage& stage, const ConvProblem& problem);

/// One rank's part of a layer, and what runs on it.
class BandedLayer {
 public:
  /// @param stage whose outputs do not depend on where a band begins, as long as that is an even row: 33, or 36
  /// @throws UsageError if its tensors are neither halves nor floats in NHWC
  BandedLayer(const StageInfo& stage, const ConvProblem& problem, int rank, int ranks);

  /// What the rank has; its buffer and output are null. A row is (w, c), one of the output (q, k).
  const Part& part() const { return part_; }
  std::int64_t buffer_bytes() const;      ///< of the part's buffer
  std::int64_t output_bytes() const;      ///< of the part's output
  std::int64_t output_row_bytes() const;  ///< of a row of it

  /// Transforms the filter. @param whole the layer's tensors, on the rank's device: 36 scales all bands alike, by the
  /// largest number of the whole input
  void prepare(const Tensors& whole, Stream stream);
  /// The exchange, and the stage on the band.
  void launch(const Part& own, Communicator& all, Stream stream);

 private:
  std::int64_t element_bytes() const;

  ConvProblem problem_;
  Part part_;
  bool floats_;  ///< not halves
  std::unique_ptr<Stage> exchanger_, stage_;
  const float* filter_ = nullptr;
};

}  // namespace convladder

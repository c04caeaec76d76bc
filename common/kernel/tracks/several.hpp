/// @file
/// What the stages for several devices share: parts of a batch of one-channel images, one a device, and the stage that
/// runs them all in one process where the backend can.
#pragma once
#include "common/stage/communicator.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {

constexpr int kMostRanks = 8;  ///< that may touch each other's memory

/// What ranks that touch each other's memory have of each other: addresses that the rank's own kernels may use.
struct Peers {
  float* buffers[kMostRanks];     ///< of each rank's part; null where that has no images
  unsigned* signals[kMostRanks];  ///< of each rank, kSignals of them, all alike before the first launch
};
constexpr int kSignals = 2 * kMostRanks + 1;  ///< what they mean is the stage's

/// What one rank has of a problem. Its buffer holds, for each of its images, the rows that the rank owns, with `above`
/// rows before them and others after them, to complete its kernel's input.
struct Part {
  ConvProblem problem;        ///< the rank's own: n images of h rows in the buffer, p() rows of outputs; n = 0: nothing
  std::int64_t first_image;   ///< of the whole batch
  std::int64_t first_output;  ///< row of the whole image's outputs that the rank's first is
  std::int64_t first_row;     ///< row of the whole image that the rank's first own one is
  std::int64_t rows;          ///< that it owns, of each of its images
  std::int64_t above;         ///< rows of the buffer before them
  std::int64_t unit;          ///< rows of outputs that no cut parts
  std::int64_t row_bytes;     ///< of the buffer
  float* buffer;              ///< (n, h, w), on the rank's device
  float* output;              ///< (n, p, q), likewise
  Peers peers;                ///< where the stage touches the memory of others

  /// Where a row of the buffer begins.
  void* row(std::int64_t image, std::int64_t at) const {
    return reinterpret_cast<char*>(buffer) + (image * problem.h + at) * row_bytes;
  }
};

/// Where rank `rank` of `ranks` begins, if `count` things are cut into pieces that differ by one at most.
std::int64_t begin_of(std::int64_t count, int rank, int ranks);
/// All of a problem, for one device.
Part whole_part(const ConvProblem& problem);
/// The rank's images.
Part images_part(const ConvProblem& problem, int rank, int ranks);
/// The rank's band of rows of every image, and rows of padding around it, r - 1 more than it has outputs. A single rank
/// has all rows and no padding but the problem's own. Ranks that get no output have no images.
/// @param unit bands begin at multiples of so many rows of outputs
Part band_part(const ConvProblem& problem, int rank, int ranks, std::int64_t unit = 1);
/// The row of the image that row `at` of a band's buffer is a copy of; -1 for a row of zeros.
std::int64_t source_row(const ConvProblem& problem, const Part& part, std::int64_t at);

/// A stage that runs on several devices. A derived class says what a rank's part is, and what the rank's host code
/// does. In the simulator one process has all ranks: prepare() makes their buffers, and launch() copies the tensors'
/// parts there, runs the ranks, each as a graph of its own, and copies their outputs back. On a GPU it runs on one
/// device.
class SeveralStage : public TunableStage {
 public:
  SeveralStage();
  ~SeveralStage() override;

  /// What the rank has of the problem; its buffer and output are null.
  virtual Part part(const ConvProblem& problem, int rank, int ranks) const = 0;
  /// Whether outputs that need nothing of others are to be made while rows travel. Then the simulator lets all messages
  /// come late, and before they do it takes away the rows that no other output reads: who waits too long finds nothing.
  /// Unless overridden, no.
  virtual bool overlaps() const;
  /// Where it overlaps, how many rows of outputs its blocks make together, counted from the part's first: those that no
  /// row of others parts are made while rows travel. Unless overridden, one.
  virtual std::int64_t rows_together(const ConvProblem& problem) const;
  /// Whether its kernels touch the memory of other ranks, as Part::peers tells where that is. Then the simulator fills
  /// a rank's rows by work on its stream, before its kernels, and poisons them after these: whoever reads too soon or
  /// too late is found. Unless overridden, no.
  virtual bool touches_others() const;
  /// Sends and receives, so that the rank's buffer is complete; for rows of any element type. Unless overridden,
  /// nothing.
  virtual void exchange(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) const;
  /// The rank's host code: sends, receives and kernels, on the stream.
  /// @param part the rank's own. Where it has no images the rank has nothing to compute
  virtual void launch_rank(const ConvProblem& problem, const Part& part, Communicator& all, Stream stream) = 0;
  /// What the kernels of one rank do; the sum over all is the stage's prediction.
  virtual Prediction predict_rank(const ConvProblem& problem, const Part& part) const;

  /// How many devices it wants. Unless overridden, as many as the knob says.
  virtual int devices() const;

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override;
  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) final;
  Prediction predict(const ConvProblem& problem) const final;

  Knobs knobs() const final;  ///< devices
  Configuration default_configuration(const ConvProblem& problem, const DeviceLimits& limits) const final;
  Verdict check_configuration(const ConvProblem& problem, const DeviceLimits& limits,
                              const Configuration& configuration) const final;

 private:
  struct Devices;
  Devices* devices_ = nullptr;  // not a smart pointer: kernel files include no standard containers
};

}  // namespace convladder

#include "common/kernel/tracks/several.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace convladder {
namespace {

constexpr int kCounts[] = {1, 2, 3, 4, 8};
constexpr Knob kKnobs[] = {{"devices", kCounts, 3}};

std::int64_t bytes_of(std::int64_t floats) { return floats * static_cast<std::int64_t>(sizeof(float)); }

/// The end of a communicator of one rank, which has nobody to talk to.
class Alone final : public Communicator {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  void group_start() override {}
  void group_end() override {}
  void send(const void*, std::int64_t, int, Stream) override { refuse(); }
  void receive(void*, std::int64_t, int, Stream) override { refuse(); }
  Stream side_stream() override { return nullptr; }
  void follow(Stream, Stream) override {}

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("a single rank has nobody to send to"); }
};

/// Hands each call on. Lies on the stack, where a lab's exercise may read it.
class HandedOn final : public Communicator {
 public:
  explicit HandedOn(Communicator& to) : to_(to) {}
  int rank() const override { return to_.rank(); }
  int ranks() const override { return to_.ranks(); }
  void group_start() override { to_.group_start(); }
  void group_end() override { to_.group_end(); }
  void send(const void* from, std::int64_t bytes, int to, Stream stream) override { to_.send(from, bytes, to, stream); }
  void receive(void* to, std::int64_t bytes, int from, Stream stream) override { to_.receive(to, bytes, from, stream); }
  Stream side_stream() override { return to_.side_stream(); }
  void follow(Stream later, Stream earlier) override { to_.follow(later, earlier); }

 private:
  Communicator& to_;
};

/// The index that a position outside [0, size) reads, or -1 for zero: border_index() with 64 bits.
std::int64_t index_at(std::int64_t position, std::int64_t size, Padding padding) {
  if (position >= 0 && position < size) return position;
  if (padding == Padding::zero) return -1;
  if (padding == Padding::replicate) return position < 0 ? 0 : size - 1;
  return position < 0 ? -position : 2 * (size - 1) - position;
}

/// Own rows of a band, counted from its first, that are sent to nobody, and that no output reads which needs a row of
/// others, or is made together with one that does.
/// @param together rows of outputs that are made together
std::vector<std::int64_t> rows_of_interior_alone(const ConvProblem& problem, const Part& of,
                                                 const std::vector<Part>& parts, std::int64_t together) {
  std::vector<char> sent(static_cast<std::size_t>(of.rows));
  for (const Part& its : parts) {
    for (std::int64_t at = 0; its.problem.n > 0 && at < its.problem.h; ++at) {
      if (at >= its.above && at < its.above + its.rows) continue;
      const std::int64_t row = source_row(problem, its, at) - of.first_row;
      if (row >= 0 && row < of.rows) sent[static_cast<std::size_t>(row)] = 1;
    }
  }
  std::vector<std::int64_t> rows;
  const std::int64_t begin = (of.above + together - 1) / together * together;  // of the interior's outputs
  const std::int64_t end = (of.above + of.rows - (problem.r - 1)) / together * together;
  for (std::int64_t row = begin + problem.r - 1 - of.above; row < end - of.above; ++row)
    if (!sent[static_cast<std::size_t>(row)]) rows.push_back(row);
  return rows;
}

/// Where the rank's own rows of one of its images begin in the whole input, and how many bytes they have.
const float* own_rows(const ConvProblem& problem, const Part& of, const Tensors& tensors, std::int64_t image) {
  return tensors.input + ((of.first_image + image) * problem.h + of.first_row) * problem.w;
}
std::int64_t own_bytes(const Part& of) { return of.rows * of.row_bytes; }

/// Whether the part lies in the problem, and its own rows in its buffer.
void require_inside(const ConvProblem& problem, const Part& part, int rank) {
  const auto within = [](std::int64_t begin, std::int64_t count, std::int64_t size) {
    return begin >= 0 && count >= 0 && begin <= size - count;
  };
  if (within(part.first_image, part.problem.n, problem.n) && within(part.first_row, part.rows, problem.h) &&
      (part.rows == 0 || within(part.above, part.rows, part.problem.h)) && part.problem.h > 0 &&
      part.problem.w == problem.w && part.problem.q() == problem.q() &&
      within(part.first_output, part.problem.p(), problem.p()))
    return;
  throw std::out_of_range("the part of rank " + std::to_string(rank) +
                          " is not inside of the problem, or its own rows are not inside of its buffer");
}

}  // namespace

std::int64_t begin_of(std::int64_t count, int rank, int ranks) {
  // As count * rank / ranks, without a product that could overflow.
  return count / ranks * rank + count % ranks * rank / ranks;
}

Part whole_part(const ConvProblem& problem) {
  return {problem, 0, 0, 0, problem.h, 0, 1, bytes_of(problem.w), nullptr, nullptr, {}};
}

Part images_part(const ConvProblem& problem, int rank, int ranks) {
  Part part = whole_part(problem);
  part.first_image = begin_of(problem.n, rank, ranks);
  part.problem.n = begin_of(problem.n, rank + 1, ranks) - part.first_image;
  return part;
}

Part band_part(const ConvProblem& problem, int rank, int ranks, std::int64_t unit) {
  Part part = whole_part(problem);
  part.unit = unit;
  if (ranks == 1) return part;
  const std::int64_t units = (problem.p() + unit - 1) / unit;
  const int busy = static_cast<int>(std::min<std::int64_t>(ranks, units));
  if (rank >= busy) {
    part.problem.n = part.rows = 0;
    return part;
  }
  const auto first_output = [&](int of) { return std::min(problem.p(), unit * begin_of(units, of, busy)); };
  // The rows that a rank owns begin where the middle of its first window is, so that they lie in its buffer.
  const std::int64_t middle = (problem.r - 1) / 2 - problem.pad_h;
  const auto first_own = [&](int of) {
    if (of == 0) return std::int64_t{0};
    if (of == busy) return problem.h;
    return std::clamp(first_output(of) + middle, std::int64_t{0}, problem.h);
  };
  part.first_output = first_output(rank);
  part.first_row = first_own(rank);
  part.rows = first_own(rank + 1) - part.first_row;
  part.above = part.first_row - (part.first_output - problem.pad_h);
  part.problem.h = first_output(rank + 1) - part.first_output + problem.r - 1;
  part.problem.pad_h = 0;
  return part;
}

std::int64_t source_row(const ConvProblem& problem, const Part& part, std::int64_t at) {
  return index_at(part.first_row - part.above + at, problem.h, problem.padding);
}

struct SeveralStage::Devices {
  explicit Devices(int count) : ranks(make_local_ranks(count)) {}
  std::unique_ptr<LocalRanks> ranks;
  std::vector<Part> parts;
};

SeveralStage::SeveralStage() = default;
SeveralStage::~SeveralStage() { delete devices_; }

bool SeveralStage::overlaps() const { return false; }
std::int64_t SeveralStage::rows_together(const ConvProblem&) const { return 1; }
bool SeveralStage::touches_others() const { return false; }

int SeveralStage::devices() const { return knob("devices"); }

void SeveralStage::exchange(const ConvProblem&, const Part&, Communicator&, Stream) const {}

Prediction SeveralStage::predict_rank(const ConvProblem&, const Part&) const { return {}; }

Knobs SeveralStage::knobs() const { return {kKnobs, /*to_search=*/false}; }

Configuration SeveralStage::default_configuration(const ConvProblem&, const DeviceLimits&) const {
  Configuration configuration(knobs());
  configuration["devices"] = std::min(configuration["devices"], most_local_ranks());
  return configuration;
}

Verdict SeveralStage::check_configuration(const ConvProblem&, const DeviceLimits&,
                                          const Configuration& configuration) const {
  if (configuration["devices"] <= most_local_ranks()) return Verdict::accept();
  return Verdict::refuse("on GPUs each device has a process of its own (bin/several, docs/several.md); got devices={}",
                         configuration["devices"]);
}

void SeveralStage::prepare(const ConvProblem& problem, const Tensors&, Stream) {
  delete devices_;
  devices_ = nullptr;
  const int count = std::min(devices(), most_local_ranks());
  if (count == 1) return;
  devices_ = new Devices(count);
  std::int64_t bytes = 0;
  for (int rank = 0; rank < count; ++rank) {
    Part& of = devices_->parts.emplace_back(part(problem, rank, count));
    if (of.problem.n == 0) continue;
    require_inside(problem, of, rank);
    const std::int64_t input = bytes_of(of.problem.input_size()), output = bytes_of(of.problem.output_size());
    of.buffer = static_cast<float*>(devices_->ranks->allocate(rank, input, "buffer"));
    of.output = static_cast<float*>(devices_->ranks->allocate(rank, output, "part of the output"));
    bytes += input + output;
  }
  if (touches_others()) {
    Peers peers{};
    for (int rank = 0; rank < count; ++rank) {
      constexpr std::int64_t kBytes = kSignals * static_cast<std::int64_t>(sizeof(unsigned));
      peers.buffers[rank] = devices_->parts[static_cast<std::size_t>(rank)].buffer;
      peers.signals[rank] = static_cast<unsigned*>(devices_->ranks->allocate(rank, kBytes, "signals"));
      devices_->ranks->fill(peers.signals[rank], 1, kBytes);  // as after many launches
      devices_->ranks->open_to_all(peers.signals[rank]);
      if (peers.buffers[rank]) devices_->ranks->open_to_all(peers.buffers[rank]);
    }
    for (Part& of : devices_->parts) of.peers = peers;
  }
  state_memory(bytes);
}

void SeveralStage::launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) {
  if (!devices_) {
    Part all = part(problem, 0, 1);
    all.buffer = const_cast<float*>(tensors.input);  // nothing is received
    all.output = tensors.output;
    Alone alone;
    return launch_rank(problem, all, alone, stream);
  }
  LocalRanks& ranks = *devices_->ranks;
  const std::int64_t row = problem.w, out_row = problem.q();
  for (const Part& of : devices_->parts) {
    if (of.problem.n == 0) continue;
    ranks.poison(of.buffer, bytes_of(of.problem.input_size()));
    ranks.poison(of.output, bytes_of(of.problem.output_size()));
    for (std::int64_t image = 0; image < of.problem.n; ++image) {
      if (!touches_others()) ranks.copy(of.row(image, of.above), own_rows(problem, of, tensors, image), own_bytes(of));
      for (std::int64_t at = 0; at < of.problem.h; ++at)
        if (source_row(problem, of, at) < 0) ranks.fill(of.row(image, at), 0, bytes_of(row));
    }
  }
  for (int rank = 0; rank < static_cast<int>(devices_->parts.size()); ++rank) {
    HandedOn all(ranks.communicator(rank));
    const Part own = devices_->parts[static_cast<std::size_t>(rank)];
    ranks.begin_capture(rank);
    const std::int64_t images = touches_others() ? own.problem.n : 0;
    for (std::int64_t image = 0; image < images; ++image)
      ranks.copy_in_order(rank, own.row(image, own.above), own_rows(problem, own, tensors, image), own_bytes(own));
    launch_rank(problem, own, all, ranks.stream(rank));
    for (std::int64_t image = 0; image < images; ++image)
      ranks.copy_in_order(rank, own.row(image, own.above), nullptr, own_bytes(own));
    ranks.end_capture(rank);
  }
  if (overlaps()) {
    ranks.run_until_messages();
    const std::int64_t together = rows_together(problem);
    for (const Part& of : devices_->parts)
      for (const std::int64_t row : rows_of_interior_alone(problem, of, devices_->parts, together))
        for (std::int64_t image = 0; image < of.problem.n; ++image)
          ranks.poison(of.row(image, of.above + row), of.row_bytes);
  }
  ranks.run();
  for (const Part& of : devices_->parts) {
    for (std::int64_t image = 0; image < of.problem.n; ++image) {
      float* const to = tensors.output + ((of.first_image + image) * problem.p() + of.first_output) * out_row;
      const std::int64_t rows = of.problem.p();
      ranks.copy(to, of.output + image * rows * out_row, bytes_of(rows * out_row));
    }
  }
}

Prediction SeveralStage::predict(const ConvProblem& problem) const {
  const int count = std::min(devices(), most_local_ranks());
  Prediction sum;
  bool first = true;
  for (int rank = 0; rank < count; ++rank) {
    const Part of = part(problem, rank, count);
    if (of.problem.n == 0) continue;
    const Prediction its = predict_rank(problem, of);
    for (const CounterField& field : kCounterFields)
      sum.*field.member = first                   ? its.*field.member
                          : its.*field.member < 0 ? -1
                                                  : sum.*field.member + its.*field.member;
    first = false;
  }
  return sum;
}

}  // namespace convladder

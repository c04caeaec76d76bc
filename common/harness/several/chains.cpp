#include "common/harness/several/chains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "common/harness/check/device_tensors.hpp"
#include "common/harness/check/inputs.hpp"
#include "common/harness/device/device.hpp"
#include "common/harness/device/gpu/device_gpu.hpp"
#include "common/harness/files/errors.hpp"
#include "common/harness/ladder/banded_layer.hpp"
#include "common/harness/several/timed.hpp"

namespace convladder {
namespace {

/// Three buffers: an input, and outputs of layers by turns.
struct Buffers {
  std::vector<DeviceBuffer> owners;
  std::array<void*, 3> all{};

  explicit Buffers(std::int64_t bytes) {
    for (void*& each : all) each = owners.emplace_back(static_cast<std::size_t>(bytes), "a layer's input").data();
  }
  std::int64_t bytes() const { return 3 * static_cast<std::int64_t>(owners.front().bytes()); }
};

/// All layers on one GPU: the same kernels on whole images.
class WholeChain {
 public:
  WholeChain(const StageInfo& stage, const ConvProblem& problem, int layers)
      : problem_(problem), layers_(layers), halves_(stage.tensors == Elements::halves), stage_(stage.make()) {
    if (const Verdict verdict = stage_->check(problem, device_limits()); !verdict.accepted())
      throw UsageError(verdict.reason());
  }
  std::int64_t bytes() const { return problem_.input_size() * (halves_ ? 2 : 4); }
  void prepare(const Tensors& whole, Stream stream) {
    filter_ = whole.filter;
    use_default(*stage_, problem_);
    stage_->prepare(problem_, whole, stream);
  }
  void launch(const Buffers& buffers, Stream stream) {
    for (int layer = 0; layer < layers_; ++layer) {
      void* const from = buffers.all[static_cast<std::size_t>(layer == 0 ? 0 : 1 + (layer - 1) % 2)];
      void* const to = buffers.all[static_cast<std::size_t>(1 + layer % 2)];
      Tensors tensors{};
      tensors.filter = filter_;
      if (halves_) {
        tensors.half_input = static_cast<const __half*>(from);
        tensors.half_output = static_cast<__half*>(to);
      } else {
        tensors.input = static_cast<const float*>(from);
        tensors.output = static_cast<float*>(to);
      }
      stage_->launch(problem_, tensors, stream);
    }
  }
  double operations(const ConvProblem& own) const {
    const std::int64_t claimed = stage_->predict(own).flops, direct = own.flops();
    return static_cast<double>(claimed > 0 ? std::min(claimed, direct) : direct);
  }

 private:
  ConvProblem problem_;
  int layers_;
  bool halves_;
  std::unique_ptr<Stage> stage_;
  const float* filter_ = nullptr;
};

/// Fills a rank's buffers: its own rows of the input, rows of padding by zeros, and NaN everywhere else.
void load(const BandedChain& chain, const Buffers& buffers, const void* whole, Stream stream) {
  for (void* const buffer : buffers.all) {
    Part part = chain.part();
    if (part.problem.n == 0) return;
    part.buffer = static_cast<float*>(buffer);
    const auto row_bytes = static_cast<std::size_t>(part.row_bytes);
    fill_with_nan(buffer, chain.buffer_bytes(), stream);
    for (std::int64_t at = 0; at < part.problem.h; ++at)
      if (source_row(chain.problem(), part, at) < 0)
        require(cudaMemsetAsync(part.row(0, at), 0, row_bytes, stream), "filling a row of padding");
    if (buffer == buffers.all.front())
      require(
          cudaMemcpyAsync(part.row(0, part.above), static_cast<const char*>(whole) + part.first_row * part.row_bytes,
                          static_cast<std::size_t>(part.rows) * row_bytes, cudaMemcpyDeviceToDevice, stream),
          "copying a band");
  }
}

}  // namespace

Measured measure_chain(const ConvProblem& problem, int layers, Halo halo, const Reached& reached, Ranks& ranks,
                       int samples) {
  const StageInfo& stage = find_stage(problem.c > 1 ? "33" : "09");
  const Stream stream = device_stream();
  BandedChain chain(stage, problem, layers, halo, ranks.rank(), ranks.ranks());
  WholeChain one(stage, problem, layers);
  const HostTensors host = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const DeviceTensors tensors(problem, stage.tensors, host.input.data(), host.filter.data());
  const Tensors view = tensors.view();
  const void* const input = stage.tensors == Elements::halves ? static_cast<const void*>(view.half_input) : view.input;
  const auto load_one = [&](const Buffers& buffers) {
    require(
        cudaMemcpyAsync(buffers.all[0], input, static_cast<std::size_t>(one.bytes()), cudaMemcpyDeviceToDevice, stream),
        "copying an input");
  };
  std::vector<Buffers> parts, wholes;
  wholes.emplace_back(one.bytes());
  load_one(wholes.front());
  one.prepare(view, stream);
  one.launch(wholes.front(), stream);
  chain.prepare(view, stream);
  parts.emplace_back(chain.buffer_bytes());
  std::vector<char> expected(static_cast<std::size_t>(one.bytes())), own;

  const Part& part = chain.part();
  const auto last = static_cast<std::size_t>(chain.last());
  require(cudaMemcpyAsync(expected.data(), wholes.front().all[last], expected.size(), cudaMemcpyDeviceToHost, stream),
          "copying an output");
  own.resize(static_cast<std::size_t>(part.problem.n * part.rows * part.row_bytes));
  const auto check = [&](const char* when) {
    bool wrong = false;
    if (part.problem.n > 0) {
      const char* const from = static_cast<const char*>(parts.front().all[last]) + part.above * part.row_bytes;
      require(cudaMemcpy(own.data(), from, own.size(), cudaMemcpyDeviceToHost), "copying an output");
      wrong = std::memcmp(own.data(), expected.data() + part.first_row * part.row_bytes, own.size()) != 0;
    }
    if (ranks.largest(wrong ? 1 : 0, stream) > 0)
      throw DeviceError(fmt::format("a chain of {} has other bits than one GPU, {}{}", stage.folder, when,
                                    wrong ? fmt::format(" (rank {})", ranks.rank()) : ""));
  };
  const auto on_all = [&](const Buffers& buffers) {
    return [&chain, &ranks, all = buffers.all](Stream s) { chain.launch(all, ranks, s); };
  };
  const auto on_one = [&](const Buffers& buffers) { return [&](Stream s) { one.launch(buffers, s); }; };
  const auto load_and_check = [&](const char* when) {
    load(chain, parts.front(), input, stream);
    on_all(parts.front())(stream);
    ranks.wait(stream, "the chain");
    check(when);
  };
  load_and_check("before timing");

  Measured measured{};
  double floor = 0;
  if (part.problem.n > 0) {
    ConvProblem band = problem;
    band.h = part.rows;
    floor = layers * floor_us(stage, band, one.operations(band), 0, reached);
    if (ranks.ranks() > 1) {
      const int exchanges = halo == Halo::exchanged ? layers : 1;
      floor = std::max(
          floor, exchanges * reached.alpha_us + static_cast<double>(chain.received_bytes()) / reached.bytes_per_us);
    }
  }
  measured.floor = ranks.largest(floor, stream);
  measured.all = time_on_all({on_all(parts.front())}, samples, ranks);
  measured.one = time_on_all({on_one(wholes.front())}, samples, ranks);
  load_and_check("after timing");

  // Cold: copies that exceed L2.
  const std::size_t copies = copies_past_l2(parts.front().bytes(), ranks);
  std::vector<Work> work;
  while (parts.size() < copies) {
    parts.emplace_back(chain.buffer_bytes());
    load(chain, parts.back(), input, stream);
  }
  for (const Buffers& each : parts) work.emplace_back(on_all(each));
  measured.all_cold = time_on_all(work, samples, ranks);
  parts.clear();
  const std::size_t whole_copies = copies_past_l2(wholes.front().bytes(), ranks);
  while (wholes.size() < whole_copies) {
    wholes.emplace_back(one.bytes());
    load_one(wholes.back());
  }
  work.clear();
  for (const Buffers& each : wholes) work.emplace_back(on_one(each));
  measured.one_cold = time_on_all(work, samples, ranks);
  return measured;
}

}  // namespace convladder

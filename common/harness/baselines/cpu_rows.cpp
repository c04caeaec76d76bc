#include "common/harness/baselines/cpu_rows.hpp"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/harness/device/device.hpp"
#include "common/kernel/border.hpp"
#include "common/kernel/tracks/lowering.hpp"
#include "common/stage/tunable.hpp"

#if defined(CONVLADDER_OPENBLAS)
#include <cblas.h>
#if defined(CONVLADDER_OPENBLAS_OF_SCIPY)
#define cblas_sgemm scipy_cblas_sgemm
#define openblas_set_num_threads scipy_openblas_set_num_threads
#define openblas_get_config scipy_openblas_get_config
#endif
#endif
#if defined(CONVLADDER_ONEDNN)
#include <dnnl.hpp>
#endif

namespace convladder {
namespace {

#if defined(CONVLADDER_OPENBLAS) || defined(CONVLADDER_ONEDNN)
/// Microseconds of the faster of two runs, after one that is not counted.
double time_us(const std::function<void()>& run) {
  double best = std::numeric_limits<double>::infinity();
  run();
  for (int i = 0; i < 2; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}
#endif

/// The seven loops, output planes spread over the threads.
class DirectCpu final : public Stage {
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void launch(const ConvProblem& problem, const Tensors& t, Stream) override {
    const Lowering l = lowering_of(problem);
#pragma omp parallel for collapse(2)
    for (int n = 0; n < l.batch; ++n)
      for (int k = 0; k < l.filters; ++k) {
        const float* image = t.input + n * l.channels * input_plane(l);
        const float* filter = t.filter + std::int64_t{k} * depth(l);
        float* output = t.output + (std::int64_t{n} * l.filters + k) * output_plane(l);
        for (int p = 0; p < l.out_height; ++p)
          for (int q = 0; q < l.out_width; ++q) *output++ = sum_of(l, image, filter, p, q);
      }
  }

  static float sum_of(const Lowering& l, const float* image, const float* filter, int p, int q) {
    const int left = q * l.stride_x - l.pad_x;
    const bool inside = left >= 0 && left + (l.columns - 1) * l.dilation_x < l.width;
    float sum = 0;
    for (int c = 0; c < l.channels; ++c)
      for (int r = 0; r < l.rows; ++r) {
        const float* taps = filter + (std::int64_t{c} * l.rows + r) * l.columns;
        const int y = border_index(p * l.stride_y - l.pad_y + r * l.dilation_y, l.height, l.padding);
        if (y < 0) continue;
        const float* row = image + c * input_plane(l) + std::int64_t{y} * l.width;
        if (inside) {
          for (int s = 0; s < l.columns; ++s) sum += row[left + s * l.dilation_x] * taps[s];
        } else {
          for (int s = 0; s < l.columns; ++s) {
            const int x = border_index(left + s * l.dilation_x, l.width, l.padding);
            if (x >= 0) sum += row[x] * taps[s];
          }
        }
      }
    return sum;
  }
};

/// Stands in for a library that the program was built without.
class BuiltWithout final : public Stage {
 public:
  BuiltWithout(const char* library, const char* package) : library_(library), package_(package) {}

 private:
  Verdict check(const ConvProblem&, const DeviceLimits&) const override {
    return Verdict::refuse("built without {}: install {} and build again", library_, package_);
  }
  void launch(const ConvProblem&, const Tensors&, Stream) override { throw std::logic_error("refused before"); }

  const char* library_;
  const char* package_;
};

#if defined(CONVLADDER_OPENBLAS)

/// The unfolded input, then OpenBLAS's sgemm. prepare() tries two ways and keeps the faster: each thread unfolds and
/// multiplies one image at a time; or the whole batch is one matrix, whose product is divided among the threads, and
/// then put in NCHW order. Each sgemm runs on one thread, so that OpenBLAS's threads and OpenMP's do not compete.
class Im2colOpenblas final : public Stage {
  /// "OpenBLAS 0.3.21", the first two words of what it says of itself.
  const char* library() const override {
    static const std::string name = [] {
      const std::string text = openblas_get_config();
      return text.substr(0, text.find(' ', text.find(' ') + 1));
    }();
    return name.c_str();
  }

  // OpenBLAS counts rows and columns with 32 bits, as check_lowering() does.
  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override { return check_lowering(problem); }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    l_ = lowering_of(problem);
    threads_ = omp_get_max_threads();
    openblas_set_num_threads(1);
    whole_batch_ = false;
    take_memory();
    const double apart = time_us([&] { launch(problem, tensors, nullptr); });
    whole_batch_ = true;
    take_memory();
    const double whole = time_us([&] { launch(problem, tensors, nullptr); });
    if (whole > apart) {
      whole_batch_ = false;
      take_memory();
    }
    state_memory(static_cast<std::int64_t>((matrix_.size() + product_.size()) * sizeof(float)));
  }

  void take_memory() {
    const std::int64_t image = std::int64_t{depth(l_)} * output_plane(l_);
    matrix_ = std::vector<float>();  // not both at once
    matrix_.resize(static_cast<std::size_t>(image * (whole_batch_ ? l_.batch : threads_)));
    product_ = std::vector<float>();
    if (whole_batch_ && l_.batch > 1)
      product_.resize(static_cast<std::size_t>(std::int64_t{l_.batch} * l_.filters * output_plane(l_)));
  }

  void launch(const ConvProblem&, const Tensors& tensors, Stream) override {
    if (whole_batch_) return launch_whole_batch(tensors);
    const std::int64_t plane = output_plane(l_);
#pragma omp parallel for num_threads(threads_) schedule(dynamic)
    for (int n = 0; n < l_.batch; ++n) {
      float* matrix = matrix_.data() + std::int64_t{omp_get_thread_num()} * depth(l_) * plane;
      for (int d = 0; d < depth(l_); ++d) unfold_row(tensors.input, n, d, matrix + d * plane);
      multiply({0, l_.filters}, {0, plane}, plane, tensors.filter, matrix, tensors.output + n * l_.filters * plane);
    }
  }

  void launch_whole_batch(const Tensors& tensors) {
    const std::int64_t plane = output_plane(l_), columns = plane * l_.batch;
#pragma omp parallel for collapse(2) num_threads(threads_)
    for (int d = 0; d < depth(l_); ++d)
      for (int n = 0; n < l_.batch; ++n) unfold_row(tensors.input, n, d, matrix_.data() + d * columns + n * plane);
    float* product = l_.batch > 1 ? product_.data() : tensors.output;
    const bool by_filters = l_.filters > columns;
    const std::int64_t length = by_filters ? l_.filters : columns;
#pragma omp parallel for num_threads(threads_)
    for (int i = 0; i < threads_; ++i) {
      const Range range{length * i / threads_, length * (i + 1) / threads_};
      multiply(by_filters ? range : Range{0, l_.filters}, by_filters ? Range{0, columns} : range, columns,
               tensors.filter, matrix_.data(), product);
    }
    if (l_.batch == 1) return;
#pragma omp parallel for collapse(2) num_threads(threads_)
    for (int n = 0; n < l_.batch; ++n)
      for (int k = 0; k < l_.filters; ++k)
        std::copy_n(product_.data() + k * columns + n * plane, plane,
                    tensors.output + (std::int64_t{n} * l_.filters + k) * plane);
  }

  /// Row d = (c, r, s) of an image's matrix: what that tap reads for each output.
  void unfold_row(const float* input, int image, int d, float* row) const {
    const int c = d / window(l_), r = d % window(l_) / l_.columns, s = d % l_.columns;
    const float* plane = input + (std::int64_t{image} * l_.channels + c) * input_plane(l_);
    for (int p = 0; p < l_.out_height; ++p, row += l_.out_width) {
      const int y = border_index(p * l_.stride_y - l_.pad_y + r * l_.dilation_y, l_.height, l_.padding);
      if (y < 0) {
        std::fill_n(row, l_.out_width, 0.0f);
        continue;
      }
      const float* from = plane + std::int64_t{y} * l_.width;
      const int left = s * l_.dilation_x - l_.pad_x, right = left + (l_.out_width - 1) * l_.stride_x;
      if (left >= 0 && right < l_.width) {
        if (l_.stride_x == 1)
          std::copy_n(from + left, l_.out_width, row);
        else
          for (int q = 0; q < l_.out_width; ++q) row[q] = from[left + q * l_.stride_x];
        continue;
      }
      for (int q = 0; q < l_.out_width; ++q) {
        const int x = border_index(left + q * l_.stride_x, l_.width, l_.padding);
        row[q] = x < 0 ? 0.0f : from[x];
      }
    }
  }

  struct Range {
    std::int64_t first, end;
  };

  /// A part of the product of (k, c r s) and (c r s, width).
  void multiply(const Range& filters, const Range& columns, std::int64_t width, const float* filter,
                const float* matrix, float* product) const {
    const auto integer = [](std::int64_t value) { return static_cast<blasint>(value); };
    if (filters.first == filters.end || columns.first == columns.end) return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, integer(filters.end - filters.first),
                integer(columns.end - columns.first), depth(l_), 1, filter + filters.first * depth(l_), depth(l_),
                matrix + columns.first, integer(width), 0, product + filters.first * width + columns.first,
                integer(width));
  }

  Lowering l_{};
  int threads_ = 1;
  bool whole_batch_ = false;
  std::vector<float> matrix_, product_;
};

Stage* make_openblas() { return new Im2colOpenblas; }

#else

Stage* make_openblas() { return new BuiltWithout("OpenBLAS", "libopenblas-dev"); }

#endif

#if defined(CONVLADDER_ONEDNN)

/// oneDNN's forward convolution for inference, in the algorithm that it chooses itself, fp32 throughout. The filter is
/// reordered in prepare(). prepare() tries the input and the output in NCHW against the layout that oneDNN wants, with
/// the reorders in launch(), and keeps the faster.
class OneDnn final : public Stage {
  using Tag = dnnl::memory::format_tag;

  /// A convolution with all that it needs.
  struct Plan {
    dnnl::convolution_forward convolution;
    dnnl::memory input, filter, output, scratchpad;  // as the convolution wants them
    bool reorders_input, reorders_output;
  };

  const char* library() const override {
    static const std::string name = [] {
      const dnnl_version_t& version = *dnnl_version();
      return "oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
             std::to_string(version.patch);
    }();
    return name.c_str();
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits&) const override {
    const Verdict verdict = check_lowering(problem);
    if (!verdict.accepted()) return verdict;
    if (problem.padding != Padding::zero && (problem.pad_h > 0 || problem.pad_w > 0))
      return Verdict::refuse("oneDNN pads with zeros only");
    return verdict;
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream) override {
    named([&] { make_plans(problem, tensors); });
  }

  void launch(const ConvProblem&, const Tensors& tensors, Stream) override {
    named([&] { run(tensors); });
  }

  /// Runs `work`, whose errors become this row's, as a failed launch on a GPU would.
  template <class Work>
  static void named(const Work& work) {
    try {
      work();
    } catch (const dnnl::error& error) {
      throw DeviceError(std::string("oneDNN: ") + error.what());
    }
  }

  void make_plans(const ConvProblem& problem, const Tensors& tensors) {
    const dnnl::memory::dims input{problem.n, problem.c, problem.h, problem.w};
    const dnnl::memory::dims filter{problem.k, problem.c, problem.r, problem.s};
    const dnnl::memory::dims output{problem.n, problem.k, problem.p(), problem.q()};
    input_ = plain(input, tensors.input);
    output_ = plain(output, tensors.output);
    filter_ = plain(filter, tensors.filter);
    const Plan given = make_plan(problem, Tag::nchw);
    const Plan wanted = make_plan(problem, Tag::any);
    plan_ = given;
    const double given_us = time_us([&] { run(tensors); });
    plan_ = wanted;
    if (time_us([&] { run(tensors); }) > given_us) plan_ = given;

    std::size_t bytes = plan_.filter.get_desc().get_size() + plan_.scratchpad.get_desc().get_size();
    if (plan_.reorders_input) bytes += plan_.input.get_desc().get_size();
    if (plan_.reorders_output) bytes += plan_.output.get_desc().get_size();
    state_memory(static_cast<std::int64_t>(bytes));
  }

  static dnnl::memory::desc describe(const dnnl::memory::dims& sizes, Tag tag) {
    return {sizes, dnnl::memory::data_type::f32, tag};
  }

  static dnnl::memory::dims sizes_of(const dnnl::memory& memory) {
#if DNNL_VERSION_MAJOR >= 3
    return memory.get_desc().get_dims();
#else
    return memory.get_desc().dims();
#endif
  }

  dnnl::memory plain(const dnnl::memory::dims& sizes, const float* floats) const {
    return {describe(sizes, Tag::abcd), engine_, const_cast<float*>(floats)};
  }

  Plan make_plan(const ConvProblem& p, Tag tag) {
    const auto want = [](const dnnl::memory& memory, Tag layout) { return describe(sizes_of(memory), layout); };
    const dnnl::memory::dims strides{p.stride_h, p.stride_w}, dilations{p.dilation_h - 1, p.dilation_w - 1};
    const dnnl::memory::dims before{p.pad_h, p.pad_w};
    // What is left over after the last window is not read.
    const auto after = [](std::int64_t out, std::int64_t stride, std::int64_t dilation, std::int64_t taps,
                          std::int64_t size,
                          std::int64_t pad) { return (out - 1) * stride + dilation * (taps - 1) + 1 - size - pad; };
    const dnnl::memory::dims behind{after(p.p(), p.stride_h, p.dilation_h, p.r, p.h, p.pad_h),
                                    after(p.q(), p.stride_w, p.dilation_w, p.s, p.w, p.pad_w)};
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
    const auto kind = dnnl::prop_kind::forward_inference;
    const auto algorithm = dnnl::algorithm::convolution_auto;
    const dnnl::memory::desc input = want(input_, tag), filter = want(filter_, Tag::any), output = want(output_, tag);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_forward::primitive_desc chosen(engine_, kind, algorithm, input, filter, output, strides,
                                                           dilations, before, behind, attributes);
#else
    const dnnl::convolution_forward::primitive_desc chosen(
        {kind, algorithm, input, filter, output, strides, dilations, before, behind}, attributes, engine_);
#endif

    Plan plan;
    plan.convolution = dnnl::convolution_forward(chosen);
    plan.filter = dnnl::memory(chosen.weights_desc(), engine_);
    plan.scratchpad = dnnl::memory(chosen.scratchpad_desc(), engine_);
    plan.reorders_input = chosen.src_desc() != input_.get_desc();
    plan.reorders_output = chosen.dst_desc() != output_.get_desc();
    plan.input = plan.reorders_input ? dnnl::memory(chosen.src_desc(), engine_) : input_;
    plan.output = plan.reorders_output ? dnnl::memory(chosen.dst_desc(), engine_) : output_;
    reorder(filter_, plan.filter);
    stream_.wait();
    return plan;
  }

  void reorder(dnnl::memory& from, dnnl::memory& to) { dnnl::reorder(from, to).execute(stream_, from, to); }

  void run(const Tensors& tensors) {
    input_.set_data_handle(const_cast<float*>(tensors.input));
    output_.set_data_handle(tensors.output);
    if (plan_.reorders_input) reorder(input_, plan_.input);
    plan_.convolution.execute(stream_, {{DNNL_ARG_SRC, plan_.input},
                                        {DNNL_ARG_WEIGHTS, plan_.filter},
                                        {DNNL_ARG_DST, plan_.output},
                                        {DNNL_ARG_SCRATCHPAD, plan_.scratchpad}});
    if (plan_.reorders_output) reorder(plan_.output, output_);
    stream_.wait();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory input_, filter_, output_;  // in NCHW, the caller's
  Plan plan_;
};

Stage* make_onednn() { return new OneDnn; }

#else

Stage* make_onednn() { return new BuiltWithout("oneDNN", "libdnnl-dev"); }

#endif

/// Stage 22 with its first knobs as by default, and the others at their first value.
class Ablation final : public Stage {
 public:
  explicit Ablation(int knobs_on) : knobs_on_(knobs_on), stage_(make_tunable()) {}

 private:
  static std::unique_ptr<TunableStage> make_tunable() {
    return std::unique_ptr<TunableStage>(dynamic_cast<TunableStage*>(find_stage("22").make()));
  }

  Verdict check(const ConvProblem& problem, const DeviceLimits& limits) const override {
    return stage_->check(problem, limits);
  }

  void prepare(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    Configuration configuration = stage_->default_configuration(problem, {});
    const Knobs& knobs = configuration.knobs;
    for (int i = knobs_on_; i < knobs.count; ++i) configuration.values[i] = knobs.knobs[i].values[0];
    stage_->use(configuration);
    stage_->prepare(problem, tensors, stream);
    state_memory(stage_->workspace_bytes());
  }

  void launch(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    stage_->launch(problem, tensors, stream);
  }

  bool launch_without_transform(const ConvProblem& problem, const Tensors& tensors, Stream stream) override {
    return stage_->launch_without_transform(problem, tensors, stream);
  }

  int knobs_on_;
  std::unique_ptr<TunableStage> stage_;
};

template <int KnobsOn>
Stage* make_ablation() {
  return new Ablation(KnobsOn);
}

constexpr StageInfo row(std::string_view name, std::string_view title, std::string_view source, Stage* (*make)()) {
  return {0, name, name, title, "cpu", title, 0, "fp32", "NCHW", source, "sm_70", make};
}

constexpr StageInfo kRows[] = {
    row("direct-cpu", "The seven loops", "the definition", [] { return static_cast<Stage*>(new DirectCpu); }),
    row("im2col-openblas", "im2col, then OpenBLAS's sgemm", "OpenBLAS", &make_openblas),
    row("onednn", "oneDNN's convolution", "oneDNN", &make_onednn),
    row("im2win-cpu plain", "im2win, one output after the other", "004", &make_ablation<0>),
    row("im2win-cpu + loop order", "a window element meets all filters", "004", &make_ablation<1>),
    row("im2win-cpu + unrolling", "a tile of outputs in registers", "004", &make_ablation<2>),
    row("im2win-cpu + SIMD", "vectors and FMA", "004", &make_ablation<3>),
    row("im2win-cpu + blocking", "bands and blocks that fit the caches", "004", &make_ablation<4>)};
constexpr std::size_t kLibraries = 3;

}  // namespace

std::span<const StageInfo> cpu_rows() {
  const bool has_stage = std::ranges::any_of(stages(), [](const StageInfo& stage) { return stage.number == 22; });
  return has_stage ? std::span(kRows) : std::span(kRows).first(kLibraries);
}

}  // namespace convladder

/// @file
/// The module `convladder_cudnn`: every call of cuDNN. Programs load it at run time, so they run without cuDNN.
#include "common/harness/baselines/cudnn_module.hpp"

#include <cudnn.h>
#include <cudnn_backend.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace convladder {
namespace {

struct CudnnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_SUCCESS) throw CudnnError(cudnnGetErrorString(status));
}

/// A handle, descriptor or plan of cuDNN with an owner.
template <class Handle>
using Owned = std::shared_ptr<std::remove_pointer_t<Handle>>;

template <class Handle>
Owned<Handle> create(cudnnStatus_t (*make)(Handle*), cudnnStatus_t (*destroy)(Handle)) {
  Handle handle = nullptr;
  check(make(&handle));
  return Owned<Handle>(handle, destroy);
}

/// A handle of cuDNN for this thread alone. To make one takes long, the more so on several threads at a time: when the
/// thread and all that was made with its handle are gone, another thread takes it over.
const Owned<cudnnHandle_t>& own_handle() {
  struct Unused {
    std::mutex mutex;
    std::vector<cudnnHandle_t> handles;
  };
  static Unused& unused = *new Unused;  // stays, as CUDA may be gone when the process ends
  const auto take = [] {
    cudnnHandle_t handle = nullptr;
    if (const std::lock_guard lock(unused.mutex); !unused.handles.empty()) {
      handle = unused.handles.back();
      unused.handles.pop_back();
    }
    if (!handle) check(cudnnCreate(&handle));
    return Owned<cudnnHandle_t>(handle, [](cudnnHandle_t done) {
      const std::lock_guard lock(unused.mutex);
      unused.handles.push_back(done);
    });
  };
  thread_local const Owned<cudnnHandle_t> handle = take();
  return handle;
}

/// The status that `work` ends with: "" or cuDNN's word.
template <class Work>
std::string status_of(Work&& work) {
  try {
    work();
    return "";
  } catch (const CudnnError& error) {
    return error.what();
  }
}

// --- (a) cudnnConvolutionForward: one candidate for each of its algorithms ---

int to_int(std::int64_t value) {
  if (value > std::numeric_limits<int>::max()) throw CudnnError("size above 2^31 - 1");
  return static_cast<int>(value);
}

/// A combination of types that cuDNN's documentation of cudnnConvolutionForward names.
struct ForwardTypes {
  cudnnDataType_t input, output, compute;  ///< the filter's is the input's
  cudnnMathType_t math;
  Precision stored;  ///< the output's, in our words
  float scale;       ///< of the sums
  const char* note;  ///< follows the algorithm's name
};

/// A part of the types that fit a problem: an epilogue's outputs of int8 are requantised, and those of float are not.
template <class Types>
std::vector<Types> fitting(std::vector<Types> all, const ConvProblem& problem, Precision precision) {
  if (problem.has_bias()) std::erase_if(all, [&](const Types& each) { return each.stored != precision; });
  return all;
}

std::vector<ForwardTypes> forward_types(const CudnnTypes& types) {
  switch (types.precision) {
    case Precision::fp32:  // FLOAT_CONFIG, strict: no TF32
      return {{CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, Precision::fp32, 1, ""}};
    case Precision::fp16:  // PSEUDO_HALF_CONFIG and TRUE_HALF_CONFIG
      return {{CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, Precision::fp16, 1, ""},
              {CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_TENSOR_OP_MATH, Precision::fp16, 1,
               " (half sums)"}};
    case Precision::bf16:  // PSEUDO_BFLOAT16_CONFIG
      return {
          {CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TENSOR_OP_MATH, Precision::bf16, 1, ""}};
    case Precision::int8:  // INT8_CONFIG and INT8_EXT_CONFIG
      return {{CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32, CUDNN_TENSOR_OP_MATH, Precision::int8,
               types.output_scale, ""},
              {CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, CUDNN_DATA_INT32, CUDNN_TENSOR_OP_MATH, Precision::fp32, 1,
               " (float output)"}};
  }
  throw CudnnError("not a precision");
}

struct ForwardDescriptors {
  Owned<cudnnTensorDescriptor_t> bias = create(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
  Owned<cudnnActivationDescriptor_t> activation =
      create(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor);
  Owned<cudnnTensorDescriptor_t> input = create(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
  Owned<cudnnTensorDescriptor_t> output = create(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor);
  Owned<cudnnFilterDescriptor_t> filter = create(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor);
  Owned<cudnnConvolutionDescriptor_t> convolution =
      create(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor);

  ForwardDescriptors(const ConvProblem& problem, const ForwardTypes& types, bool nhwc) {
    const cudnnTensorFormat_t format = nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    check(cudnnSetTensor4dDescriptor(input.get(), format, types.input, to_int(problem.n), to_int(problem.c),
                                     to_int(problem.h), to_int(problem.w)));
    check(cudnnSetTensor4dDescriptor(output.get(), format, types.output, to_int(problem.n), to_int(problem.k),
                                     to_int(problem.p()), to_int(problem.q())));
    check(cudnnSetFilter4dDescriptor(filter.get(), types.input, format, to_int(problem.k),
                                     to_int(problem.c / problem.groups), to_int(problem.r), to_int(problem.s)));
    check(cudnnSetConvolution2dDescriptor(convolution.get(), to_int(problem.pad_h), to_int(problem.pad_w),
                                          to_int(problem.stride_h), to_int(problem.stride_w),
                                          to_int(problem.dilation_h), to_int(problem.dilation_w),
                                          CUDNN_CROSS_CORRELATION, types.compute));
    check(cudnnSetConvolutionGroupCount(convolution.get(), to_int(problem.groups)));
    check(cudnnSetConvolutionMathType(convolution.get(), types.math));
    check(cudnnSetTensor4dDescriptor(bias.get(), format,
                                     types.input == CUDNN_DATA_HALF ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT, 1,
                                     to_int(problem.k), 1, 1));
    check(cudnnSetActivationDescriptor(activation.get(),
                                       problem.has_relu() ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                       CUDNN_NOT_PROPAGATE_NAN, 0));
  }
};

constexpr std::pair<cudnnConvolutionFwdAlgo_t, const char*> kForwardAlgorithms[] = {
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, "IMPLICIT_GEMM"},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, "IMPLICIT_PRECOMP_GEMM"},
    {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, "GEMM"},
    {CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, "DIRECT"},
    {CUDNN_CONVOLUTION_FWD_ALGO_FFT, "FFT"},
    {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING, "FFT_TILING"},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, "WINOGRAD"},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, "WINOGRAD_NONFUSED"},
};
static_assert(std::size(kForwardAlgorithms) == CUDNN_CONVOLUTION_FWD_ALGO_COUNT, "every algorithm is tried");

/// cudnnConvolutionForward; with an epilogue cudnnConvolutionBiasActivationForward.
void add_forward_algorithms(const Owned<cudnnHandle_t>& handle, const ConvProblem& problem, const ForwardTypes& types,
                            float residual_scale, bool nhwc, std::vector<CudnnCandidate>& candidates) {
  std::shared_ptr<const ForwardDescriptors> descriptors;
  const std::string described =
      status_of([&] { descriptors = std::make_shared<const ForwardDescriptors>(problem, types, nhwc); });

  for (const auto& [algorithm, name] : kForwardAlgorithms) {
    CudnnCandidate& candidate = candidates.emplace_back();
    candidate.algorithm = std::string(name) + types.note;
    candidate.nhwc = nhwc;
    candidate.output = types.stored;
    std::size_t workspace_bytes = 0;
    candidate.status = !described.empty() ? described : status_of([&, chosen = algorithm] {
      check(cudnnGetConvolutionForwardWorkspaceSize(handle.get(), descriptors->input.get(), descriptors->filter.get(),
                                                    descriptors->convolution.get(), descriptors->output.get(), chosen,
                                                    &workspace_bytes));
    });
    if (!candidate.status.empty()) continue;
    candidate.status = "ok";
    candidate.workspace_bytes = static_cast<std::int64_t>(workspace_bytes);
    candidate.run = [handle, descriptors, workspace_bytes, chosen = algorithm, scale = types.scale, residual_scale](
                        const CudnnOperands& operands, void* output, void* workspace, Stream stream) {
      return status_of([&] {
        const float zero = 0;
        const ForwardDescriptors& of = *descriptors;
        check(cudnnSetStream(handle.get(), stream));
        if (!operands.bias) {
          check(cudnnConvolutionForward(handle.get(), &scale, of.input.get(), operands.input, of.filter.get(),
                                        operands.filter, of.convolution.get(), chosen, workspace, workspace_bytes,
                                        &zero, of.output.get(), output));
          return;
        }
        const bool adds = operands.residual != nullptr;
        check(cudnnConvolutionBiasActivationForward(
            handle.get(), &scale, of.input.get(), operands.input, of.filter.get(), operands.filter,
            of.convolution.get(), chosen, workspace, workspace_bytes, adds ? &residual_scale : &zero, of.output.get(),
            adds ? operands.residual : output, of.bias.get(), operands.forward_bias, of.activation.get(),
            of.output.get(), output));
      });
    };
  }
}

// --- (b) the graph API: one candidate for each plan that its heuristics propose ---

/// The attribute type that goes with a C++ type.
template <class T>
constexpr cudnnBackendAttributeType_t attribute_type() {
  if constexpr (std::is_same_v<T, std::int64_t>) return CUDNN_TYPE_INT64;
  if constexpr (std::is_same_v<T, float>) return CUDNN_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, bool>) return CUDNN_TYPE_BOOLEAN;
  if constexpr (std::is_same_v<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
  if constexpr (std::is_same_v<T, cudnnDataType_t>) return CUDNN_TYPE_DATA_TYPE;
  if constexpr (std::is_same_v<T, cudnnConvolutionMode_t>) return CUDNN_TYPE_CONVOLUTION_MODE;
  if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>) return CUDNN_TYPE_POINTWISE_MODE;
  if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) return CUDNN_TYPE_HEUR_MODE;
  if constexpr (std::is_same_v<T, cudnnBackendKnobType_t>) return CUDNN_TYPE_KNOB_TYPE;
  if constexpr (std::is_same_v<T, cudnnBackendNumericalNote_t>) return CUDNN_TYPE_NUMERICAL_NOTE;
}

/// A backend descriptor, built attribute by attribute, then finalized.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = nullptr;
    check(cudnnBackendCreateDescriptor(type, &made));
    owned_ = std::shared_ptr<void>(made, cudnnBackendDestroyDescriptor);
  }

  cudnnBackendDescriptor_t get() const { return owned_.get(); }

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, attribute_type<T>(), 1, &value);
  }
  template <class T, std::size_t N>
  Descriptor& set(cudnnBackendAttributeName_t name, const std::array<T, N>& values) {
    return set(name, attribute_type<T>(), N, values.data());
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& other) {
    const cudnnBackendDescriptor_t value = other.get();
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
  }
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                  const void* values) {
    check(cudnnBackendSetAttribute(get(), name, type, count, values));
    return *this;
  }
  Descriptor& finalize() {
    check(cudnnBackendFinalize(get()));
    return *this;
  }

  template <class T>
  T value(cudnnBackendAttributeName_t name) const {
    T result{};
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(get(), name, attribute_type<T>(), 1, &count, &result));
    return result;
  }
  template <class T>
  std::vector<T> values(cudnnBackendAttributeName_t name, std::size_t at_most) const {
    std::vector<T> result(at_most);
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(get(), name, attribute_type<T>(), static_cast<std::int64_t>(at_most), &count,
                                   result.data()));
    result.resize(std::min(static_cast<std::size_t>(count), at_most));
    return result;
  }
  /// Descriptors that this one holds; cuDNN fills in ones that the caller has made.
  std::vector<Descriptor> descriptors(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                      std::size_t at_most) const {
    std::vector<Descriptor> result;
    std::vector<cudnnBackendDescriptor_t> pointers;
    for (std::size_t i = 0; i < at_most; ++i) pointers.push_back(result.emplace_back(type).get());
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(at_most),
                                   &count, pointers.data()));
    result.erase(result.begin() + std::min(count, static_cast<std::int64_t>(at_most)), result.end());
    return result;
  }

 private:
  std::shared_ptr<void> owned_;
};

/// What the graph's tensors are called. Those between its operations are numbered from kBetween on.
enum TensorId : std::int64_t {
  kInput = 'x',
  kFilter = 'w',
  kOutput = 'y',
  kScale = 's',
  kScales = 'v',
  kBias = 'b',
  kResidual = 'z',
  kResidualScale = 'r',
  kBetween = 1000
};

/// A tensor of dimensions (n, c, h, w) in either layout, not finalized.
Descriptor tensor(std::int64_t id, cudnnDataType_t type, const std::array<std::int64_t, 4>& size, bool nhwc) {
  const auto [n, c, h, w] = size;
  const std::array<std::int64_t, 4> strides =
      nhwc ? std::array{c * h * w, std::int64_t{1}, c * w, c} : std::array{c * h * w, h * w, w, std::int64_t{1}};
  Descriptor result(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  result.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, size)
      .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{256});  // as DeviceBuffer aligns
  return result;
}

/// The types of a graph: a convolution, where the outputs are int8 the multiplication of its sums by a number, and the
/// epilogue.
struct GraphTypes {
  cudnnDataType_t input, output, compute;
  Precision stored;
  float scale;
  const char* note;
  float residual_scale = 1;
};

std::vector<GraphTypes> graph_types(const CudnnTypes& types) {
  switch (types.precision) {
    case Precision::fp32:
      return {{CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, Precision::fp32, 1, ""}};
    case Precision::fp16:
      return {{CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, Precision::fp16, 1, ""}};
    case Precision::bf16:
      return {{CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, Precision::bf16, 1, ""}};
    case Precision::int8:
      return {{CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32, Precision::int8, types.output_scale, "",
               types.residual_scale},
              {CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, CUDNN_DATA_INT32, Precision::fp32, 1, " (float output)"}};
  }
  throw CudnnError("not a precision");
}

/// A number that is passed by value when the plan runs.
Descriptor by_value(TensorId id) {
  Descriptor scalar = tensor(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, false);
  scalar.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true).finalize();
  return scalar;
}

Descriptor pointwise(cudnnPointwiseMode_t mode, const Descriptor& from, const Descriptor* operand,
                     const Descriptor& to) {
  Descriptor way(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  way.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT).finalize();
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, way)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
  if (operand) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *operand);
  operation.finalize();
  return operation;
}

/// What follows the convolution's sums, one after the other.
struct Link {
  cudnnPointwiseMode_t mode;
  std::optional<Descriptor> operand = {};
};

/// Scale, residual, bias, ReLU: in the order in which cudnnConvolutionBiasActivationForward has them.
/// @param between makes a tensor of fp32 that stays on the chip  @param operations what must come before the links
std::vector<Link> links(const ConvProblem& problem, const GraphTypes& types, bool nhwc, const auto& between,
                        std::vector<Descriptor>& operations) {
  const auto of_filters = [&](TensorId id) {
    Descriptor vector = tensor(id, CUDNN_DATA_FLOAT, {1, problem.k, 1, 1}, nhwc);
    vector.finalize();
    return vector;
  };
  const bool scaled = types.stored == Precision::int8;
  std::vector<Link> result;
  if (scaled) result.push_back({CUDNN_POINTWISE_MUL, problem.has_bias() ? of_filters(kScales) : by_value(kScale)});
  if (problem.has_residual()) {
    Descriptor residual = tensor(kResidual, types.output, {problem.n, problem.k, problem.p(), problem.q()}, nhwc);
    residual.finalize();
    if (scaled) {
      const Descriptor scale = by_value(kResidualScale), product = between();
      operations.push_back(pointwise(CUDNN_POINTWISE_MUL, residual, &scale, product));
      residual = product;
    }
    result.push_back({CUDNN_POINTWISE_ADD, residual});
  }
  if (problem.has_bias()) result.push_back({CUDNN_POINTWISE_ADD, of_filters(kBias)});
  if (problem.has_relu()) result.push_back({CUDNN_POINTWISE_RELU_FWD});
  return result;
}

Descriptor operation_graph(const Owned<cudnnHandle_t>& handle, const ConvProblem& problem, const GraphTypes& types,
                           bool nhwc) {
  const std::array output_size = {problem.n, problem.k, problem.p(), problem.q()};
  Descriptor input = tensor(kInput, types.input, {problem.n, problem.c, problem.h, problem.w}, nhwc);
  Descriptor filter = tensor(kFilter, types.input, {problem.k, problem.c / problem.groups, problem.r, problem.s}, nhwc);
  Descriptor output = tensor(kOutput, types.output, output_size, nhwc);
  input.finalize();
  filter.finalize();
  output.finalize();
  std::int64_t next_id = kBetween;
  const auto between = [&] {
    Descriptor sums = tensor(next_id++, CUDNN_DATA_FLOAT, output_size, nhwc);
    sums.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true).finalize();
    return sums;
  };

  const std::array pads = {problem.pad_h, problem.pad_w};
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, types.compute)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::array{problem.stride_h, problem.stride_w})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::array{problem.dilation_h, problem.dilation_w})
      .finalize();

  std::vector<Descriptor> of_residual;
  const std::vector<Link> chain = links(problem, types, nhwc, between, of_residual);
  Descriptor last = chain.empty() ? output : between();
  Descriptor operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, input)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, filter)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, last)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0f)
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0f)
      .finalize();

  std::vector<Descriptor> operations{operation};
  operations.insert(operations.end(), of_residual.begin(), of_residual.end());
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const Descriptor next = i + 1 == chain.size() ? output : between();
    operations.push_back(pointwise(chain[i].mode, last, chain[i].operand ? &*chain[i].operand : nullptr, next));
    last = next;
  }
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const Descriptor& one : operations) pointers.push_back(one.get());
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle.get())
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(pointers.size()),
           pointers.data())
      .finalize();
  return graph;
}

/// The configurations that one heuristic proposes, best first by its own estimate; none where it has no answer.
std::vector<Descriptor> propose(const Descriptor& graph, cudnnBackendHeurMode_t mode) {
  std::vector<Descriptor> configurations;
  status_of([&] {
    Descriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode).finalize();
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                   &count, nullptr));
    configurations = heuristic.descriptors(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                           static_cast<std::size_t>(count));
  });
  return configurations;
}

/// What cuDNN notes on an engine.
struct EngineNotes {
  bool strict_fp32 = true;
  const char* family = "";  ///< begins the names of its plans
};

EngineNotes notes_on(const Descriptor& engine) {
  EngineNotes notes;
  for (const auto note :
       engine.values<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
        notes.strict_fp32 = false;
        break;
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13:
        notes.family = "WINOGRAD ";
        break;
      case CUDNN_NUMERICAL_NOTE_FFT:
        notes.family = "FFT ";
        break;
      default:
        break;
    }
  }
  return notes;
}

constexpr std::size_t kMostKnobs = 64;  // of an engine

CudnnConfiguration configuration_of(const Descriptor& engine, const Descriptor& chosen) {
  CudnnConfiguration result;
  result.engine = engine.value<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
  for (const Descriptor& knob :
       chosen.descriptors(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kMostKnobs)) {
    result.knobs[knob.value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE)] =
        knob.value<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
  }
  return result;
}

/// "eng12{k2=1,k5=0}"
std::string name_of(const CudnnConfiguration& configuration) {
  std::string knobs;
  for (const auto& [type, value] : configuration.knobs)
    knobs += (knobs.empty() ? "k" : ",k") + std::to_string(type) + "=" + std::to_string(value);
  return "eng" + std::to_string(configuration.engine) + "{" + knobs + "}";
}

Descriptor engine_of(const Descriptor& graph, std::int64_t index) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index).finalize();
  return engine;
}

/// Makes `candidate` run the configuration. @throws CudnnError if cuDNN cannot
void plan(const Owned<cudnnHandle_t>& handle, const Descriptor& configuration, const GraphTypes& types,
          CudnnCandidate& candidate) {
  Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle.get())
      .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
      .finalize();
  candidate.workspace_bytes = plan.value<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  const bool scaled = types.stored == Precision::int8;
  candidate.run = [handle, plan, scaled, scale = types.scale, residual_scale = types.residual_scale](
                      const CudnnOperands& operands, void* output, void* workspace, Stream stream) {
    return status_of([&] {
      std::vector<std::int64_t> ids{kInput, kFilter, kOutput};
      std::vector<const void*> pointers{operands.input, operands.filter, output};
      const auto pass = [&](TensorId id, const void* pointer) {
        ids.push_back(id);
        pointers.push_back(pointer);
      };
      if (operands.bias) pass(kBias, operands.bias);
      if (operands.residual) pass(kResidual, operands.residual);
      if (scaled && operands.residual) pass(kResidualScale, &residual_scale);
      if (scaled && operands.bias) pass(kScales, operands.scales);
      if (scaled && !operands.bias) pass(kScale, &scale);
      const auto count = static_cast<std::int64_t>(ids.size());
      Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
          .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
          .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace)
          .finalize();
      check(cudnnSetStream(handle.get(), stream));
      check(cudnnBackendExecute(handle.get(), plan.get(), pack.get()));
    });
  };
}

constexpr const char* kNotStrict = "not strict fp32 (Tensor Cores or reduced precision)";

/// A candidate without a way to run.
CudnnCandidate named(std::string algorithm, const GraphTypes& types, bool nhwc) {
  CudnnCandidate candidate;
  candidate.algorithm = std::move(algorithm) + types.note;
  candidate.nhwc = nhwc;
  candidate.output = types.stored;
  return candidate;
}

/// The configuration as cuDNN's descriptor. @throws CudnnError if there is no such engine, or no such value of a knob
Descriptor described(const Descriptor& engine, const CudnnConfiguration& configuration) {
  std::vector<Descriptor> choices;
  std::vector<cudnnBackendDescriptor_t> pointers;
  for (const auto& [type, value] : configuration.knobs) {
    Descriptor& choice = choices.emplace_back(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    choice.set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, static_cast<cudnnBackendKnobType_t>(type))
        .set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, value)
        .finalize();
    pointers.push_back(choice.get());
  }
  Descriptor result(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  result.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (!pointers.empty()) {
    result.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
               static_cast<std::int64_t>(pointers.size()), pointers.data());
  }
  result.finalize();
  return result;
}

CudnnPlanner planner(const ConvProblem& problem, const GraphTypes& types, bool nhwc, bool strict_fp32) {
  Owned<cudnnHandle_t> handle;
  std::optional<Descriptor> graph;
  const std::string status = status_of([&] {
    handle = own_handle();
    graph = operation_graph(handle, problem, types, nhwc);
  });
  return [=](const CudnnConfiguration& configuration) {
    CudnnCandidate candidate = named("plan (" + name_of(configuration) + ")", types, nhwc);
    candidate.configuration = configuration;
    candidate.status = !status.empty() ? status : status_of([&] {
      const Descriptor engine = engine_of(*graph, configuration.engine);
      const EngineNotes notes = notes_on(engine);
      if (strict_fp32 && !notes.strict_fp32) throw CudnnError(kNotStrict);
      candidate.algorithm = notes.family + candidate.algorithm;
      plan(handle, described(engine, configuration), types, candidate);
    });
    if (candidate.status.empty()) candidate.status = "ok";
    return candidate;
  };
}

/// The plans are not made here.
/// @param strict_fp32 leave out Tensor Cores and reduced precision
void add_plans(const Owned<cudnnHandle_t>& handle, const ConvProblem& problem, const GraphTypes& types, bool nhwc,
               bool strict_fp32, std::vector<CudnnCandidate>& candidates) {
  const std::string status = status_of([&] {
    const Descriptor graph = operation_graph(handle, problem, types, nhwc);
    std::set<CudnnConfiguration> seen;
    for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
      for (const Descriptor& proposed : propose(graph, mode)) {
        const Descriptor engine =
            proposed.descriptors(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1).at(0);
        const CudnnConfiguration configuration = configuration_of(engine, proposed);
        if (!seen.insert(configuration).second) continue;
        const EngineNotes notes = notes_on(engine);
        CudnnCandidate& candidate = candidates.emplace_back(named(
            notes.family + ("plan " + std::to_string(seen.size())) + " (" + name_of(configuration) + ")", types, nhwc));
        candidate.configuration = configuration;
        if (strict_fp32 && !notes.strict_fp32) candidate.status = kNotStrict;
      }
    }
    if (seen.empty()) throw CudnnError("no plan proposed");
  });
  if (!status.empty()) candidates.emplace_back(named("plans", types, nhwc)).status = status;
}

// --- (c) the graph API: any plan, by its engine and knobs ---

/// The engines of a graph that finalize. @param left_out how many of them are not strict, where that is asked for
std::vector<CudnnEngine> engines_of(const Descriptor& graph, bool strict_fp32, int& left_out) {
  std::vector<CudnnEngine> engines;
  const auto count = graph.value<std::int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
  for (std::int64_t index = 0; index < count; ++index) {
    status_of([&] {  // most engines refuse most graphs
      const Descriptor engine = engine_of(graph, index);
      if (strict_fp32 && !notes_on(engine).strict_fp32) {
        ++left_out;
        return;
      }
      CudnnEngine found{index, {}};
      for (const Descriptor& knob :
           engine.descriptors(CUDNN_ATTR_ENGINE_KNOB_INFO, CUDNN_BACKEND_KNOB_INFO_DESCRIPTOR, kMostKnobs)) {
        found.knobs.push_back({knob.value<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_INFO_TYPE),
                               knob.value<std::int64_t>(CUDNN_ATTR_KNOB_INFO_MINIMUM_VALUE),
                               knob.value<std::int64_t>(CUDNN_ATTR_KNOB_INFO_MAXIMUM_VALUE),
                               knob.value<std::int64_t>(CUDNN_ATTR_KNOB_INFO_STRIDE)});
      }
      engines.push_back(std::move(found));
    });
  }
  return engines;
}

CudnnGraph graph_of(const Owned<cudnnHandle_t>& handle, const ConvProblem& problem, const GraphTypes& types, bool nhwc,
                    bool strict_fp32) {
  CudnnGraph graph;
  graph.nhwc = nhwc;
  graph.output = types.stored;
  graph.engines = [=](int& left_out) {
    std::vector<CudnnEngine> engines;
    status_of([&] { engines = engines_of(operation_graph(handle, problem, types, nhwc), strict_fp32, left_out); });
    return engines;
  };
  graph.planner = [=] { return planner(problem, types, nhwc, strict_fp32); };
  return graph;
}

}  // namespace
}  // namespace convladder

/// Finds cuDNN's candidates for a problem with zero padding, in the types asked for. Those of int8 in NHWC alone: cuDNN
/// has none for it in NCHW.
extern "C" void convladder_cudnn_candidates(const convladder::ConvProblem& problem, const convladder::CudnnTypes& types,
                                            convladder::CudnnCandidates& result) {
  using namespace convladder;
  const std::size_t version = cudnnGetVersion();
  result.version = std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
                   std::to_string(version % 100);
  Owned<cudnnHandle_t> handle;
  result.error = status_of([&] { handle = own_handle(); });
  if (!handle) return;
  for (const bool nhwc : {false, true}) {
    if (types.precision == Precision::int8 && !nhwc) continue;
    for (const ForwardTypes& each : fitting(forward_types(types), problem, types.precision))
      add_forward_algorithms(handle, problem, each, types.residual_scale, nhwc, result.candidates);
    const bool strict_fp32 = types.precision == Precision::fp32;
    for (const GraphTypes& each : fitting(graph_types(types), problem, types.precision)) {
      add_plans(handle, problem, each, nhwc, strict_fp32, result.candidates);
      result.graphs.push_back(graph_of(handle, problem, each, nhwc, strict_fp32));
    }
  }
}

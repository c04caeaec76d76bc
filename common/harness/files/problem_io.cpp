#include "common/harness/files/problem_io.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <set>
#include <vector>

#include "common/harness/files/errors.hpp"
#include "common/harness/files/spelling.hpp"

namespace convladder {
namespace {

struct ShapeKey {
  std::string_view name;
  std::int64_t ConvProblem::*member;
  std::int64_t minimum;
  bool always_written;  ///< by to_string, also where it equals the default
};

constexpr ShapeKey kShapeKeys[] = {
    {"n", &ConvProblem::n, 1, true},
    {"c", &ConvProblem::c, 1, true},
    {"h", &ConvProblem::h, 1, true},
    {"w", &ConvProblem::w, 1, true},
    {"k", &ConvProblem::k, 1, true},
    {"r", &ConvProblem::r, 1, true},
    {"s", &ConvProblem::s, 1, true},
    {"pad_h", &ConvProblem::pad_h, 0, false},
    {"pad_w", &ConvProblem::pad_w, 0, false},
    {"stride_h", &ConvProblem::stride_h, 1, false},
    {"stride_w", &ConvProblem::stride_w, 1, false},
    {"dilation_h", &ConvProblem::dilation_h, 1, false},
    {"dilation_w", &ConvProblem::dilation_w, 1, false},
    {"groups", &ConvProblem::groups, 1, false},
};

constexpr std::string_view kEpilogueKey = "epilogue";
constexpr Epilogue kEpilogues[] = {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_residual_relu};

/// The default padding of a filter side; 0 for the sizes that validate() will reject.
std::int64_t half(std::int64_t filter_side) { return filter_side < 1 ? 0 : (filter_side - 1) / 2; }

[[noreturn]] void throw_unknown_key(std::string_view key) {
  std::vector<std::string_view> names;
  for (const ShapeKey& known : kShapeKeys) names.push_back(known.name);
  names.push_back(kEpilogueKey);
  const std::string_view nearest = nearest_name(key, names);
  throw UsageError(fmt::format("unknown shape key {}{}; the keys are {}", in_quotes(key),
                               nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest),
                               fmt::join(names, ", ")));
}

Epilogue parse_epilogue(std::string_view value) {
  std::vector<std::string_view> names;
  for (const Epilogue epilogue : kEpilogues) {
    if (value == to_string(epilogue)) return epilogue;
    names.push_back(to_string(epilogue));
  }
  throw UsageError(fmt::format("unknown epilogue {}; use {}", in_quotes(value), fmt::join(names, ", ")));
}

std::int64_t parse_value(std::string_view item, std::string_view value) {
  std::int64_t number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error == std::errc::result_out_of_range && rest == end) {
    throw UsageError(fmt::format("shape item {} does not fit in 64 bits; give a smaller value", in_quotes(item)));
  }
  if (error != std::errc() || rest != end) {
    throw UsageError(fmt::format("shape item {} has no integer value; write it as in w=4096", in_quotes(item)));
  }
  return number;
}

/// The product, or UsageError that names it by `what`. No factor is negative.
std::int64_t checked_product(std::string_view what, std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      throw UsageError(fmt::format("{} overflows 64 bits; make the problem smaller", what));
    }
  }
  return product;
}

std::int64_t checked_sum(std::string_view what, std::initializer_list<std::int64_t> terms) {
  std::int64_t sum = 0;
  for (const std::int64_t term : terms) {
    if (__builtin_add_overflow(sum, term, &sum)) {
      throw UsageError(fmt::format("{} overflows 64 bits; make the problem smaller", what));
    }
  }
  return sum;
}

/// Output positions along one dimension: like ConvProblem::p(), but 0 where the filter is larger than the padded input.
std::int64_t output_length(char dimension, std::int64_t size, std::int64_t pad, std::int64_t filter,
                           std::int64_t dilation, std::int64_t stride) {
  const std::int64_t padded = checked_sum(fmt::format("{0} + 2*pad_{0}", dimension), {size, pad, pad});
  const std::string what = fmt::format("the filter's extent along {0} (dilation_{0})", dimension);
  const std::int64_t extent = checked_sum(what, {checked_product(what, {dilation, filter - 1}), 1});
  return padded < extent ? 0 : (padded - extent) / stride + 1;
}

}  // namespace

ConvProblem with_default_padding(ConvProblem problem) {
  problem.pad_h = half(problem.r);
  problem.pad_w = half(problem.s);
  return problem;
}

ConvProblem parse_shape(std::string_view text, ConvProblem problem) {
  std::set<std::string_view> given;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      throw UsageError(fmt::format("shape {} has the item {}, which is not key=value; write it as in c=64,h=56,w=56",
                                   in_quotes(text), in_quotes(item)));
    }
    const std::string_view key = item.substr(0, equals);
    const ShapeKey* known =
        std::find_if(std::begin(kShapeKeys), std::end(kShapeKeys), [&](const ShapeKey& k) { return k.name == key; });
    const bool is_epilogue = key == kEpilogueKey;
    if (known == std::end(kShapeKeys) && !is_epilogue) throw_unknown_key(key);
    if (!given.insert(key).second) throw UsageError(fmt::format("shape key {} is given twice; give it once", key));
    const std::string_view value = item.substr(equals + 1);
    if (is_epilogue)
      problem.epilogue = parse_epilogue(value);
    else
      problem.*known->member = parse_value(item, value);
  }
  if (!given.contains("pad_h")) problem.pad_h = half(problem.r);
  if (!given.contains("pad_w")) problem.pad_w = half(problem.s);
  return problem;
}

Padding parse_padding(std::string_view text) {
  for (const Padding padding : {Padding::zero, Padding::replicate, Padding::reflect}) {
    if (text == to_string(padding)) return padding;
  }
  throw UsageError(fmt::format("unknown padding {}; use zero, replicate or reflect", in_quotes(text)));
}

const char* to_string(Padding padding) {
  switch (padding) {
    case Padding::zero:
      return "zero";
    case Padding::replicate:
      return "replicate";
    case Padding::reflect:
      return "reflect";
  }
  throw std::logic_error("not a padding mode");
}

const char* to_string(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return "none";
    case Epilogue::bias:
      return "bias";
    case Epilogue::bias_relu:
      return "bias_relu";
    case Epilogue::bias_residual_relu:
      return "bias_residual_relu";
  }
  throw std::logic_error("not an epilogue");
}

void validate(const ConvProblem& problem, std::int64_t memory_bytes, std::string_view whose) {
  for (const ShapeKey& key : kShapeKeys) {
    if (problem.*key.member < key.minimum) {
      throw UsageError(
          fmt::format("{0} must be at least {1}; got {0}={2}", key.name, key.minimum, problem.*key.member));
    }
  }

  const ConvProblem& x = problem;
  const std::int64_t p = output_length('h', x.h, x.pad_h, x.r, x.dilation_h, x.stride_h);
  const std::int64_t q = output_length('w', x.w, x.pad_w, x.s, x.dilation_w, x.stride_w);
  const std::int64_t inputs = checked_product("the input's size n*c*h*w", {x.n, x.c, x.h, x.w});
  const std::int64_t filters = checked_product("the filter's size k*(c/groups)*r*s", {x.k, x.c / x.groups, x.r, x.s});
  const std::int64_t outputs = checked_product("the output's size n*k*p*q", {x.n, x.k, p, q});
  const std::int64_t residual = x.has_residual() ? 4 : 0;
  // The reference holds two doubles for each output.
  const std::int64_t bytes =
      checked_sum("the memory for the tensors", {checked_product("the input in bytes", {inputs, 4}),
                                                 checked_product("the filter in bytes", {filters, 4}),
                                                 checked_product("the output in bytes", {outputs, 4 + 16}),
                                                 checked_product("the residual in bytes", {outputs, residual})});
  checked_product("the number of operations", {2, outputs, x.c / x.groups, x.r, x.s});

  if (x.c % x.groups != 0 || x.k % x.groups != 0) {
    throw UsageError(fmt::format("groups must divide c and k; got groups={}, c={}, k={}", x.groups, x.c, x.k));
  }
  if (p < 1 || q < 1) {
    const char dimension = p < 1 ? 'h' : 'w';
    throw UsageError(
        fmt::format("the output is empty: along {0} the filter covers {1} positions and the padded input has {2}; "
                    "raise {0} or pad_{0}",
                    dimension, p < 1 ? x.dilation_h * (x.r - 1) + 1 : x.dilation_w * (x.s - 1) + 1,
                    p < 1 ? x.h + 2 * x.pad_h : x.w + 2 * x.pad_w));
  }
  if (bytes > memory_bytes) {
    constexpr std::int64_t kMiB = 1 << 20;
    throw UsageError(
        fmt::format("not enough memory: the tensors and their reference need {} MiB and {} has room for {} MiB; make "
                    "the problem smaller",
                    bytes / kMiB + 1, whose, memory_bytes / kMiB));
  }

  if (x.padding == Padding::reflect) {
    if (x.pad_h >= x.h) {
      throw RefusedError(fmt::format("reflect padding needs pad_h < h; got pad_h={}, h={}", x.pad_h, x.h));
    }
    if (x.pad_w >= x.w) {
      throw RefusedError(fmt::format("reflect padding needs pad_w < w; got pad_w={}, w={}", x.pad_w, x.w));
    }
  }
}

std::string to_string(const ConvProblem& problem) {
  ConvProblem defaults;
  defaults.pad_h = half(problem.r);
  defaults.pad_w = half(problem.s);
  std::string text;
  for (const ShapeKey& key : kShapeKeys) {
    if (!key.always_written && problem.*key.member == defaults.*key.member) continue;
    fmt::format_to(std::back_inserter(text), "{}{}={}", text.empty() ? "" : ",", key.name, problem.*key.member);
  }
  if (problem.epilogue != Epilogue::none) text += fmt::format(",{}={}", kEpilogueKey, to_string(problem.epilogue));
  return text;
}

}  // namespace convladder

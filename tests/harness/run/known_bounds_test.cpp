#include "common/harness/run/known_bounds.hpp"

#include <doctest/doctest.h>

#include "common/harness/check/winograd_error.hpp"
#include "common/harness/files/problem_io.hpp"

using namespace convladder;

TEST_CASE("bounds are computed once for each way to compute, and are those of that way") {
  const ConvProblem problem = parse_shape("c=3,h=9,w=10,k=4,r=3,s=3");
  const HostTensors tensors = make_inputs(problem, InputKind::normal, FilterForm::dense, 1);
  const Reference reference = convolve_reference(problem, tensors.input, tensors.filter);
  KnownBounds known;
  const auto of = [&](const WinogradForm& form) { return known.of(form, problem, tensors, reference); };

  const WinogradForm forms[] = {{.stored = Precision::fp16},
                                {.stored = Precision::int8},
                                {.stored = Precision::bf16},
                                {.m = 2},
                                {.m = 4},
                                {.m = 4, .fractions = true},
                                {.m = 4, .stored = Precision::fp16},
                                {.m = 4, .stored = Precision::fp16, .half_products = true},
                                {.m = 4, .m_across = 2},
                                {.m = 4, .split_channels = 2},
                                {.m = 2, .along_height = true}};
  std::vector<std::shared_ptr<const OutputBounds>> found;
  for (const WinogradForm& form : forms) found.push_back(of(form));
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(of(forms[i]) == found[i]);  // the same, not an equal one
    for (std::size_t j = 0; j < i; ++j) CHECK(found[i]->bounds != found[j]->bounds);
  }
  CHECK(found[0]->bounds == direct_half_bounds(problem, tensors, reference).bounds);
  CHECK(found[1]->bounds == direct_int8_bounds(problem, tensors, reference).bounds);
  CHECK(found[2]->bounds == direct_bf16_bounds(problem, tensors, reference).bounds);
  CHECK(found[4]->bounds == winograd_bounds(problem, forms[4], tensors).bounds);
}

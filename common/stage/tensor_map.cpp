#include "common/stage/tensor_map.hpp"

#include <stdexcept>
#include <string>

namespace convladder {

unsigned element_bytes(TensorElement element) {
  switch (element) {
    case TensorElement::int8:
      return 1;
    case TensorElement::fp16:
      return 2;
    case TensorElement::int32:
    case TensorElement::fp32:
      return 4;
  }
  throw std::invalid_argument("tensor map: no such element type");
}

unsigned swizzle_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return 0;
    case Swizzle::bytes64:
      return 64;
    case Swizzle::bytes128:
      return 128;
  }
  throw std::invalid_argument("tensor map: no such swizzle");
}

namespace {

/// Of a tensor whose sizes are known to be right.
void check_columns(const TensorForm& form) {
  if (form.rank < 3)
    throw std::invalid_argument("tensor map: columns are of tensors with 3 to 5 dimensions; got " +
                                std::to_string(form.rank));
  if (form.pixels > 1024)
    throw std::invalid_argument("tensor map: a column has 1 to 1024 pixels; got " + std::to_string(form.pixels));
  const int limit = form.rank == 3 ? 1 << 15 : form.rank == 4 ? 1 << 7 : 1 << 4;
  for (int i = 0; i < form.rank - 2; ++i) {
    const std::string at = " of dimension " + std::to_string(i + 1);
    for (const int corner : {form.lower[i], form.upper[i]})
      if (corner < -limit || corner >= limit)
        throw std::invalid_argument("tensor map: the corners" + at + " must be " + std::to_string(-limit) + " to " +
                                    std::to_string(limit - 1) + "; got " + std::to_string(corner));
    if (static_cast<std::int64_t>(form.dimensions[i + 1].size) + form.upper[i] <= form.lower[i])
      throw std::invalid_argument("tensor map: no pixel lies between the corners" + at);
  }
}

}  // namespace

void check_tensor(const void* global, const TensorForm& form) {
  const auto refuse = [](const std::string& rule, std::uint64_t got) {
    throw std::invalid_argument("tensor map: " + rule + "; got " + std::to_string(got));
  };
  const auto address = reinterpret_cast<std::uintptr_t>(global);
  if (address == 0 || address % 16 != 0) refuse("the tensor must begin at a multiple of 16 bytes", address);
  if (form.rank < 1 || form.rank > 5)
    throw std::invalid_argument("tensor map: a tensor has 1 to 5 dimensions; got " + std::to_string(form.rank));
  for (int i = 0; i < form.rank; ++i) {
    const TensorDimension& dimension = form.dimensions[i];
    const std::string at = " of dimension " + std::to_string(i);
    if (dimension.size < 1 || dimension.size > std::uint64_t{1} << 32)
      refuse("the size" + at + " must be 1 to 2^32", dimension.size);
    const bool has_box = form.pixels == 0 || i == 0;
    if (has_box && (dimension.box < 1 || dimension.box > 256))
      refuse("the box" + at + " must be 1 to 256", dimension.box);
    const unsigned most_steps = i == 0 || (form.pixels > 0 && i == form.rank - 1) ? 1 : 8;
    if (dimension.step < 1 || dimension.step > most_steps)
      refuse("the step" + at + " must be 1" + (most_steps > 1 ? " to 8" : ""), dimension.step);
    if (i > 0 && (dimension.stride % 16 != 0 || dimension.stride >= std::uint64_t{1} << 40))
      refuse("the stride" + at + " must be a multiple of 16 bytes below 2^40", dimension.stride);
  }
  const unsigned each = element_bytes(form.element), span = swizzle_bytes(form.swizzle);
  const TensorDimension& inner = form.dimensions[0];
  if (inner.stride != each) refuse("the stride of dimension 0 must be the element's size", inner.stride);
  if (inner.box * each % 16 != 0) refuse("a row of the box must be a multiple of 16 bytes", inner.box * each);
  if (span != 0 && inner.box * each != span)
    refuse("a row of the box must be as long as the swizzle, " + std::to_string(span) + " bytes", inner.box * each);
  if (form.pixels > 0) check_columns(form);
}

}  // namespace convladder

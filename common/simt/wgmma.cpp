// Matrix products of a warpgroup. Each warp computes its 16 rows when it issues a wgmma. A wait lasts until all four
// warps have issued it. Until then the result is kept aside, and the lanes' arrays, which stand for registers, hold
// poison.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "common/simt/async.hpp"
#include "common/simt/hopper.hpp"
#include "common/simt/tensor_core.hpp"
#include "common/simt/warp.hpp"
#include "common/stage/half_convert.hpp"

namespace simt {
namespace {

constexpr std::uint32_t kPoison = 0x7fedbeef;  ///< as a float, a NaN
constexpr unsigned kRows = 16;                 ///< of a warp
constexpr unsigned kStep = 32;                 ///< bytes of a row of A or B that one wgmma reads
constexpr unsigned kMaxColumns = 256;
constexpr unsigned kPitch = kMaxColumns + 8;  ///< of B's numbers; with a power of two they would share few cache sets

#define SIMT_PC relative_pc(__builtin_return_address(0))

unsigned warp_number() { return machine.thread_number / kWarp; }

/// The whole warp has come, as part of a whole warpgroup.
WarpProducts& products_of_warp(unsigned mask) {
  become(static_cast<unsigned>(__builtin_ctz(mask)));
  const Pc pc = machine.thread->wait_pc;
  if (mask != ~0u) fail(FaultKind::divergent_collective, pc, "wgmma needs all 32 lanes of the warp; some have ended");
  if (machine.threads_per_block < (warp_number() / 4 + 1) * 4 * kWarp)
    fail(FaultKind::divergent_collective, pc,
         "wgmma is for four warps, the first a multiple of 4; the block ends before the fourth");
  return async_block().products[warp_number()];
}

// ---- Registers -----------------------------------------------------------------------------------------------------

bool overlap(const Registers::Range& range, std::uintptr_t begin, std::uintptr_t end) {
  return range.begin < end && begin < range.end;
}

/// What wgmma is given must not have been touched since the warp's last wgmma_fence().
void check_untouched(const void* registers, unsigned count, const char* what, Pc pc) {
  const auto begin = reinterpret_cast<std::uintptr_t>(registers);
  for (const Registers::Range& range : machine.thread->registers->touched)
    if (overlap(range, begin, begin + 4 * std::uintptr_t{count}))
      fail(FaultKind::missing_wgmma_fence, pc, std::string(what) + " touched since the last wgmma_fence()", range.pc,
           current_thread());
}

// ---- Operands in shared memory -------------------------------------------------------------------------------------

/// What a matrix descriptor says. A row of an operand has what is summed over; a transposed one lies in memory by
/// columns, pieces of 8 rows of 16-bit elements.
struct Operand {
  std::uintptr_t start;
  unsigned across, down;  ///< its leading and its stride byte offset
  unsigned span;          ///< of the swizzle; 0: none
  bool transposed;

  Operand(std::uint64_t descriptor, bool is_transposed, Pc pc)
      : start(address_of_shared((descriptor & 0x3fff) << 4)),
        across(static_cast<unsigned>(descriptor >> 16 & 0x3fff) << 4),
        down(static_cast<unsigned>(descriptor >> 32 & 0x3fff) << 4),
        transposed(is_transposed) {
    const auto layout = static_cast<unsigned>(descriptor >> 62);
    if (layout == 3 || (descriptor >> 49 & 7) != 0)
      fail(FaultKind::invalid_operand, pc, "no descriptor that swizzled_descriptor() or plain_descriptor() makes");
    span = layout == 0 ? 0 : layout == 1 ? 128 : 64;
    if (span != 0 && !transposed && start % span + kStep > span)
      fail(FaultKind::misaligned, pc, "the 32 bytes of a swizzled row that a wgmma reads lie in two rows");
    if (span != 0 && transposed && start % span != 0)
      fail(FaultKind::misaligned, pc, "a transposed operand begins within a swizzled line");
  }

  /// Where 8 rows of a column lie, one after another. @param eight which of the operand's rows, / 8
  std::uintptr_t address_of_column(unsigned column, unsigned eight) const {
    if (span == 0)
      return start + std::uintptr_t{eight} * down + std::uintptr_t{column / 8} * across + column % 8 * kPiece;
    const unsigned in_span = span / kPiece;
    return swizzled(start + std::uintptr_t{eight / in_span} * across + eight % in_span * kPiece +
                        std::uintptr_t{column / 8} * down + column % 8 * span,
                    span);
  }

  /// Where 16 bytes of a row lie: `across` is between pieces of 8 rows of 16 bytes to the next columns, `down` to the
  /// next 8 rows. @param piece 0 or 1
  std::uintptr_t address(unsigned row, unsigned piece) const {
    if (span == 0) return start + std::uintptr_t{piece} * across + std::uintptr_t{row / 8} * down + row % 8 * kPiece;
    return swizzled(start + std::uintptr_t{row / 8} * down + row % 8 * span + piece * kPiece, span);
  }
};

/// Reads rows of 32 bytes, and leaves the reader's ticket on what it reads. Checks what this warp has not read since
/// it was written.
void read_rows(const Operand& operand, unsigned first_row, unsigned rows, std::int32_t ticket, std::uint8_t* to,
               Pc pc) {
  AsyncBlock& block = async_block();
  const unsigned warp = warp_number();
  AsyncRead read(pc);
  std::optional<WarpWide> warp_wide;
  const unsigned eights = rows / 8;  // of a transposed operand's column
  for (unsigned i = 0; i < 2 * rows; ++i) {
    const std::uintptr_t address = operand.transposed
                                       ? operand.address_of_column(i / eights, first_row / 8 + i % eights)
                                       : operand.address(first_row + i / 2, i % 2);
    if (address < machine.dynamic_begin || address + kPiece > machine.dynamic_end)
      check_async_operand(address, kPiece, kPiece, pc);
    const std::size_t piece = block.piece(address);
    std::int32_t& approved = block.approved[piece * block.warps + warp];
    if (approved != block.version[piece]) {
      if (!warp_wide) warp_wide.emplace();
      if (read.check(address, kPiece)) approved = block.version[piece];
    }
    block.ticket(piece, warp) = ticket;
    const auto* const from = reinterpret_cast<const std::uint8_t*>(address);
    if (!operand.transposed) {
      std::memcpy(to + i * std::size_t{kPiece}, from, kPiece);
      continue;
    }
    for (unsigned row = 0; row < 8; ++row)
      std::memcpy(to + (8 * (i % eights) + row) * std::size_t{kStep} + 2 * (i / eights), from + 2 * std::size_t{row},
                  2);
  }
}

/// The rows of A that the lanes of this warp hold.
void gather_rows(void** lanes, std::uint8_t* to) {
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const unsigned* const a = static_cast<const Wgmma*>(lanes[lane])->a_lanes;
    for (unsigned i = 0; i < 4; ++i)
      std::memcpy(to + (lane / 4 + i % 2 * 8) * kStep + lane % 4 * 4 + i / 2 * 16, &a[i], 4);
  }
}

// ---- Products ------------------------------------------------------------------------------------------------------

/// The accumulators of one row of a warp: of row 8 i + g, two neighbouring columns in each of the lanes 4 g to 4 g + 3.
class Row {
 public:
  Row(std::uint32_t* values, unsigned row, unsigned n)
      : first_(values + std::size_t{row % 8} * 4 * (n / 2) + row / 8 * 2), count_(n / 2) {}
  std::uint32_t& operator[](unsigned column) const {
    return first_[std::size_t{column % 8 / 2} * count_ + column / 8 * 4 + column % 2];
  }

 private:
  std::uint32_t* first_;
  std::size_t count_;
};

/// @param bytes `rows` rows of 32  @param numbers [k][pitch], by row
void decode(const std::uint8_t* bytes, bool are_signed, unsigned rows, double* numbers, unsigned pitch) {
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < kStep; ++k) {
      const std::uint8_t byte = bytes[row * std::size_t{kStep} + k];
      numbers[k * pitch + row] = are_signed ? static_cast<std::int8_t>(byte) : byte;
    }
}

/// sums = a row of A times B, of bytes. @param factors of the row, kRows apart
void multiply_row(const double* factors, const double* b, unsigned n, double* sums) {
  std::fill_n(sums, n, 0.0);
  for (unsigned k = 0; k < kStep; k += 4, factors += 4 * kRows, b += 4 * kPitch) {
    const double f0 = factors[0], f1 = factors[kRows], f2 = factors[2 * kRows], f3 = factors[3 * kRows];
    for (unsigned i = 0; i < n; ++i)
      sums[i] += f0 * b[i] + f1 * b[kPitch + i] + f2 * b[2 * kPitch + i] + f3 * b[3 * kPitch + i];
  }
}

/// Adds A B to the accumulators, or sets them: ints, which wrap as sums on a GPU do.
void multiply_bytes(const std::uint8_t* a, const std::uint8_t* b, const Wgmma& form, std::uint32_t* values) {
  static double of_a[kStep * kRows], of_b[kStep * kPitch], sums[kMaxColumns];
  decode(a, form.element == WgmmaElement::int8, kRows, of_a, kRows);
  decode(b, form.element_b == WgmmaElement::int8, form.n, of_b, kPitch);
  for (unsigned row = 0; row < kRows; ++row) {
    multiply_row(of_a + row, of_b, form.n, sums);
    const Row places(values, row, form.n);
    for (unsigned column = 0; column < form.n; ++column) {
      const auto sum = static_cast<unsigned>(static_cast<int>(sums[column]));
      places[column] = sum + (form.accumulate ? places[column] : 0);
    }
  }
}

/// Halves fit floats with room for the sums' units; the exponents of the other kinds need doubles.
template <class Kind>
using NumberOf = std::conditional_t<std::is_same_v<Kind, Fp16>, float, double>;

float power_of_two(int exponent, float) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << kFloatBits);
}
double power_of_two(int exponent, double) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// Rows of A or B as the sums below take them. @tparam Pitch of their numbers, by row
template <class Kind, unsigned Pitch>
struct Rows {
  using Number = NumberOf<Kind>;
  static constexpr int kProducts = Kind::kProducts;
  Number numbers[kProducts][Pitch];
  std::int16_t exponents[kProducts][Pitch];  ///< kOfZero for zero
  bool finite[Pitch];                        ///< else its numbers here are zeros

  void decode(const std::uint8_t* bytes, unsigned rows) {
    for (unsigned row = 0; row < rows; ++row) {
      typename Kind::Bits of_row[kProducts];
      std::memcpy(of_row, bytes + row * std::size_t{kStep}, kStep);
      finite[row] = std::all_of(of_row, of_row + kProducts, Kind::is_finite);
      for (int k = 0; k < kProducts; ++k) {
        const typename Kind::Bits bits = finite[row] ? of_row[k] : 0;
        const int exponent = Kind::exponent(bits);
        numbers[k][row] =
            static_cast<Number>(Kind::significand(bits)) * power_of_two(exponent - Kind::kFraction, Number{});
        exponents[k][row] = static_cast<std::int16_t>(Kind::is_zero(bits) ? kOfZero : exponent);
      }
    }
  }
  static constexpr int kOfZero = -1000;  ///< its sum with any other is smaller than those of numbers
};
template <class Kind>
using RowsOfA = Rows<Kind, kRows>;
template <class Kind>
using RowsOfB = Rows<Kind, kPitch>;

/// Raises each `largest` to the exponents of the row's products in the column.
template <class Kind>
void find_largest(const RowsOfA<Kind>& a, unsigned row, const RowsOfB<Kind>& b, unsigned n, std::int16_t* largest) {
  for (int k = 0; k < Kind::kProducts; ++k) {
    const std::int16_t of_a = a.exponents[k][row];
    const std::int16_t* const of_b = b.exponents[k];
    for (unsigned i = 0; i < n; ++i) largest[i] = std::max(largest[i], static_cast<std::int16_t>(of_a + of_b[i]));
  }
}

/// products = the row's sums, each product in its column's unit and cut. A product is exact, and so is a power of two
/// times it; a conversion to int cuts it as the hardware does.
template <class Kind>
void add_products(const RowsOfA<Kind>& a, unsigned row, const RowsOfB<Kind>& b, unsigned n,
                  const NumberOf<Kind>* scales, int* products) {
  std::fill_n(products, n, 0);
  for (int k = 0; k < Kind::kProducts; k += 4) {
    const auto f0 = a.numbers[k][row], f1 = a.numbers[k + 1][row], f2 = a.numbers[k + 2][row],
               f3 = a.numbers[k + 3][row];
    const auto *const b0 = b.numbers[k], *const b1 = b.numbers[k + 1], *const b2 = b.numbers[k + 2],
                      *const b3 = b.numbers[k + 3];
    for (unsigned i = 0; i < n; ++i)
      products[i] += static_cast<int>(f0 * b0[i] * scales[i]) + static_cast<int>(f1 * b1[i] * scales[i]) +
                     static_cast<int>(f2 * b2[i] * scales[i]) + static_cast<int>(f3 * b3[i] * scales[i]);
  }
}

/// The number without its bits behind the 24 that a float has.
double cut_to_24_bits(double sum) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(sum) & ~std::uint64_t{0x1fffffff});
}

/// A row of sums of finite numbers, each as tensor_core_sum() makes it.
template <class Kind>
class Sums {
 public:
  /// @param sums before, and after
  void add(const RowsOfA<Kind>& a, unsigned row, const RowsOfB<Kind>& b, unsigned n, float* sums) {
    for (unsigned i = 0; i < n; ++i)
      largest_[i] = static_cast<std::int16_t>(
          std::max(static_cast<int>(std::bit_cast<std::uint32_t>(sums[i]) >> kFloatBits & 0xff), 1) - 127);
    find_largest<Kind>(a, row, b, n, largest_);
    for (unsigned i = 0; i < n; ++i) {
      scales_[i] = power_of_two(kKeptBits - largest_[i], double{});
      before_[i] = static_cast<int>(double{sums[i]} * scales_[i]);
    }
    add_products<Kind>(a, row, b, n, scales_, products_);
    for (unsigned i = 0; i < n; ++i) {
      const double unit = power_of_two(largest_[i] - kKeptBits, double{});
      const double cut = cut_to_24_bits((static_cast<double>(products_[i]) + static_cast<double>(before_[i])) * unit);
      // Only a subnormal float, which has fewer bits, may have been rounded away from zero.
      const auto sum = static_cast<float>(cut);
      const bool rounded_up = std::fabs(double{sum}) > std::fabs(cut) && std::fabs(cut) < 1;
      sums[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(sum) - (rounded_up ? 1 : 0));
    }
  }

 private:
  std::int16_t largest_[kMaxColumns];
  double scales_[kMaxColumns];  ///< 1 / unit, of which before_ and products_ are
  int before_[kMaxColumns], products_[kMaxColumns];
};

/// The same in floats, for halves: it is faster.
template <>
class Sums<Fp16> {
 public:
  void add(const RowsOfA<Fp16>& a, unsigned row, const RowsOfB<Fp16>& b, unsigned n, float* sums) {
    align(a, row, b, n, sums);
    add_products<Fp16>(a, row, b, n, scales_, products_);
    for (unsigned i = 0; i < n; ++i) {
      const double sum = (static_cast<double>(products_[i]) + static_cast<double>(before_[i])) * double{units_[i]};
      // The smallest that is not zero is 2^-53, no subnormal float.
      sums[i] = static_cast<float>(cut_to_24_bits(sum)) + alone_[i];
    }
  }

 private:
  static constexpr int kLeastExponent = -28;  ///< of a product that is not zero
  static constexpr int kMostExponent = 30;

  /// Finds the terms' unit, the lowest bit that is kept, and how many of it the old sum is.
  void align(const RowsOfA<Fp16>& a, unsigned row, const RowsOfB<Fp16>& b, unsigned n, const float* sums) {
    std::fill_n(largest_, n, static_cast<std::int16_t>(kLeastExponent - 1));
    find_largest<Fp16>(a, row, b, n, largest_);
    // Products are below 2^(kMostExponent + 2): they are cut to nothing where the unit is larger.
    constexpr int kNothing = kMostExponent + 2 + kKeptBits;
    for (unsigned i = 0; i < n; ++i) {
      const auto bits = std::bit_cast<std::int32_t>(sums[i]);
      const int of_products = largest_[i], of_sum = (bits >> kFloatBits & 0xff) - 127;
      const int exponent = std::clamp(std::max(of_products, of_sum), kLeastExponent, kNothing);
      scales_[i] = power_of_two(kKeptBits - exponent, float{});
      units_[i] = power_of_two(exponent - kKeptBits, float{});
      // All ones where the old sum is all that there is; without branches, for many at once.
      const int alone = ((of_products - kLeastExponent) | (kNothing - 1 - of_sum)) >> 31;
      before_[i] = static_cast<int>(std::bit_cast<float>(bits & ~alone) * scales_[i]);
      alone_[i] = std::bit_cast<float>(bits & alone);
    }
  }

  std::int16_t largest_[kMaxColumns];                ///< exponent of a product; kLeastExponent - 1 where there is none
  float scales_[kMaxColumns], units_[kMaxColumns];   ///< 1 / unit, unit
  int before_[kMaxColumns], products_[kMaxColumns];  ///< in units
  float alone_[kMaxColumns];                         ///< the old sum where it is all that there is; else 0
};

/// Adds A B to sums in floats, or sets them. @param row_of what gives a row of sums, by its number; indexed by columns
template <class Kind, class RowOf>
void multiply_floats(const std::uint8_t* a, const std::uint8_t* b, unsigned n, bool accumulate, const RowOf& row_of) {
  static RowsOfA<Kind> of_a;
  static RowsOfB<Kind> of_b;
  static Sums<Kind> adder;
  of_a.decode(a, kRows);
  of_b.decode(b, n);
  for (unsigned row = 0; row < kRows; ++row) {
    const auto places = row_of(row);
    float before[kMaxColumns], sums[kMaxColumns];
    bool finite = of_a.finite[row];
    for (unsigned i = 0; i < n; ++i) {
      before[i] = accumulate ? std::bit_cast<float>(places[i]) : 0;
      sums[i] = Floats::is_finite(std::bit_cast<std::uint32_t>(before[i])) ? before[i] : 0;
      finite &= of_b.finite[i] && Floats::is_finite(std::bit_cast<std::uint32_t>(before[i]));
    }
    adder.add(of_a, row, of_b, n, sums);
    for (unsigned i = 0; i < n; ++i) places[i] = std::bit_cast<std::uint32_t>(sums[i]);
    if (finite) continue;
    for (unsigned i = 0; i < n; ++i) {
      if (of_a.finite[row] && of_b.finite[i] && Floats::is_finite(std::bit_cast<std::uint32_t>(before[i]))) continue;
      typename Kind::Bits row_of_a[Kind::kProducts], row_of_b[Kind::kProducts];
      std::memcpy(row_of_a, a + row * std::size_t{kStep}, kStep);
      std::memcpy(row_of_b, b + i * std::size_t{kStep}, kStep);
      places[i] = std::bit_cast<std::uint32_t>(tensor_core_sum<Kind>(row_of_a, row_of_b, before[i]));
    }
  }
}

/// The same to the accumulators.
template <class Kind>
void multiply_floats(const std::uint8_t* a, const std::uint8_t* b, const Wgmma& form, std::uint32_t* values) {
  multiply_floats<Kind>(a, b, form.n, form.accumulate, [&](unsigned row) { return Row(values, row, form.n); });
}

/// The same one sum at a time, by the plain model: of 8-bit floats, and where sums are halves.
template <class A, class B>
void multiply_plainly(const std::uint8_t* a, const std::uint8_t* b, const Wgmma& form, std::uint32_t* values) {
  const SumRules rules = sizeof(typename A::Bits) == 1 ? kRulesOfFp8 : SumRules{A::kProducts};
  for (unsigned row = 0; row < kRows; ++row) {
    typename A::Bits of_a[A::kProducts];
    std::memcpy(of_a, a + row * std::size_t{kStep}, kStep);
    for (unsigned column = 0; column < form.n; ++column) {
      typename B::Bits of_b[B::kProducts];
      std::memcpy(of_b, b + column * std::size_t{kStep}, kStep);
      if (form.half_sums) {
        // Of row 8 i + g the pair of two neighbouring columns, in each of the lanes 4 g to 4 g + 3.
        const std::size_t lane = row % 8 * 4 + column % 8 / 2;
        std::uint32_t& pair = values[lane * (form.n / 4) + column / 8 * 2 + row / 8];
        const unsigned shift = column % 2 * 16;
        const auto before = static_cast<std::uint16_t>(form.accumulate ? pair >> shift : 0);
        const std::uint16_t sum = tensor_core_half_sum<A, B>(of_a, of_b, before, rules, convladder::to_half_bits);
        pair = (pair & ~(0xffffu << shift)) | std::uint32_t{sum} << shift;
      } else {
        std::uint32_t& place = Row(values, row, form.n)[column];
        const float before = form.accumulate ? std::bit_cast<float>(place) : 0;
        place = std::bit_cast<std::uint32_t>(tensor_core_sum<A, B>(of_a, of_b, before, rules));
      }
    }
  }
}

/// Changes the sign of `rows` rows of 32 bytes.
void negate(std::uint8_t* bytes, WgmmaElement element, unsigned rows) {
  const unsigned each = element == WgmmaElement::tf32                                    ? 4
                        : element == WgmmaElement::fp16 || element == WgmmaElement::bf16 ? 2
                                                                                         : 1;
  for (unsigned i = each - 1; i < rows * kStep; i += each) bytes[i] ^= 0x80;
}

void multiply(const std::uint8_t* a, const std::uint8_t* b, const Wgmma& form, std::uint32_t* values) {
  switch (form.element) {
    case WgmmaElement::int8:
    case WgmmaElement::uint8:
      return multiply_bytes(a, b, form, values);
    case WgmmaElement::e4m3:
      return form.element_b == WgmmaElement::e4m3 ? multiply_plainly<E4m3, E4m3>(a, b, form, values)
                                                  : multiply_plainly<E4m3, E5m2>(a, b, form, values);
    case WgmmaElement::e5m2:
      return form.element_b == WgmmaElement::e4m3 ? multiply_plainly<E5m2, E4m3>(a, b, form, values)
                                                  : multiply_plainly<E5m2, E5m2>(a, b, form, values);
    case WgmmaElement::fp16:
      return form.half_sums ? multiply_plainly<Fp16, Fp16>(a, b, form, values)
                            : multiply_floats<Fp16>(a, b, form, values);
    case WgmmaElement::bf16:
      return multiply_floats<Bf16>(a, b, form, values);
    case WgmmaElement::tf32:
      return multiply_floats<Tf32>(a, b, form, values);
  }
}

/// The i-th wgmmas of a warpgroup's warps must be the same.
void check_agreement(const Wgmma& product, Pc pc) {
  Warpgroup& group = async_block().warpgroups[warp_number() / 4];
  unsigned& ahead = group.ahead[warp_number() % 4];
  const bool in_registers = product.a_lanes != nullptr;
  const Issued issued{product.n,       product.element,      product.element_b,    product.a,
                      product.b,       in_registers,         product.accumulate,   product.half_sums,
                      product.negated, product.transposed_a, product.transposed_b, pc};
  if (ahead == group.issued.size())
    group.issued.push_back(issued);
  else if (const Issued& other = group.issued[ahead]; !(other == issued))
    fail(FaultKind::divergent_collective, pc,
         "the warps of a warpgroup differ in the shape, operands or accumulation of a wgmma", other.pc,
         thread_id(machine.block_serial, warp_number() / 4 * 4 * kWarp));
  ++ahead;
  if (*std::min_element(group.ahead.begin(), group.ahead.end()) == 0) return;
  group.issued.pop_front();
  for (unsigned& each : group.ahead) --each;
  const unsigned first = warp_number() / 4 * 4 * kWarp;
  for (unsigned i = first; i < first + 4 * kWarp; ++i)
    if (Thread& thread = machine.threads[i]; thread.state == State::at_wgmma) thread.state = State::ready;
}

/// The accumulators, in flight from now on: those that are already, or what the lanes hold.
Accumulators& take_accumulators(void** lanes, WarpProducts& warp, Pc pc) {
  const Wgmma& first = *static_cast<const Wgmma*>(lanes[0]);
  const unsigned count = first.n / (first.half_sums ? 4 : 2);
  for (Accumulators& each : warp.in_flight)
    if (each.of_lanes[0] == first.d && each.count == count) return each;
  Accumulators taken{{}, count, std::vector<std::uint32_t>(std::size_t{kWarp} * count), 0, pc};
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    become(lane);
    void* const d = static_cast<const Wgmma*>(lanes[lane])->d;
    const auto begin = reinterpret_cast<std::uintptr_t>(d), end = begin + 4 * std::uintptr_t{count};
    auto& in_flight = machine.thread->registers->in_flight;
    for (const Registers::Range& range : in_flight)
      if (overlap(range, begin, end))
        fail(FaultKind::wgmma_in_flight, pc, "the accumulators overlap those of another wgmma in flight", range.pc,
             current_thread());
    check_untouched(d, count, "the accumulators were", pc);
    in_flight.push_back({begin, end, pc});
    taken.of_lanes[lane] = d;
    std::memcpy(&taken.values[std::size_t{lane} * count], d, 4 * std::size_t{count});
    std::fill_n(static_cast<std::uint32_t*>(d), count, kPoison);
  }
  return warp.in_flight.emplace_back(std::move(taken));
}

void issue_wgmma(void** lanes, unsigned mask) {
  WarpProducts& warp = products_of_warp(mask);
  const Wgmma& product = *static_cast<const Wgmma*>(lanes[0]);
  const Pc pc = machine.thread->wait_pc;
  for (unsigned lane = 1; lane < kWarp; ++lane) {
    const Wgmma& other = *static_cast<const Wgmma*>(lanes[lane]);
    if (other.a == product.a && other.b == product.b && other.accumulate == product.accumulate) continue;
    fail(FaultKind::divergent_collective, pc, "the lanes give different operands to a wgmma");
  }
  if (!warp.fenced) fail(FaultKind::missing_wgmma_fence, pc, "no wgmma_fence() before the warp's first wgmma");
  check_agreement(product, pc);
  if (product.a_lanes) {
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      become(lane);
      check_untouched(static_cast<const Wgmma*>(lanes[lane])->a_lanes, 4, "the registers of A were", pc);
    }
  }
  if (BlockEvent* event = record_event(Deed::wgmma, pc)) {
    event->lanes = ~0u;
    event->bytes = product.n;
  }
  Accumulators& sums = take_accumulators(lanes, warp, pc);
  sums.ticket = ++warp.issued;
  sums.pc = pc;
  Reader& reader = async_block().readers[warp_number()];
  reader.issued = warp.issued;
  reader.pc = pc;

  std::uint8_t a[kRows * kStep], b[kMaxColumns * kStep];
  if (product.a_lanes)
    gather_rows(lanes, a);
  else
    read_rows(Operand(product.a, product.transposed_a, pc), warp_number() % 4 * kRows, kRows, warp.issued, a, pc);
  read_rows(Operand(product.b, product.transposed_b, pc), 0, product.n, warp.issued, b, pc);
  if (product.negated) negate(a, product.element, kRows);
  multiply(a, b, product, sums.values.data());
}

// ---- Fence, commit, wait -------------------------------------------------------------------------------------------

void fence_registers(void**, unsigned mask) {
  products_of_warp(mask).fenced = true;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    become(lane);
    if (!machine.thread->registers) machine.thread->registers = std::make_unique<Registers>();
    machine.thread->registers->touched.clear();
  }
}

void commit_group(void**, unsigned mask) {
  WarpProducts& warp = products_of_warp(mask);
  warp.committed = warp.issued;
  warp.groups.push_back(warp.issued);
}

/// Gives the lanes their results.
void hand_out(const Accumulators& sums, Pc pc) {
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    become(lane);
    auto* const d = static_cast<std::uint32_t*>(sums.of_lanes[lane]);
    if (!std::all_of(d, d + sums.count, [](std::uint32_t word) { return word == kPoison; }))
      fail(FaultKind::wgmma_in_flight, pc, "the accumulators were changed between a wgmma and its wait", sums.pc,
           current_thread());
    std::memcpy(d, &sums.values[std::size_t{lane} * sums.count], 4 * std::size_t{sums.count});
    std::erase_if(machine.thread->registers->in_flight,
                  [&](const Registers::Range& range) { return range.begin == reinterpret_cast<std::uintptr_t>(d); });
  }
}

/// Of what a wait for all groups but the newest `pending` ones covers; 0 for nothing new.
std::int32_t last_ticket(const WarpProducts& warp, unsigned pending) {
  return warp.groups.size() > pending ? warp.groups[warp.groups.size() - pending - 1] : 0;
}

void wait_for_groups(void** lanes, unsigned mask) {
  WarpProducts& warp = products_of_warp(mask);
  const Pc pc = machine.thread->wait_pc;
  const unsigned pending = *static_cast<const unsigned*>(lanes[0]);
  if (pending == 0 && warp.issued != warp.committed)
    fail(FaultKind::wgmma_in_flight, pc, "waits for wgmmas that no wgmma_commit() has closed");
  const std::int32_t done = last_ticket(warp, pending);
  while (warp.groups.size() > pending) warp.groups.pop_front();
  // One operation of the warpgroup is over, and so are the reads of its other warps.
  AsyncBlock& block = async_block();
  const unsigned own = warp_number();
  for (unsigned number = own / 4 * 4; number < own / 4 * 4 + 4; ++number) {
    Reader& reader = block.readers[number];
    reader.done = std::max(reader.done, done);
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      std::int32_t& known = block.views[own * kWarp + lane].reads(number);
      known = std::max(known, done);
    }
  }
  for (const Accumulators& sums : warp.in_flight)
    if (sums.ticket <= done) hand_out(sums, pc);
  std::erase_if(warp.in_flight, [&](const Accumulators& sums) { return sums.ticket <= done; });
}

/// Waits until all four warps have come to the warp's wgmmas up to this one: before that, none can be complete.
void wait_for_warpgroup(std::int32_t ticket, int line, Pc pc) {
  const unsigned warp = warp_number();
  const AsyncBlock& block = async_block();
  const unsigned& ahead = block.warpgroups[warp / 4].ahead[warp % 4];
  const std::int32_t& issued = block.products[warp].issued;
  while (ticket > issued - static_cast<std::int32_t>(ahead)) {
    machine.thread->wait_pc = pc;
    machine.thread->line = line;
    yield_as(State::at_wgmma);
  }
}

}  // namespace

void touch_registers(std::uintptr_t address, unsigned bytes, Pc pc) {
  Registers& registers = *machine.thread->registers;
  const std::uintptr_t end = address + bytes;
  for (const Registers::Range& range : registers.in_flight)
    if (overlap(range, address, end))
      fail(FaultKind::wgmma_in_flight, pc, "the accumulators of a wgmma that was not waited for", range.pc,
           current_thread());
  // Most accesses follow each other through an array.
  constexpr std::size_t kNewest = 4, kMost = 1024;
  auto& touched = registers.touched;
  for (std::size_t i = touched.size(); i-- > 0 && i + kNewest >= touched.size();) {
    Registers::Range& range = touched[i];
    if (address > range.end || end < range.begin) continue;
    range.begin = std::min(range.begin, address);
    range.end = std::max(range.end, end);
    return;
  }
  if (touched.size() < kMost) touched.push_back({address, end, pc});
}

namespace {

/// What nvcc gives each thread of a kernel with setmaxnreg at the start, if a multiprocessor has one block of it: the
/// register file, shared out among whole warpgroups, in pieces of eight.
unsigned registers_at_start() {
  const unsigned groups = (machine.threads_per_block + 4 * kWarp - 1) / (4 * kWarp);
  return std::min(65536 / (groups * 4 * kWarp) / 8 * 8, 256U);
}

/// Whether the warps' increases can all be granted: every fourth warp shares a part of the multiprocessor, and a
/// quarter of its registers, with this one.
bool check_registers() {
  const AsyncBlock& block = async_block();
  for (unsigned part = 0; part < 4; ++part) {
    unsigned asked = 0, warps = 0;
    for (unsigned warp = part; warp < block.registers.size(); warp += 4, ++warps) asked += block.registers[warp];
    if (asked <= registers_at_start() * warps) continue;
    report(FaultKind::invalid_operand, block.registers_pc,
           "every fourth warp from " + std::to_string(part) + " on: " + std::to_string(warps) + " with " +
               std::to_string(asked) + " registers a thread in all; they were started with " +
               std::to_string(registers_at_start()) + " each, so on a GPU they wait forever");
    return false;
  }
  return true;
}

}  // namespace

void set_max_registers(unsigned registers, bool increase) {
  const Pc pc = SIMT_PC;
  require_instruction("setmaxnreg", Generation::hopper_alone, pc);
  const Unwatched unwatched;
  AsyncBlock& block = async_block();
  if (block.registers.empty()) block.registers.assign(block.warps, registers_at_start());
  unsigned& of_warp = block.registers[machine.thread_number / kWarp];
  if (increase ? registers < of_warp : registers > of_warp)
    fail(FaultKind::invalid_operand, pc,
         std::to_string(registers) + " registers are no " + (increase ? "increase" : "decrease") + ": the thread has " +
             std::to_string(of_warp));
  of_warp = registers;
  if (increase) block.registers_pc = pc;
}

void report_uneven_wgmma(const Warpgroup& group, const std::string& waiting) {
  const auto most = std::max_element(group.ahead.begin(), group.ahead.end()) - group.ahead.begin();
  machine.thread_number = static_cast<unsigned>((&group - async_block().warpgroups.data()) * 4 + most) * kWarp;
  report(FaultKind::divergent_collective, group.issued.front().pc,
         "not all four warps of the warpgroup came to this wgmma" + waiting);
  machine.stopped = true;
}

void end_async_block() {
  if (!check_registers()) {
    machine.stopped = true;
    return;
  }
  const auto& groups = async_block().warpgroups;
  const auto uneven =
      std::find_if(groups.begin(), groups.end(), [](const Warpgroup& group) { return !group.issued.empty(); });
  if (uneven != groups.end()) report_uneven_wgmma(*uneven, "");
}

std::uint64_t matrix_descriptor(const void* shared, unsigned span, unsigned leading_bytes, unsigned stride_bytes) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  const auto address = reinterpret_cast<std::uintptr_t>(shared);
  check_async_operand(address, 0, kPiece, pc);
  const std::uint64_t layout = span == 0 ? 0 : span == 128 ? 1 : 2;
  return shared_address_of(shared) >> 4 | std::uint64_t{leading_bytes >> 4} << 16 |
         std::uint64_t{stride_bytes >> 4} << 32 | layout << 62;
}

void wgmma(const Wgmma& product, int line) {
  const Pc pc = SIMT_PC;
  require_instruction("wgmma", Generation::hopper_alone, pc);
  const Unwatched unwatched;
  Wgmma copy = product;
  wait_at_collective(~0u, &copy, issue_wgmma, Orders::nothing, line, pc);
}

void wgmma_fence(int line) {
  const Pc pc = SIMT_PC;
  wait_at_collective(~0u, nullptr, fence_registers, Orders::nothing, line, pc);
}

void wgmma_commit(int line) {
  const Pc pc = SIMT_PC;
  wait_at_collective(~0u, nullptr, commit_group, Orders::nothing, line, pc);
}

void wgmma_wait(unsigned pending, int line) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  wait_for_warpgroup(last_ticket(async_block().products[warp_number()], pending), line, pc);
  wait_at_collective(~0u, &pending, wait_for_groups, Orders::nothing, line, pc);
}

void add_products(bool are_bf16, const void* a, const void* b, unsigned columns, std::uint32_t* sums) {
  const auto row_of = [=](unsigned row) { return sums + std::size_t{row} * columns; };
  const auto *const of_a = static_cast<const std::uint8_t*>(a), *const of_b = static_cast<const std::uint8_t*>(b);
  if (are_bf16)
    multiply_floats<Bf16>(of_a, of_b, columns, true, row_of);
  else
    multiply_floats<Fp16>(of_a, of_b, columns, true, row_of);
}

}  // namespace simt

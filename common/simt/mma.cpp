// ldmatrix, stmatrix and mma.sync. Each is a collective: when all 32 lanes have arrived, the last part runs once for
// all of them.

#include "common/simt/mma.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "common/simt/tensor_core.hpp"
#include "common/simt/warp.hpp"
#include "common/stage/half_convert.hpp"

namespace simt {
namespace {

// ---- Memory --------------------------------------------------------------------------------------------------------

constexpr unsigned kSide = 8;       ///< of a matrix
constexpr unsigned kRowBytes = 16;  ///< of a matrix
constexpr unsigned kMatrices = 4;   ///< at most, of an instruction
using Matrix = std::uint16_t[kSide][kSide];

/// What a lane brings to a load or store.
struct Transfer {
  std::uintptr_t row;
  unsigned* registers;  ///< of a store they are only read
  unsigned count;
  bool transposed;
  WarpAccess access;

  bool same_instruction(const Transfer& other) const { return count == other.count && transposed == other.transposed; }
};

/// The two halves of each matrix that a lane holds.
template <class MatrixOrConst>
std::array<MatrixOrConst*, 2> pair_of(MatrixOrConst (&matrix)[kSide][kSide], unsigned lane, bool transposed) {
  const unsigned group = lane / 4, pair = lane % 4 * 2;
  if (transposed) return {&matrix[pair][group], &matrix[pair + 1][group]};
  return {&matrix[group][pair], &matrix[group][pair + 1]};
}

/// Checks the accesses to the rows, each by the warp as a whole, and leaves their request.
void access_rows(const std::array<std::uintptr_t, kWarp>& rows, const Transfer& transfer) {
  const WarpWide warp_wide;
  for (unsigned lane = 0; lane < kSide * transfer.count; ++lane) {
    become(lane);
    if (rows[lane] % kRowBytes != 0)
      fail(FaultKind::misaligned, transfer.access.pc, "a row of a matrix must begin at a multiple of 16 bytes");
    if (check_access(rows[lane], kRowBytes, transfer.access.kind, transfer.access.pc) != Space::shared)
      fail(FaultKind::out_of_bounds, transfer.access.pc, "the rows of a matrix must lie in shared memory");
  }
  leave_request(transfer.access, Space::shared, kRowBytes, rows);
}

void transfer_matrices(void** lanes, unsigned mask) {
  const Transfer& transfer = *static_cast<Transfer*>(lanes[__builtin_ctz(mask)]);
  check_convergence(mask, transfer.access.pc);
  std::array<std::uintptr_t, kWarp> rows{};
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const Transfer& of_lane = *static_cast<Transfer*>(lanes[lane]);
    become(lane);
    if (!transfer.same_instruction(of_lane))
      fail(FaultKind::divergent_collective, transfer.access.pc, "the lanes are at different instructions");
    if (lane < kSide * transfer.count) rows[lane] = of_lane.row;
  }
  access_rows(rows, transfer);

  Matrix matrices[kMatrices];
  const bool load = transfer.access.kind == Kind::load;
  for (unsigned i = 0; load && i < kSide * transfer.count; ++i)
    std::memcpy(matrices[i / kSide][i % kSide], reinterpret_cast<const void*>(rows[i]), kRowBytes);
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    unsigned* const registers = static_cast<Transfer*>(lanes[lane])->registers;
    for (unsigned i = 0; i < transfer.count; ++i) {
      const auto [low, high] = pair_of(matrices[i], lane, transfer.transposed);
      if (load) {
        registers[i] = *low | unsigned{*high} << 16;
      } else {
        *low = static_cast<std::uint16_t>(registers[i]);
        *high = static_cast<std::uint16_t>(registers[i] >> 16);
      }
    }
  }
  for (unsigned i = 0; !load && i < kSide * transfer.count; ++i)
    std::memcpy(reinterpret_cast<void*>(rows[i]), matrices[i / kSide][i % kSide], kRowBytes);
}

// ---- Products ------------------------------------------------------------------------------------------------------

constexpr unsigned kRows = 16, kColumns = 8, kWords = 8;  ///< of a, of b, and along the sum

/// What a lane brings to a product.
struct Product {
  void* d;
  const unsigned *a, *b;
  Pc pc;
};

/// The numbers of a word: halves, or signed bytes as unsigned numbers, which wrap as the sums of a GPU do.
void unpack(unsigned word, double (&numbers)[2]) {
  for (unsigned i = 0; i < 2; ++i) numbers[i] = convladder::from_half_bits(static_cast<std::uint16_t>(word >> 16 * i));
}
void unpack(unsigned word, unsigned (&numbers)[4]) {
  for (unsigned i = 0; i < 4; ++i)
    numbers[i] = static_cast<unsigned>(static_cast<int>(static_cast<signed char>(word >> 8 * i)));
}

/// Sums of products of halves: exact in double but for the rarest numbers, and rounded once at the end.
/// @tparam T what is computed in: double for halves, unsigned for bytes  @tparam Sum float, or int
template <class T, class Sum>
void multiply(void** lanes, unsigned mask) {
  constexpr unsigned kInWord = std::is_same_v<T, double> ? 2 : 4, kDepth = kWords * kInWord;
  check_convergence(mask, static_cast<const Product*>(lanes[__builtin_ctz(mask)])->pc);
  T a[kRows][kDepth], b[kDepth][kColumns], sums[kRows][kColumns];
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const Product& product = *static_cast<const Product*>(lanes[lane]);
    const unsigned group = lane / 4, member = lane % 4;
    T numbers[kInWord];
    for (unsigned i = 0; i < 4; ++i) {
      unpack(product.a[i], numbers);
      for (unsigned j = 0; j < kInWord; ++j) a[group + 8 * (i % 2)][(member + 4 * (i / 2)) * kInWord + j] = numbers[j];
    }
    for (unsigned i = 0; i < 2; ++i) {
      unpack(product.b[i], numbers);
      for (unsigned j = 0; j < kInWord; ++j) b[(member + 4 * i) * kInWord + j][group] = numbers[j];
    }
    for (unsigned i = 0; i < 4; ++i)
      sums[group + 8 * (i / 2)][2 * member + i % 2] = static_cast<T>(static_cast<const Sum*>(product.d)[i]);
  }
  for (unsigned row = 0; row < kRows; ++row)
    for (unsigned k = 0; k < kDepth; ++k)
      for (unsigned column = 0; column < kColumns; ++column) sums[row][column] += a[row][k] * b[k][column];
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    auto* const d = static_cast<Sum*>(static_cast<const Product*>(lanes[lane])->d);
    for (unsigned i = 0; i < 4; ++i) d[i] = static_cast<Sum>(sums[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
  }
}

/// What a lane brings to a product of any element.
struct GeneralProduct {
  MmaForm form;
  Product product;
};

/// An 8-bit float.
template <class Kind>
double number_of(std::uint8_t bits) {
  if (Kind::is_nan(bits)) return NAN;
  const double size = Kind::is_finite(bits)
                          ? std::ldexp(std::abs(Kind::significand(bits)), Kind::exponent(bits) - Kind::kFraction)
                          : INFINITY;
  return Kind::is_negative(bits) ? -size : size;
}

/// The numbers of a word: 1, 2 or 4.
unsigned unpack(unsigned word, MmaElement element, double* numbers) {
  switch (element) {
    case MmaElement::f16:
      for (unsigned i = 0; i < 2; ++i)
        numbers[i] = convladder::from_half_bits(static_cast<std::uint16_t>(word >> 16 * i));
      return 2;
    case MmaElement::bf16:
      for (unsigned i = 0; i < 2; ++i) numbers[i] = std::bit_cast<float>(word >> 16 * i << 16);
      return 2;
    case MmaElement::tf32:
      numbers[0] = std::bit_cast<float>(word & 0xffffe000u);
      return 1;
    case MmaElement::s8:
      for (unsigned i = 0; i < 4; ++i) numbers[i] = static_cast<signed char>(word >> 8 * i);
      return 4;
    case MmaElement::u8:
      for (unsigned i = 0; i < 4; ++i) numbers[i] = static_cast<unsigned char>(word >> 8 * i);
      return 4;
    case MmaElement::e4m3:
      for (unsigned i = 0; i < 4; ++i) numbers[i] = number_of<E4m3>(static_cast<std::uint8_t>(word >> 8 * i));
      return 4;
    case MmaElement::e5m2:
      for (unsigned i = 0; i < 4; ++i) numbers[i] = number_of<E5m2>(static_cast<std::uint8_t>(word >> 8 * i));
      return 4;
  }
  return 0;
}

void multiply_any(void** lanes, unsigned mask) {
  const GeneralProduct& first = *static_cast<const GeneralProduct*>(lanes[__builtin_ctz(mask)]);
  check_convergence(mask, first.product.pc);
  const MmaForm form = first.form;
  const bool ints = form.a == MmaElement::s8 || form.a == MmaElement::u8;
  const unsigned halves = form.row_bytes / 16;  // of a row: groups of four words
  double a[kRows][4 * kWords] = {}, b[4 * kWords][kColumns] = {}, numbers[4];
  unsigned depth = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const Product& product = static_cast<const GeneralProduct*>(lanes[lane])->product;
    const unsigned group = lane / 4, member = lane % 4;
    for (unsigned i = 0; i < 2 * halves; ++i) {
      const unsigned count = unpack(product.a[i], form.a, numbers);
      depth = 4 * halves * count;
      for (unsigned j = 0; j < count; ++j) a[group + 8 * (i % 2)][(member + 4 * (i / 2)) * count + j] = numbers[j];
    }
    for (unsigned i = 0; i < halves; ++i) {
      const unsigned count = unpack(product.b[i], form.b, numbers);
      for (unsigned j = 0; j < count; ++j) b[(member + 4 * i) * count + j][group] = numbers[j];
    }
  }
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    auto* const d = static_cast<std::uint32_t*>(static_cast<const GeneralProduct*>(lanes[lane])->product.d);
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
      double sum = 0;
      for (unsigned k = 0; k < depth; ++k) sum += a[row][k] * b[k][column];
      if (form.half_sums) {
        const unsigned shift = 16 * (i % 2);
        const double before = convladder::from_half_bits(static_cast<std::uint16_t>(d[i / 2] >> shift));
        d[i / 2] = (d[i / 2] & ~(0xffffu << shift)) | std::uint32_t{convladder::to_half_bits(sum + before)} << shift;
      } else if (ints) {
        d[i] += static_cast<unsigned>(static_cast<int>(sum));
      } else {
        d[i] = std::bit_cast<std::uint32_t>(static_cast<float>(sum + double{std::bit_cast<float>(d[i])}));
      }
    }
  }
}

}  // namespace

void load_matrices(unsigned* d, const void* row, unsigned count, bool transposed, int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  require_instruction("ldmatrix", Generation::turing, pc);
  Transfer transfer{reinterpret_cast<std::uintptr_t>(row),
                    d,
                    count,
                    transposed,
                    {Kind::load, pc, depth_of(__builtin_frame_address(0))}};
  wait_at_collective(~0u, &transfer, transfer_matrices, Orders::nothing, line, pc);
}

void store_matrices(void* row, const unsigned* values, unsigned count, bool transposed, int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  require_instruction("stmatrix", Generation::hopper, pc);
  Transfer transfer{reinterpret_cast<std::uintptr_t>(row),
                    const_cast<unsigned*>(values),
                    count,
                    transposed,
                    {Kind::store, pc, depth_of(__builtin_frame_address(0))}};
  wait_at_collective(~0u, &transfer, transfer_matrices, Orders::nothing, line, pc);
}

void multiply_halves(float* d, const unsigned* a, const unsigned* b, int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  require_instruction("mma.sync of this shape", Generation::ampere, pc);
  Product product{d, a, b, pc};
  wait_at_collective(~0u, &product, multiply<double, float>, Orders::nothing, line, pc);
}

void multiply_matrices(const MmaForm& form, unsigned* d, const unsigned* a, const unsigned* b, int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  require_instruction("mma.sync of this shape", Generation::ampere, pc);
  GeneralProduct product{form, {d, a, b, pc}};
  wait_at_collective(~0u, &product, multiply_any, Orders::nothing, line, pc);
}

void multiply_bytes(int* d, const unsigned* a, const unsigned* b, int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  require_instruction("mma.sync of this shape", Generation::ampere, pc);
  Product product{d, a, b, pc};
  wait_at_collective(~0u, &product, multiply<unsigned, int>, Orders::nothing, line, pc);
}

}  // namespace simt

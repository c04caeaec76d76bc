// Matrix fragments of a warp. Each function is a collective: when all 32 lanes have arrived, the last part runs once
// for all of them. Loads and stores leave the requests in the lanes' traces that nvcc makes of them for sm_80 and
// sm_90; the elements lie in the lanes as in mma.m16n8k16, which is what wmma is made of there.

#include "common/simt/wmma.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "common/simt/warp.hpp"
#include "common/stage/half_convert.hpp"

namespace simt {
namespace {

// ---- Elements and lanes --------------------------------------------------------------------------------------------

unsigned bytes_of(MatrixType type) {
  switch (type) {
    case MatrixType::fp16:
    case MatrixType::bf16:
      return 2;
    case MatrixType::fp64:
      return 8;
    case MatrixType::int8:
    case MatrixType::uint8:
      return 1;
    default:
      return 4;
  }
}

bool has_16_bits(MatrixType type) { return type == MatrixType::fp16 || type == MatrixType::bf16; }

unsigned rows_of(MatrixForm form) { return form.use == MatrixUse::b ? sum_length(form.type) : form.m; }
unsigned columns_of(MatrixForm form) { return form.use == MatrixUse::a ? sum_length(form.type) : form.n; }

struct Place {
  unsigned row, column;
};

/// Of a factor with `width` rows of a or columns of b: which of these, and where along the sum.
Place place_in_factor(unsigned lane, unsigned i, unsigned width, bool halves, bool is_b) {
  const unsigned group = lane / 4, member = lane % 4;
  if (!halves) return {group + 8 * (i / 4), 4 * member + i % 4};
  const unsigned pair = i / 2, within = 2 * member + i % 2;
  if (width == 8) return {group, within + 8 * (pair % 2)};
  if (width == 16 && is_b) return {group + 8 * (pair / 2), within + 8 * (pair % 2)};
  return {group + 8 * (pair % 2) + 16 * (pair / 4), within + 8 * (pair / 2 % 2)};
}

/// Where in its matrix a lane's element i lies.
Place place_of(MatrixForm form, unsigned lane, unsigned i) {
  if (form.type == MatrixType::fp64 || form.type == MatrixType::tf32) {
    const unsigned group = lane / 4, member = lane % 4;
    if (form.use == MatrixUse::accumulator) return {group, 2 * member + i};
    if (form.use == MatrixUse::a) return {group + 8 * (i % 2), member + 4 * (i / 2)};
    return {member + 4 * (i % 2), group + 8 * (i / 2)};
  }
  if (form.use == MatrixUse::accumulator) {
    const unsigned group = lane / 4, within = 2 * (lane % 4) + i % 2, pair = i / 2;
    if (form.m == 32) return {group + 8 * pair, within};
    if (form.m == 8) return {within, group + 8 * pair};  // what is computed is the transposed product
    return {group + 8 * (pair % 2), within + 8 * (pair / 2)};
  }
  const bool is_b = form.use == MatrixUse::b;
  const Place place = place_in_factor(lane, i, is_b ? form.n : form.m, has_16_bits(form.type), is_b);
  return is_b ? Place{place.column, place.row} : place;
}

/// Elements that a lane holds once.
unsigned distinct_elements(MatrixForm form) { return rows_of(form) * columns_of(form) / kWarp; }

/// Where in its matrix, row by row, each element of each lane lies.
struct Places {
  std::array<std::array<std::uint16_t, 16>, kWarp> index;
  std::array<std::array<std::uint8_t, 16>, kWarp> row, column;
  unsigned elements;

  explicit Places(MatrixForm form) : elements(distinct_elements(form)) {
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      for (unsigned i = 0; i < elements; ++i) {
        const Place place = place_of(form, lane, i);
        index[lane][i] = static_cast<std::uint16_t>(place.row * columns_of(form) + place.column);
        row[lane][i] = static_cast<std::uint8_t>(place.row);
        column[lane][i] = static_cast<std::uint8_t>(place.column);
      }
    }
  }
};

const Places& places(MatrixForm form) {
  if (form.type == MatrixType::fp64) {
    static const std::array<Places, 3> of_double{Places({MatrixUse::a, MatrixType::fp64, 8, 8}),
                                                 Places({MatrixUse::b, MatrixType::fp64, 8, 8}),
                                                 Places({MatrixUse::accumulator, MatrixType::fp64, 8, 8})};
    return of_double[static_cast<std::size_t>(form.use)];
  }
  if (form.type == MatrixType::tf32) {
    static const std::array<Places, 2> of_tf32{Places({MatrixUse::a, MatrixType::tf32, 16, 16}),
                                               Places({MatrixUse::b, MatrixType::tf32, 16, 16})};
    return of_tf32[static_cast<std::size_t>(form.use)];
  }
  const auto table = [](MatrixUse use, MatrixType type) {
    return std::array<Places, 3>{Places({use, type, 8, 32}), Places({use, type, 16, 16}), Places({use, type, 32, 8})};
  };
  static const std::array<std::array<Places, 3>, 5> tables{
      table(MatrixUse::a, MatrixType::fp16), table(MatrixUse::b, MatrixType::fp16),
      table(MatrixUse::a, MatrixType::int8), table(MatrixUse::b, MatrixType::int8),
      table(MatrixUse::accumulator, MatrixType::fp32)};
  const unsigned kind =
      form.use == MatrixUse::accumulator ? 4 : static_cast<unsigned>(form.use) + (has_16_bits(form.type) ? 0 : 2);
  return tables[kind][form.m / 16];
}

// ---- Memory --------------------------------------------------------------------------------------------------------

/// What a lane brings to a load or store.
struct Transfer {
  std::uintptr_t matrix;
  void* elements;
  unsigned stride;
  bool row_major;
  MatrixForm form;
  WarpAccess access;

  bool same_matrix(const Transfer& other) const {
    return matrix == other.matrix && stride == other.stride && row_major == other.row_major;
  }
  /// Rows, or columns, whose elements are neighbours in memory; and these.
  unsigned lines() const { return row_major ? rows_of(form) : columns_of(form); }
  unsigned line_bytes() const { return (row_major ? columns_of(form) : rows_of(form)) * bytes_of(form.type); }
  std::uintptr_t address(unsigned line, unsigned byte) const {
    return matrix + std::uintptr_t{line} * stride * bytes_of(form.type) + byte;
  }
  std::uintptr_t address_of(const Places& where, unsigned lane, unsigned i) const {
    const unsigned row = where.row[lane][i], column = where.column[lane][i];
    return row_major ? address(row, column * bytes_of(form.type)) : address(column, row * bytes_of(form.type));
  }
};

/// Blocks of eight lines of 16 bytes, each line the 4-byte pieces of four lanes; from shared memory by ldmatrix, where
/// each lane gives a whole line, for up to `together` blocks at once.
void leave_block_requests(const Transfer& transfer, Space space, unsigned together) {
  const unsigned blocks_across = transfer.line_bytes() / 16, blocks = transfer.lines() / 8 * blocks_across;
  const auto line_of_block = [&](unsigned block, unsigned line) {
    return transfer.address(block / blocks_across * 8 + line, block % blocks_across * 16);
  };
  if (space == Space::shared && together > 0) {
    for (unsigned first = 0; first < blocks; first += together) {
      std::array<std::uintptr_t, kWarp> addresses{};
      for (unsigned block = first; block < std::min(blocks, first + together); ++block)
        for (unsigned line = 0; line < 8; ++line) addresses[8 * (block - first) + line] = line_of_block(block, line);
      leave_request(transfer.access, space, 16, addresses);
    }
    return;
  }
  for (unsigned block = 0; block < blocks; ++block) {
    std::array<std::uintptr_t, kWarp> addresses;
    for (unsigned lane = 0; lane < kWarp; ++lane) addresses[lane] = line_of_block(block, lane / 4) + lane % 4 * 4;
    leave_request(transfer.access, space, 4, addresses);
  }
}

/// Each lane's own elements, `count` neighbours at once.
void leave_element_requests(const Transfer& transfer, Space space, unsigned count) {
  const Places& where = places(transfer.form);
  for (unsigned i = 0; i < where.elements; i += count) {
    std::array<std::uintptr_t, kWarp> addresses;
    for (unsigned lane = 0; lane < kWarp; ++lane) addresses[lane] = transfer.address_of(where, lane, i);
    leave_request(transfer.access, space, count * bytes_of(transfer.form.type), addresses);
  }
}

void leave_requests(const Transfer& transfer, Space space) {
  const MatrixForm form = transfer.form;
  const bool accumulator = form.use == MatrixUse::accumulator;
  if (form.type == MatrixType::fp64 || form.type == MatrixType::tf32) return leave_element_requests(transfer, space, 1);
  if (has_16_bits(form.type)) return leave_block_requests(transfer, space, accumulator ? 0 : 4);
  if (accumulator) return leave_element_requests(transfer, space, transfer.row_major == (form.m != 8) ? 2 : 1);
  if (transfer.row_major == (form.use == MatrixUse::a)) return leave_block_requests(transfer, space, 2);
  leave_element_requests(transfer, space, 1);
}

/// Between the memory and the lanes' elements. @param lanes their transfers
void move_elements(const Transfer& transfer, void** lanes) {
  const Places& where = places(transfer.form);
  const unsigned bytes = bytes_of(transfer.form.type);
  const auto elements_of_lane = static_cast<unsigned>(nvcuda::wmma::elements_of_lane(transfer.form));
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    auto* element = static_cast<char*>(static_cast<Transfer*>(lanes[lane])->elements);
    for (unsigned i = 0; i < elements_of_lane; ++i, element += bytes) {
      auto* const memory = reinterpret_cast<void*>(transfer.address_of(where, lane, i % where.elements));
      const auto move = [&](auto size) {
        transfer.access.kind == Kind::load ? std::memcpy(element, memory, size) : std::memcpy(memory, element, size);
      };
      if (bytes == 1)
        move(std::integral_constant<std::size_t, 1>());
      else if (bytes == 2)
        move(std::integral_constant<std::size_t, 2>());
      else if (bytes == 8)
        move(std::integral_constant<std::size_t, 8>());
      else
        move(std::integral_constant<std::size_t, 4>());
    }
  }
}

/// Checks the warp's access. @return where the matrix lies
Space check_lines(const Transfer& transfer) {
  const WarpWide warp_wide;
  Space space = Space::global;
  const unsigned lines = transfer.lines();
  for (unsigned line = 0; line < lines; ++line) {
    become(line);
    if (const auto found =
            check_access(transfer.address(line, 0), transfer.line_bytes(), transfer.access.kind, transfer.access.pc))
      space = *found;
  }
  return space;
}

void transfer_matrix(void** lanes, unsigned mask) {
  const Transfer& transfer = *static_cast<Transfer*>(lanes[__builtin_ctz(mask)]);
  check_convergence(mask, transfer.access.pc);
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    become(lane);
    if (!transfer.same_matrix(*static_cast<Transfer*>(lanes[lane])))
      fail(FaultKind::divergent_collective, transfer.access.pc, "the lanes give different matrices");
  }
  become(0);
  if (transfer.matrix % 32 != 0)
    fail(FaultKind::misaligned, transfer.access.pc, "a matrix must begin at a multiple of 32 bytes");
  if (transfer.stride * bytes_of(transfer.form.type) % 16 != 0)
    fail(FaultKind::misaligned, transfer.access.pc, "the stride of a matrix must be a multiple of 16 bytes");

  const Space space = check_lines(transfer);
  leave_requests(transfer, space);
  move_elements(transfer, lanes);
}

// ---- Products ------------------------------------------------------------------------------------------------------

/// Sums of products of halves: exact in double but for the rarest numbers, and rounded once at the end.
template <class T, unsigned M, unsigned N, unsigned K>
struct Matrices {
  T a[M][K], b[K][N], sums[M][N];

  void multiply() {
    for (unsigned row = 0; row < M; ++row)
      for (unsigned k = 0; k < K; ++k)
        for (unsigned column = 0; column < N; ++column) sums[row][column] += a[row][k] * b[k][column];
  }
};

template <class T>
T read_element(MatrixType type, const void* elements, unsigned i) {
  switch (type) {
    case MatrixType::fp16:
      return static_cast<T>(convladder::from_half_bits(static_cast<const std::uint16_t*>(elements)[i]));
    case MatrixType::fp32:
      return static_cast<T>(static_cast<const float*>(elements)[i]);
    case MatrixType::int8:
      return static_cast<T>(static_cast<const signed char*>(elements)[i]);
    case MatrixType::uint8:
      return static_cast<T>(static_cast<const unsigned char*>(elements)[i]);
    case MatrixType::int32:
      return static_cast<T>(static_cast<const int*>(elements)[i]);
    case MatrixType::bf16:
      return static_cast<T>(std::bit_cast<float>(std::uint32_t{static_cast<const std::uint16_t*>(elements)[i]} << 16));
    case MatrixType::tf32:  // the hardware looks at no more bits
      return static_cast<T>(std::bit_cast<float>(static_cast<const std::uint32_t*>(elements)[i] & ~0x1fffu));
    case MatrixType::fp64:
      return static_cast<T>(static_cast<const double*>(elements)[i]);
  }
  return {};
}

template <class T>
void gather(MatrixForm form, const void* elements, unsigned lane, T* matrix) {
  const Places& where = places(form);
  for (unsigned i = 0; i < where.elements; ++i) matrix[where.index[lane][i]] = read_element<T>(form.type, elements, i);
}

/// @tparam T double, or unsigned, which wraps as the sums of a GPU do
template <class T, unsigned M, unsigned N, unsigned K = 16>
void multiply(void** lanes) {
  Matrices<T, M, N, K> matrices;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const Product& product = *static_cast<const Product*>(lanes[lane]);
    gather({MatrixUse::a, product.of_factors, M, N}, product.a, lane, matrices.a[0]);
    gather({MatrixUse::b, product.of_factors, M, N}, product.b, lane, matrices.b[0]);
    gather({MatrixUse::accumulator, product.of_c, M, N}, product.c, lane, matrices.sums[0]);
  }
  matrices.multiply();
  const Places& where = places({MatrixUse::accumulator, K == 4 ? MatrixType::fp64 : MatrixType::fp32, M, N});
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    const Product& product = *static_cast<const Product*>(lanes[lane]);
    for (unsigned i = 0; i < where.elements; ++i) {
      const T sum = matrices.sums[0][where.index[lane][i]];
      if (product.of_d == MatrixType::fp16)
        static_cast<std::uint16_t*>(product.d)[i] = convladder::to_half_bits(static_cast<double>(sum));
      else if (product.of_d == MatrixType::fp64)
        static_cast<double*>(product.d)[i] = static_cast<double>(sum);
      else if (product.of_d == MatrixType::fp32)
        static_cast<float*>(product.d)[i] = static_cast<float>(sum);
      else
        static_cast<int*>(product.d)[i] = static_cast<int>(sum);
    }
  }
}

void multiply_warp(void** lanes, unsigned mask) {
  const auto first = static_cast<unsigned>(__builtin_ctz(mask));
  const Product& product = *static_cast<const Product*>(lanes[first]);
  become(first);
  check_convergence(mask, machine.thread->wait_pc);
  const bool halves = has_16_bits(product.of_factors);
  if (product.of_factors == MatrixType::fp64)
    multiply<double, 8, 8, 4>(lanes);
  else if (product.of_factors == MatrixType::tf32)
    multiply<double, 16, 16, 8>(lanes);
  else if (product.m == 8)
    halves ? multiply<double, 8, 32>(lanes) : multiply<unsigned, 8, 32>(lanes);
  else if (product.m == 16)
    halves ? multiply<double, 16, 16>(lanes) : multiply<unsigned, 16, 16>(lanes);
  else
    halves ? multiply<double, 32, 8>(lanes) : multiply<unsigned, 32, 8>(lanes);
}

}  // namespace

void load_matrix(void* elements, const void* matrix, unsigned stride, bool row_major, MatrixForm form, int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  const auto address = reinterpret_cast<std::uintptr_t>(matrix);
  Transfer transfer{address, elements, stride, row_major, form, {Kind::load, pc, depth_of(__builtin_frame_address(0))}};
  wait_at_collective(~0u, &transfer, transfer_matrix, Orders::nothing, line, pc);
}

void store_matrix(void* matrix, const void* elements, unsigned stride, bool row_major, MatrixForm form, int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  const auto address = reinterpret_cast<std::uintptr_t>(matrix);
  Transfer transfer{address, const_cast<void*>(elements),
                    stride,  row_major,
                    form,    {Kind::store, pc, depth_of(__builtin_frame_address(0))}};
  wait_at_collective(~0u, &transfer, transfer_matrix, Orders::nothing, line, pc);
}

void multiply_matrices(const Product& product, int line) {
  const Pc pc = relative_pc(__builtin_return_address(0));
  if (product.of_factors != MatrixType::fp16) require_instruction("wmma of bytes", Generation::volta_bytes, pc);
  Product copy = product;
  wait_at_collective(~0u, &copy, multiply_warp, Orders::nothing, line, pc);
}

void fill_elements(void* elements, unsigned count, const void* value, unsigned bytes) {
  for (unsigned i = 0; i < count; ++i) std::memcpy(static_cast<char*>(elements) + i * bytes, value, bytes);
}

}  // namespace simt

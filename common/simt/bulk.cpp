// Bulk copies between global and dynamic shared memory. The source is read when a copy is issued; at an mbarrier it
// lands when somebody waits for it (async.cpp).

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "common/simt/async.hpp"
#include "common/simt/cluster.hpp"
#include "common/simt/half.hpp"
#include "common/simt/hopper.hpp"

namespace simt {
namespace {

#define SIMT_PC relative_pc(__builtin_return_address(0))

/// Announces the copy's write, which the running thread starts: all that came before must be over, and visible to it.
/// @param copy what it leaves there; an atomic one does not exclude others
/// @param through_proxy it is asynchronous, and must see what ordinary instructions have written
void start_write(std::uintptr_t address, std::size_t bytes, const Access& copy, Pc pc, bool through_proxy = true) {
  const auto size = static_cast<unsigned>(bytes);
  write_shared(address, size, pc);
  const bool met_copy = (machine.copying || machine.visited) && meets_copy(address, size, Kind::store, pc);
  Access now = access_now(Kind::store, pc);
  now.atomic = copy.atomic;
  Access checked;  // neighbouring words often have the same writer
  const auto check = [&](const Access& earlier, Kind kind) {
    if (rank_of(earlier.block) == kNoRank || earlier == checked || met_copy) return;
    check_pair(earlier, kind, now, Kind::store, machine.shared_oldest);
    if (kind != Kind::load && !earlier.async && through_proxy && happened_before(earlier, machine.shared_oldest))
      check_proxy_fence(earlier, pc);
    checked = earlier;
  };
  const SharedState shared = shared_state(address);
  for (std::size_t at = 0; at < bytes; at += 4) {
    Cell& cell = shared.cells[(address + at - shared.begin) / 4];
    check(cell.write, Kind::store);
    check(cell.atomic, Kind::atomic);
    check(cell.read, Kind::load);
    check(cell.second_read, Kind::load);
    check(cell.other_warp_read, Kind::load);
    if (copy.atomic) {
      cell.atomic = copy;
      continue;
    }
    cell = {};
    cell.write = copy;
    for (unsigned i = 0; i < 4; ++i) shared.bytes[at + i] |= kWritten;
  }
}

/// A copy to shared memory, for whatever its destination is.
struct Source {
  std::vector<std::uint8_t> bytes;
  unsigned swizzle = 0;
  bool through_proxy = true;
  Reduction reduction{};
  std::int32_t ticket = 0;  ///< of its read
  unsigned reader = 0;
};

/// Starts a copy to shared memory, which is that of memory_block().
void start(std::uintptr_t to, Source source, Mbarrier& barrier, Pc pc) {
  AsyncBlock& block = memory_block();
  if (!barrier.fenced && source.through_proxy)
    report(FaultKind::missing_proxy_fence, pc,
           "no fence_mbarrier_init() since the mbarrier's initialisation: copies may not see it", barrier.init.pc,
           thread_id(block.serial, barrier.init.thread));
  const auto at = [&](const Mbarrier& each) { return &each == &barrier; };
  const auto index = std::find_if(block.mbarriers.begin(), block.mbarriers.end(), at) - block.mbarriers.begin();
  barrier.copier_block = machine.block_serial;
  barrier.copier = machine.thread_number;
  Access copy = access_now(Kind::store, pc);
  copy.async = 1;
  copy.block = block.serial;
  copy.atomic = source.reduction.update != nullptr;
  copy.thread = static_cast<unsigned>(index) & 1023;
  copy.phase = barrier.phase & ((1u << 26) - 1);
  start_write(to, source.bytes.size(), copy, pc, source.through_proxy);
  block.copies.push_back({to, std::move(source.bytes), source.swizzle, static_cast<unsigned>(index), barrier.phase,
                          machine.block_serial, machine.thread_number, pc, source.reduction, source.ticket,
                          source.reader});
  ++machine.progress;
}

/// Starts a copy to one block's shared memory, or by a mask to the same place of several. The mbarrier lies in the same
/// block, or in each at the same place. Nothing happens in a block that has ended.
void deliver(const Source& source, void* shared, void* barrier, unsigned alignment, unsigned mask, Pc pc) {
  const auto to = reinterpret_cast<std::uintptr_t>(shared), at = reinterpret_cast<std::uintptr_t>(barrier);
  const auto start_at = [&](std::uintptr_t address, std::uintptr_t barrier_address) {
    check_async_operand(address, source.bytes.size(), alignment, pc);
    start(address, source, mbarrier_at(barrier_address, pc, true), pc);
  };
  if (mask != 0) {
    const std::size_t blocks = cluster().blocks.size();
    if (mask >> blocks != 0)
      fail(FaultKind::invalid_operand, pc,
           "a multicast to block " + std::to_string(31 - __builtin_clz(mask)) + " of a cluster of " +
               std::to_string(blocks));
    if (remote_place(to) || remote_place(at))
      fail(FaultKind::invalid_operand, pc, "a multicast is given addresses of its own block");
    for (unsigned rank = 0; rank < blocks; ++rank) {
      if (!(mask >> rank & 1) || has_ended(rank, pc)) continue;
      const Visit visit(rank, pc);
      start_at(to, at);
    }
    return;
  }
  const auto to_place = remote_place(to), at_place = remote_place(at);
  const unsigned own = machine.cluster ? machine.cluster->running : 0;
  const unsigned rank = to_place ? to_place->rank : own;
  if ((at_place ? at_place->rank : own) != rank)
    fail(FaultKind::invalid_operand, pc, "a copy and its mbarrier lie in different blocks of the cluster");
  std::optional<Visit> visit;
  if (rank != own) {
    if (has_ended(rank, pc)) return;
    visit.emplace(rank, pc);
  }
  start_at(to_place ? to_place->address : to, at_place ? at_place->address : at);
}

/// The running thread's access to global memory as one request: what it touches there.
class Request {
 public:
  Request(Kind kind, Pc pc) : kind_(kind), pc_(pc) {}

  void touch(std::uintptr_t address, std::size_t bytes) {
    if (check_access(address, static_cast<unsigned>(bytes), kind_, pc_) != Space::global)
      fail(FaultKind::out_of_bounds, pc_, "a bulk copy from or to what is not global memory");
    bytes_ += bytes;
    for (std::uint64_t sector = address / kSector; sector <= (address + bytes - 1) / kSector; ++sector)
      if (sectors_.empty() || sectors_.back() != sector) sectors_.push_back(sector);
  }

  /// @param shared where in shared memory the copy ends or begins
  void count(const void* shared) {
    std::sort(sectors_.begin(), sectors_.end());
    const auto sectors = std::unique(sectors_.begin(), sectors_.end()) - sectors_.begin();
    Counters& at = counters_at(pc_);
    const bool load = kind_ == Kind::load;
    if (kind_ == Kind::atomic) {
      ++at.atomic_requests;
      ++machine.measurement.thread_accesses;
      return;
    }
    (load ? at.global_load_requests : at.global_store_requests) += 1;
    (load ? at.global_load_bytes : at.global_store_bytes) += static_cast<std::int64_t>(bytes_);
    (load ? at.global_load_sectors : at.global_store_sectors) += sectors;
    if (load) count_loads(sectors_.data(), static_cast<std::size_t>(sectors));
    ++machine.measurement.thread_accesses;
    mark(load ? Deed::bulk_load : Deed::bulk_store, shared, pc_, static_cast<unsigned>(bytes_), sectors);
  }

 private:
  Kind kind_;
  Pc pc_;
  std::size_t bytes_ = 0;
  std::vector<std::uint64_t> sectors_;
};

/// What one copy moves of a tensor: rows of its innermost dimension, of a box or of a column of pixels.
class Box {
 public:
  /// @param offsets of a column, one for each dimension of space; null for a box
  Box(const convladder::TensorMap& map, const int* at, const int* offsets, int count, Pc pc)
      : form_(map.form), global_(reinterpret_cast<std::uintptr_t>(map.global)), at_(at), offsets_(offsets) {
    if (count != form_.rank)
      fail(FaultKind::invalid_operand, pc,
           std::to_string(count) + " coordinates for a tensor map of rank " + std::to_string(form_.rank));
    if ((offsets != nullptr) != (form_.pixels > 0))
      fail(FaultKind::invalid_operand, pc,
           offsets ? "a column of pixels of a tensor map for boxes" : "a box of a tensor map for columns of pixels");
    const auto element = static_cast<std::int64_t>(convladder::element_bytes(form_.element));
    if (at[0] * element % 16 != 0)
      fail(FaultKind::invalid_operand, pc,
           "a box begins at a multiple of 16 bytes of the innermost dimension, not at element " +
               std::to_string(at[0]) + " of " + std::to_string(element) + " bytes");
    row_bytes_ = form_.dimensions[0].box * convladder::element_bytes(form_.element);
    if (offsets)
      check_column(pc);
    else
      for (int i = 1; i < form_.rank; ++i) rows_ *= copied_elements(form_.dimensions[i]);
  }

  std::size_t bytes() const { return rows_ * row_bytes_; }

  /// Calls `visit(offset, address, bytes)` for the part of each row that lies inside the tensor: its offset in the
  /// dense box, and where it lies in global memory.
  template <class Visit>
  void for_each_row(Visit visit) const {
    const std::int64_t each = convladder::element_bytes(form_.element);
    const std::int64_t size = static_cast<std::int64_t>(form_.dimensions[0].size);
    const std::int64_t begin = std::max<std::int64_t>(at_[0], 0);
    const std::int64_t end = std::min(at_[0] + std::int64_t{form_.dimensions[0].box}, size);
    if (begin >= end) return;
    std::int64_t pixel[5] = {};  // the present one of a column, before the offsets
    std::copy_n(at_, form_.rank, pixel);
    for (std::size_t row = 0; row < rows_; ++row, next_pixel(pixel)) {
      std::size_t rest = row;
      std::uint64_t offset = 0;
      bool inside = true;
      for (int i = 1; i < form_.rank; ++i) {
        const convladder::TensorDimension& dimension = form_.dimensions[i];
        std::int64_t index = pixel[i];
        if (!offsets_) {
          index = at_[i] + static_cast<std::int64_t>(rest % copied_elements(dimension)) * dimension.step;
          rest /= copied_elements(dimension);
        } else if (i < form_.rank - 1) {
          index += offsets_[i - 1];
        }
        inside &= index >= 0 && index < static_cast<std::int64_t>(dimension.size);
        offset += static_cast<std::uint64_t>(index) * dimension.stride;
      }
      if (!inside) continue;
      visit(row * row_bytes_ + static_cast<std::size_t>((begin - at_[0]) * each),
            static_cast<std::uintptr_t>(global_ + offset + static_cast<std::uint64_t>(begin * each)),
            static_cast<std::size_t>((end - begin) * each));
    }
  }

 private:
  /// The last index of a dimension of space at which a filter's first element lies.
  std::int64_t last(int i) const {
    return static_cast<std::int64_t>(form_.dimensions[i].size) - 1 + form_.upper[i - 1];
  }

  void check_column(Pc pc) {
    rows_ = form_.pixels;
    const int limit = form_.rank == 3 ? 1 << 16 : form_.rank == 4 ? 1 << 8 : 1 << 5;
    for (int i = 1; i < form_.rank - 1; ++i) {
      if (at_[i] < form_.lower[i - 1] || at_[i] > last(i))
        fail(FaultKind::invalid_operand, pc,
             "a column begins at a pixel between the map's corners, " + std::to_string(form_.lower[i - 1]) + " to " +
                 std::to_string(last(i)) + " in dimension " + std::to_string(i) + ", not at " + std::to_string(at_[i]));
      if (offsets_[i - 1] < 0 || offsets_[i - 1] >= limit)
        fail(FaultKind::invalid_operand, pc,
             "the offsets of a column are 0 to " + std::to_string(limit - 1) + ", not " +
                 std::to_string(offsets_[i - 1]));
    }
  }

  /// Goes on along the width, then at the lower corner of the next row; behind the last row of the last slice, to the
  /// next image.
  void next_pixel(std::int64_t* pixel) const {
    if (!offsets_) return;
    for (int i = 1; i < form_.rank - 1; ++i) {
      pixel[i] += form_.dimensions[i].step;
      if (pixel[i] <= last(i)) return;
      pixel[i] = form_.lower[i - 1];
    }
    ++pixel[form_.rank - 1];
  }

  const convladder::TensorForm& form_;
  std::uintptr_t global_;
  const int *at_, *offsets_;
  std::size_t row_bytes_ = 0, rows_ = 1;
};

constexpr unsigned kTensorAlignment = 128;  ///< of a box in shared memory

/// @param what "a bulk copy" or "a bulk prefetch"
void check_source(const std::string& what, std::uintptr_t from, unsigned bytes, Pc pc) {
  if (bytes == 0 || bytes % 16 != 0)
    fail(FaultKind::invalid_operand, pc, what + " takes a multiple of 16 bytes, not " + std::to_string(bytes));
  if (from % 16 != 0) fail(FaultKind::misaligned, pc, what + " begins at a multiple of 16 bytes");
}

/// What a copy from shared memory reads; it is remembered as under way.
/// @param is_used by 16-byte pieces, where some are of no use: nobody need have written those. Empty: all are of use
Source read_shared(std::uintptr_t from, std::size_t size, unsigned swizzle, Pc pc,
                   const std::vector<bool>& is_used = {}) {
  AsyncBlock& block = async_block();
  AsyncRead read(pc);
  if (is_used.empty()) read.check(from, size);
  bool right = true;
  for (std::size_t i = 0; i < is_used.size() && right; ++i)
    right = !is_used[i] || read.check(swizzled(from + i * kPiece, swizzle), kPiece);
  const unsigned number = block.warps + machine.thread_number / kWarp;
  Reader& reader = block.readers[number];
  const std::int32_t ticket = ++reader.issued;
  reader.outstanding.insert(ticket);
  reader.pc = pc;

  std::vector<std::uint8_t> bytes(size);
  for (std::size_t offset = 0; offset < size; offset += kPiece) {
    const std::uintptr_t piece = swizzled(from + offset, swizzle);
    std::memcpy(&bytes[offset], reinterpret_cast<const void*>(piece), kPiece);
    block.ticket(block.piece(piece), number) = ticket;
  }
  return {std::move(bytes), 0, true, {}, ticket, number};
}

/// The same for a copy that belongs to the thread's open group.
std::vector<std::uint8_t> read_for_store(std::uintptr_t from, std::size_t size, unsigned swizzle, Pc pc,
                                         const std::vector<bool>& is_used = {}) {
  Source source = read_shared(from, size, swizzle, pc, is_used);
  async_block().stores[machine.thread_number].open.push_back(source.ticket);
  return std::move(source.bytes);
}

// ---- Reductions ----------------------------------------------------------------------------------------------------

template <class T, class Value, Reduce What>
void update(void* there, const void* more) {
  T bits, other;
  std::memcpy(&bits, there, sizeof bits);
  std::memcpy(&other, more, sizeof other);
  const Value a(bits), b(other);
  Value result = a;
  if constexpr (What == Reduce::add) result = a + b;
  if constexpr (What == Reduce::min) result = b < a ? b : a;
  if constexpr (What == Reduce::max) result = a < b ? b : a;
  if constexpr (std::is_integral_v<Value>) {
    if constexpr (What == Reduce::inc) result = a >= b ? 0 : a + 1;
    if constexpr (What == Reduce::dec) result = a == 0 || a > b ? b : a - 1;
    if constexpr (What == Reduce::bit_and) result = a & b;
    if constexpr (What == Reduce::bit_or) result = a | b;
    if constexpr (What == Reduce::bit_xor) result = a ^ b;
  }
  bits = static_cast<T>(result);
  std::memcpy(there, &bits, sizeof bits);
}

/// Numbers of 16 bits, in float.
struct Half {
  float value;
  explicit Half(float number) : value(number) {}
  explicit Half(std::uint16_t bits) : value(half_to_float(bits)) {}
  explicit operator std::uint16_t() const { return half_from(value); }
  Half operator+(Half other) const { return Half(value + other.value); }
  bool operator<(Half other) const { return value < other.value; }
};
struct Bfloat {
  float value;
  explicit Bfloat(float number) : value(number) {}
  explicit Bfloat(std::uint16_t bits) : value(std::bit_cast<float>(std::uint32_t{bits} << 16)) {}
  explicit operator std::uint16_t() const {  // to nearest, ties to even
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
  Bfloat operator+(Bfloat other) const { return Bfloat(value + other.value); }
  bool operator<(Bfloat other) const { return value < other.value; }
};

template <class T, class Value>
Reduction reduction_of(Reduce what) {
  constexpr Reduction kAll[] = {
      {update<T, Value, Reduce::add>, sizeof(T)},    {update<T, Value, Reduce::min>, sizeof(T)},
      {update<T, Value, Reduce::max>, sizeof(T)},    {update<T, Value, Reduce::inc>, sizeof(T)},
      {update<T, Value, Reduce::dec>, sizeof(T)},    {update<T, Value, Reduce::bit_and>, sizeof(T)},
      {update<T, Value, Reduce::bit_or>, sizeof(T)}, {update<T, Value, Reduce::bit_xor>, sizeof(T)}};
  return kAll[static_cast<unsigned>(what)];
}

Reduction reduction_of(ReduceType type, Reduce what) {
  switch (type) {
    case ReduceType::u32:
      return reduction_of<std::uint32_t, std::uint32_t>(what);
    case ReduceType::s32:
      return what == Reduce::add ? reduction_of<std::uint32_t, std::uint32_t>(what)  // which wraps
                                 : reduction_of<std::int32_t, std::int32_t>(what);
    case ReduceType::u64:
      return reduction_of<std::uint64_t, std::uint64_t>(what);
    case ReduceType::s64:
      return what == Reduce::add ? reduction_of<std::uint64_t, std::uint64_t>(what)
                                 : reduction_of<std::int64_t, std::int64_t>(what);
    case ReduceType::f16:
      return reduction_of<std::uint16_t, Half>(what);
    case ReduceType::bf16:
      return reduction_of<std::uint16_t, Bfloat>(what);
    case ReduceType::f32:
      return reduction_of<float, float>(what);
    default:
      return reduction_of<double, double>(what);
  }
}

}  // namespace

void bulk_store(void* global, const void* shared, unsigned size) {
  const Pc pc = SIMT_PC;
  require_instruction("cp.async.bulk", Generation::hopper, pc);
  const Unwatched unwatched;
  const auto to = reinterpret_cast<std::uintptr_t>(global), from = reinterpret_cast<std::uintptr_t>(shared);
  check_source("a bulk copy", to, size, pc);
  check_async_operand(from, size, kPiece, pc);
  const auto bytes = read_for_store(from, size, 0, pc);
  Request request(Kind::store, pc);
  request.touch(to, size);
  std::memcpy(global, bytes.data(), size);
  request.count(shared);
}

void bulk_load(void* shared, const void* global, unsigned bytes, void* address, unsigned multicast) {
  const Pc pc = SIMT_PC;
  require_instruction("cp.async.bulk", Generation::hopper, pc);
  const Unwatched unwatched;
  const auto from = reinterpret_cast<std::uintptr_t>(global);
  check_source("a bulk copy", from, bytes, pc);
  Request request(Kind::load, pc);
  request.touch(from, bytes);
  request.count(shared);
  const auto* const source = static_cast<const std::uint8_t*>(global);
  deliver({{source, source + bytes}}, shared, address, 16, multicast, pc);
}

void store_async(void* shared, const void* value, unsigned bytes, void* barrier) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  const auto* const from = static_cast<const std::uint8_t*>(value);
  deliver({{from, from + bytes}, 0, false}, shared, barrier, bytes, 0, pc);
}

void reduce_async(void* shared, const void* value, ReduceType type, Reduce what, void* barrier) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  const Reduction reduction = reduction_of(type, what);
  const auto* const from = static_cast<const std::uint8_t*>(value);
  deliver({{from, from + reduction.element}, 0, false, reduction}, shared, barrier, reduction.element, 0, pc);
}

namespace {
void copy_in_cluster(void* to, const void* from, unsigned bytes, Reduction reduction, void* barrier, Pc pc) {
  const auto source = reinterpret_cast<std::uintptr_t>(from);
  check_source("a bulk copy", source, bytes, pc);
  if (remote_place(source))
    fail(FaultKind::invalid_operand, pc, "a bulk copy reads the shared memory of its own block");
  check_async_operand(source, bytes, kPiece, pc);
  cluster();
  const auto place = remote_place(reinterpret_cast<std::uintptr_t>(to));
  if (place && has_ended(place->rank, pc)) return;
  Source read = read_shared(source, bytes, 0, pc);
  async_block().readers[read.reader].reads_for_cluster = true;
  read.reduction = reduction;
  deliver(read, to, barrier, kPiece, 0, pc);
}
}  // namespace

void bulk_copy_in_cluster(void* to, const void* from, unsigned bytes, void* barrier) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  copy_in_cluster(to, from, bytes, {}, barrier, pc);
}

void bulk_reduce_in_cluster(void* to, const void* from, unsigned bytes, ReduceType type, Reduce what, void* barrier) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  copy_in_cluster(to, from, bytes, reduction_of(type, what), barrier, pc);
}

void bulk_reduce(void* global, const void* shared, unsigned size, ReduceType type, Reduce what) {
  const Pc pc = SIMT_PC;
  const Unwatched unwatched;
  const auto to = reinterpret_cast<std::uintptr_t>(global), from = reinterpret_cast<std::uintptr_t>(shared);
  const Reduction reduction = reduction_of(type, what);
  check_source("a bulk reduction", to, size, pc);
  check_async_operand(from, size, kPiece, pc);
  const auto bytes = read_for_store(from, size, 0, pc);
  Request request(Kind::atomic, pc);
  request.touch(to, size);
  for (std::size_t at = 0; at < size; at += reduction.element)
    reduction.update(static_cast<std::uint8_t*>(global) + at, &bytes[at]);
  request.count(shared);
}

void bulk_prefetch(const void* global, unsigned bytes) {
  const Pc pc = SIMT_PC;
  require_instruction("cp.async.bulk.prefetch", Generation::hopper, pc);
  const Unwatched unwatched;
  const auto from = reinterpret_cast<std::uintptr_t>(global);
  check_source("a bulk prefetch", from, bytes, pc);
  const Allocation* const allocation = find_allocation(from);
  const bool live = allocation && allocation->live;
  if (!live || bytes > allocation->end - from)
    fail(FaultKind::out_of_bounds, pc, "prefetches " + describe_global(live ? allocation->end : from));
}

void tensor_load(void* shared, const convladder::TensorMap& map, void* address, const int* at, int count,
                 const int* offsets, unsigned multicast) {
  const Pc pc = SIMT_PC;
  require_instruction("cp.async.bulk.tensor", Generation::hopper, pc);
  const Unwatched unwatched;
  const Box box(map, at, offsets, count, pc);
  std::vector<std::uint8_t> bytes(box.bytes());  // zeros outside the tensor
  Request request(Kind::load, pc);
  box.for_each_row([&](std::size_t offset, std::uintptr_t from, std::size_t length) {
    request.touch(from, length);
    std::memcpy(&bytes[offset], reinterpret_cast<const void*>(from), length);
  });
  request.count(shared);
  deliver({std::move(bytes), convladder::swizzle_bytes(map.form.swizzle)}, shared, address, kTensorAlignment, multicast,
          pc);
}

void tensor_store(const convladder::TensorMap& map, const void* shared, const int* at, int count) {
  const Pc pc = SIMT_PC;
  require_instruction("cp.async.bulk.tensor", Generation::hopper, pc);
  const Unwatched unwatched;
  const Box box(map, at, nullptr, count, pc);
  for (int i = 0; i < count; ++i)
    if (at[i] < 0)
      fail(FaultKind::invalid_operand, pc,
           "a box that is stored begins inside the tensor or behind it, not at " + std::to_string(at[i]));
  const auto from = reinterpret_cast<std::uintptr_t>(shared);
  check_async_operand(from, box.bytes(), kTensorAlignment, pc);
  std::vector<bool> is_inside(box.bytes() / kPiece);
  box.for_each_row([&](std::size_t offset, std::uintptr_t, std::size_t length) {
    for (std::size_t at = offset; at < offset + length; at += kPiece) is_inside[at / kPiece] = true;
  });
  const auto bytes = read_for_store(from, box.bytes(), convladder::swizzle_bytes(map.form.swizzle), pc, is_inside);
  Request request(Kind::store, pc);
  box.for_each_row([&](std::size_t offset, std::uintptr_t to, std::size_t length) {
    length = (length + kPiece - 1) / kPiece * kPiece;  // what follows a row in its last piece is overwritten
    request.touch(to, length);
    std::memcpy(reinterpret_cast<void*>(to), &bytes[offset], length);
  });
  request.count(shared);
}

void bulk_commit() {
  BulkStores& stores = async_block().stores[machine.thread_number];
  stores.groups.push_back(std::move(stores.open));
  stores.open.clear();
}

void bulk_wait(unsigned pending) {
  const Unwatched unwatched;
  AsyncBlock& block = async_block();
  BulkStores& stores = block.stores[machine.thread_number];
  const unsigned number = block.warps + machine.thread_number / kWarp;
  Reader& reader = block.readers[number];
  for (; stores.groups.size() > pending; stores.groups.pop_front())
    for (const std::int32_t ticket : stores.groups.front()) reader.outstanding.erase(ticket);
  reader.done = reader.outstanding.empty() ? reader.issued : *reader.outstanding.begin() - 1;
  std::int32_t& known = block.views[machine.thread_number].reads(number);
  known = std::max(known, reader.done);
}

}  // namespace simt

namespace convladder {

TensorMap make_tensor_map(const void* global, const TensorForm& form) {
  check_tensor(global, form);
  return {global, form};
}

}  // namespace convladder

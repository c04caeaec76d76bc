// Barriers, bulk copies and matrix products of sm_90: results against plain loops, and faults where one thing is
// missing.
#include <cmath>
#include <cstring>
#include <random>

#include "common/half_bits.hpp"
#include "tests/simt/expect.hpp"
#include "tests/simt/hopper_kernels.hpp"

namespace {

using convladder::half_bits;
using convladder::half_value;
using convladder::Swizzle;
using convladder::TensorElement;
using convladder::TensorForm;
using simt::FaultKind;

std::vector<std::uint8_t> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Where the byte of a dense box lies in swizzled shared memory: 16-byte pieces change places within their row.
std::size_t swizzled(std::size_t offset, Swizzle swizzle) {
  if (swizzle == Swizzle::none) return offset;
  const std::size_t pieces = swizzle == Swizzle::bytes64 ? 4 : 8, piece = offset / 16;
  return (piece / pieces * pieces + (piece % pieces ^ offset / 128 % pieces)) * 16 + offset % 16;
}

struct BoxCase {
  TensorForm form;
  int at[5];
};

/// Calls visit(offset in the box, offset in the tensor or -1) for each byte of the box.
template <class Visit>
void for_each_byte(const BoxCase& box, Visit visit) {
  const TensorForm& form = box.form;
  const auto each = static_cast<long long>(convladder::element_bytes(form.element));
  long long index[5] = {}, offset = 0;
  for (bool more = true; more;) {
    long long address = 0;
    bool inside = true;
    for (int i = 0; i < form.rank; ++i) {
      const long long at = box.at[i] + index[i];
      inside &= at >= 0 && at < static_cast<long long>(form.dimensions[i].size);
      address += at * static_cast<long long>(form.dimensions[i].stride);
    }
    for (long long byte = 0; byte < each; ++byte) visit(offset + byte, inside ? address + byte : -1);
    offset += each;
    more = false;
    for (int i = 0; i < form.rank && !more; ++i) {
      more = ++index[i] < static_cast<long long>(form.dimensions[i].box);
      if (!more) index[i] = 0;
    }
  }
}

std::size_t box_bytes(const TensorForm& form) {
  std::size_t bytes = convladder::element_bytes(form.element);
  for (int i = 0; i < form.rank; ++i) bytes *= form.dimensions[i].box;
  return bytes;
}

std::size_t tensor_bytes(const TensorForm& form) {
  std::size_t bytes = convladder::element_bytes(form.element);
  for (int i = 0; i < form.rank; ++i) bytes += (form.dimensions[i].size - 1) * form.dimensions[i].stride;
  return bytes;
}

const BoxCase kBoxes[] = {
    {{TensorElement::fp32, Swizzle::none, 1, {{100, 4, 32}}}, {0}},
    {{TensorElement::fp32, Swizzle::none, 1, {{100, 4, 32}}}, {-5}},
    {{TensorElement::int32, Swizzle::none, 1, {{100, 4, 256}}}, {90}},
    {{TensorElement::fp16, Swizzle::none, 1, {{100, 2, 8}}}, {200}},
    {{TensorElement::int8, Swizzle::none, 2, {{33, 1, 16}, {7, 48, 9}}}, {20, -1}},
    {{TensorElement::fp16, Swizzle::bytes128, 2, {{64, 2, 64}, {40, 128, 26}}}, {0, -1}},
    {{TensorElement::fp16, Swizzle::bytes128, 2, {{64, 2, 64}, {40, 128, 26}}}, {0, 30}},
    {{TensorElement::fp16, Swizzle::bytes128, 2, {{130, 2, 64}, {40, 272, 9}}}, {-3, 5}},
    {{TensorElement::int8, Swizzle::bytes64, 2, {{64, 1, 64}, {40, 64, 26}}}, {0, 20}},
    {{TensorElement::fp32, Swizzle::bytes64, 2, {{21, 4, 16}, {40, 96, 13}}}, {7, 3}},
    {{TensorElement::fp16, Swizzle::bytes128, 3, {{64, 2, 64}, {14, 128, 16}, {6, 1792, 1}}}, {0, -1, 5}},
    {{TensorElement::fp16, Swizzle::bytes128, 3, {{64, 2, 64}, {14, 128, 5}, {6, 1792, 3}}}, {0, 12, -1}},
    {{TensorElement::int8, Swizzle::none, 3, {{16, 1, 16}, {2, 64, 2}, {2, 16, 2}}}, {0, 0, 0}},
    {{TensorElement::fp16, Swizzle::none, 4, {{16, 2, 16}, {5, 32, 3}, {4, 160, 2}, {3, 640, 2}}}, {0, 3, -1, 2}},
    {{TensorElement::int8, Swizzle::none, 5, {{16, 1, 16}, {3, 16, 2}, {4, 48, 3}, {2, 192, 2}, {3, 384, 3}}},
     {0, 1, 2, -1, -1}},
    {{TensorElement::fp32, Swizzle::none, 5, {{9, 4, 4}, {3, 48, 2}, {2, 16, 3}, {2, 160, 1}, {2, 320, 2}}},
     {7, -1, 0, 1, 1}},
};

}  // namespace

// ---- Copies --------------------------------------------------------------------------------------------------------

TEST_CASE("simt hopper: tensor loads of every rank, with zeros outside the tensor") {
  for (const BoxCase& box : kBoxes) {
    CAPTURE(&box - kBoxes);
    const auto tensor = random_bytes(tensor_bytes(box.form), 1);
    Array<std::uint8_t> input(tensor, "input"), output(box_bytes(box.form), "output");
    const Counters c =
        count([&] { launch_tensor_load(input, box.form, box.at, output, static_cast<int>(box_bytes(box.form))); });
    std::vector<std::uint8_t> expected(box_bytes(box.form));
    std::int64_t inside = 0;
    std::vector<bool> sectors(tensor.size() / 32 + 1);
    for_each_byte(box, [&](long long offset, long long address) {
      if (address < 0) return;
      expected[swizzled(static_cast<std::size_t>(offset), box.form.swizzle)] =
          tensor[static_cast<std::size_t>(address)];
      ++inside;
      sectors[static_cast<std::size_t>(address / 32)] = true;
    });
    CHECK(output.values() == expected);
    CHECK(c.global_load_requests == 1);
    CHECK(c.global_load_bytes == inside);
    CHECK(c.global_load_unique_bytes <= inside);
    CHECK(c.global_load_sectors == std::count(sectors.begin(), sectors.end(), true));
  }
}

TEST_CASE("simt hopper: tensor stores leave what is outside the tensor alone") {
  for (const BoxCase& box : kBoxes) {
    CAPTURE(&box - kBoxes);
    const auto tensor = random_bytes(tensor_bytes(box.form), 1), bytes = random_bytes(box_bytes(box.form), 2);
    Array<std::uint8_t> output(tensor, "output"), input(bytes, "input");
    const Counters c =
        count([&] { launch_tensor_store(output, box.form, box.at, input, static_cast<int>(box_bytes(box.form))); });
    std::vector<std::uint8_t> expected = tensor;
    std::int64_t inside = 0;
    for_each_byte(box, [&](long long offset, long long address) {
      if (address < 0) return;
      expected[static_cast<std::size_t>(address)] = bytes[swizzled(static_cast<std::size_t>(offset), box.form.swizzle)];
      ++inside;
    });
    CHECK(output.values() == expected);
    CHECK(c.global_store_requests == 1);
    CHECK(c.global_store_bytes == inside);
  }
}

TEST_CASE("simt hopper: a bulk copy") {
  const auto bytes = random_bytes(4096, 3);
  for (const int size : {16, 48, 4096}) {
    Array<std::uint8_t> input(bytes, "input"), output(static_cast<std::size_t>(size), "output");
    const Counters c = count([&] { launch_bulk_load(input, output, size); });
    CHECK(output.values() == std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + size));
    CHECK(c.global_load_requests == 1);
    CHECK(c.global_load_bytes == size);
    CHECK(c.global_load_unique_bytes == size);
    CHECK(c.global_load_sectors == (size + 31) / 32);
  }
}

TEST_CASE("simt hopper: what CUDA refuses of a tensor, make_tensor_map refuses") {
  alignas(16) static char tensor[32];
  const TensorForm right{TensorElement::fp16, Swizzle::bytes128, 2, {{64, 2, 64}, {9, 128, 8}}};
  CHECK_NOTHROW(make_map(tensor, right));
  const auto expect = [&](const std::string& rule, const std::function<void(TensorForm&)>& change) {
    TensorForm form = right;
    change(form);
    CHECK_THROWS_WITH_AS(make_map(tensor, form), ("tensor map: " + rule).c_str(), std::invalid_argument);
  };
  expect("a tensor has 1 to 5 dimensions; got 0", [](TensorForm& f) { f.rank = 0; });
  expect("a tensor has 1 to 5 dimensions; got 6", [](TensorForm& f) { f.rank = 6; });
  expect("the size of dimension 1 must be 1 to 2^32; got 0", [](TensorForm& f) { f.dimensions[1].size = 0; });
  expect("the size of dimension 1 must be 1 to 2^32; got 4294967297",
         [](TensorForm& f) { f.dimensions[1].size = (1ull << 32) + 1; });
  expect("the box of dimension 1 must be 1 to 256; got 0", [](TensorForm& f) { f.dimensions[1].box = 0; });
  expect("the box of dimension 1 must be 1 to 256; got 257", [](TensorForm& f) { f.dimensions[1].box = 257; });
  expect("the stride of dimension 1 must be a multiple of 16 bytes below 2^40; got 120",
         [](TensorForm& f) { f.dimensions[1].stride = 120; });
  expect("the stride of dimension 1 must be a multiple of 16 bytes below 2^40; got 1099511627776",
         [](TensorForm& f) { f.dimensions[1].stride = 1ull << 40; });
  expect("the stride of dimension 0 must be the element's size; got 4",
         [](TensorForm& f) { f.dimensions[0].stride = 4; });
  expect("a row of the box must be a multiple of 16 bytes; got 124", [](TensorForm& f) { f.dimensions[0].box = 62; });
  expect("a row of the box must be as long as the swizzle, 128 bytes; got 64",
         [](TensorForm& f) { f.dimensions[0].box = 32; });
  expect("a row of the box must be as long as the swizzle, 64 bytes; got 128",
         [](TensorForm& f) { f.swizzle = Swizzle::bytes64; });
  CHECK_THROWS_AS(make_map(tensor + 8, right), std::invalid_argument);
}

// ---- Products ------------------------------------------------------------------------------------------------------

namespace {

/// What the shared memory of a product holds: small integers, in halves or bytes.
struct Factor {
  std::vector<int> values;
  std::vector<std::uint8_t> bytes;
  Factor(std::size_t count, bool of_bytes, unsigned seed) : values(count) {
    std::mt19937 random(seed);
    for (int& value : values) {
      value = static_cast<int>(random() % (of_bytes ? 256 : 31)) - (of_bytes ? 128 : 15);
      if (of_bytes) {
        bytes.push_back(static_cast<std::uint8_t>(value));
      } else {
        const std::uint16_t bits = half_bits(value);
        bytes.push_back(static_cast<std::uint8_t>(bits));
        bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
      }
    }
  }
};

void check_product(const ProductForm& form, int warpgroups = 1) {
  CAPTURE(form.bytes);
  CAPTURE(form.a_registers);
  CAPTURE(form.n);
  CAPTURE(form.span);
  CAPTURE(form.steps);
  CAPTURE(form.first_step);
  CAPTURE(form.shift);
  const int row = (form.first_step + form.steps) * (form.bytes ? 32 : 16), rows_b = (form.n + form.shift + 7) / 8 * 8;
  const int first = form.first_step * (form.bytes ? 32 : 16);
  const Factor a(static_cast<std::size_t>(64 * row), form.bytes, 1);
  const Factor b(static_cast<std::size_t>(rows_b * row), form.bytes, 2);
  const auto count = static_cast<std::size_t>(warpgroups * 64 * form.n);
  std::vector<int> before(count), expected(count);
  for (std::size_t i = 0; i < count; ++i) {
    before[i] = static_cast<int>(i % 1000) - 500;
    const int m = static_cast<int>(i) / form.n % 64, column = static_cast<int>(i) % form.n;
    expected[i] = before[i];
    for (int k = first; k < row; ++k)
      expected[i] += a.values[static_cast<std::size_t>(m * row + k)] *
                     b.values[static_cast<std::size_t>((column + form.shift) * row + k)];
  }
  Array<std::uint8_t> of_a(a.bytes, "a"), of_b(b.bytes, "b");
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    Array<T> d(std::vector<T>(before.begin(), before.end()), "d");
    expect_silence([&] { launch_product(form, of_a, of_b, static_cast<T*>(d), warpgroups); });
    CHECK(d.values() == std::vector<T>(expected.begin(), expected.end()));
  };
  form.bytes ? run(0) : run(0.0f);
}

}  // namespace

TEST_CASE("simt hopper: products of all kinds and widths") {
  for (const bool bytes : {false, true})
    for (const bool a_registers : {false, true})
      for (const int span : {128, 64, 0})
        for (const int n : {8, 16, 24, 64, 112, 128, 200, 256})
          if (!(bytes && n == 200)) check_product({bytes, a_registers, n, span, 2, 0, 0});
}

TEST_CASE("simt hopper: descriptors that begin at another row or another step of the sum") {
  for (const int span : {128, 64, 0})
    for (const int shift : {0, 1, 2, 5, 8, 11})
      for (const int first_step : {0, 1, 3}) check_product({span == 64, false, 64, span, 3, first_step, shift});
}

TEST_CASE("simt hopper: two warpgroups") { check_product({false, false, 64, 128, 4, 0, 1}, 2); }

TEST_CASE("simt hopper: products are exact, and rounded once an instruction") {
  // 2048 + 15 products of 2^-13: each alone is lost in float, together they are not.
  std::vector<std::uint8_t> a, b;
  for (int row = 0; row < 64; ++row)
    for (int k = 0; k < 16; ++k)
      for (const std::uint16_t bits : {half_bits(k == 0 ? 2048 : 0x1p-7)})
        a.insert(a.end(), {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8)});
  for (int row = 0; row < 8; ++row)
    for (int k = 0; k < 16; ++k)
      for (const std::uint16_t bits : {half_bits(k == 0 ? 1 : 0x1p-6)})
        b.insert(b.end(), {static_cast<std::uint8_t>(bits), static_cast<std::uint8_t>(bits >> 8)});
  Array<std::uint8_t> of_a(a, "a"), of_b(b, "b");
  Array<float> d(std::vector<float>(512, 0.0f), "d");
  expect_silence([&] { launch_product({false, false, 8, 0, 1, 0, 0}, of_a, of_b, static_cast<float*>(d), 1); });
  CHECK(d.values() == std::vector<float>(512, static_cast<float>(2048 + 15 * 0x1p-13)));
  CHECK(static_cast<float>(2048 + 0x1p-13) == 2048.0f);
}

// ---- Order and misuse ----------------------------------------------------------------------------------------------

namespace {

/// The first fault, of this kind and at the line with the marker, be it of either access.
simt::FaultRecord expect_first(FaultKind kind, const std::string& marker, const std::function<void()>& launch) {
  const auto found = faults(launch);
  REQUIRE(!found.empty());
  CHECK(std::string(simt::to_string(found.front().kind)) == simt::to_string(kind));
  if (!marker.empty()) {
    const simt::SourceLine line = simt::line_of(found.front()), other = simt::other_line_of(found.front());
    const int expected = marked_line(marker);
    CAPTURE(marker);
    CAPTURE(line.line);
    CAPTURE(other.line);
    CHECK((line.line == expected || other.line == expected));
  }
  return found.front();
}

}  // namespace

TEST_CASE("simt hopper: an mbarrier and a named barrier order memory between warps") {
  Array<float> output(32, "output");
  for (const Handoff form : {Handoff::right, Handoff::named}) {
    expect_silence([&] { launch_handoff(output, form); });
    CHECK(output.values() == ramp(32));
  }
  expect_first(FaultKind::stuck_barrier, "handoff, parity", [&] { launch_handoff(output, Handoff::wrong_parity); });
  for (const Handoff form : {Handoff::no_wait, Handoff::named_no_wait, Handoff::named_arrive_after}) {
    CAPTURE(static_cast<int>(form));
    expect_first(FaultKind::race, "handoff", [&] { launch_handoff(output, form); });
  }
}

TEST_CASE("simt hopper: what a thread has learnt it hands on") {
  Array<float> output(96, "output"), input(ramp(32), "input");
  expect_silence([&] { launch_handed_on(output, true); });
  CHECK(output.values()[0] == 5);
  expect_first(FaultKind::race, "handed_on", [&] { launch_handed_on(output, false); });

  expect_silence([&] { launch_passed_on(input, output, PassedOn::by_warp_barrier); });
  expect_silence([&] { launch_passed_on(input, output, PassedOn::by_block_barrier); });
  CHECK(output.values()[95] == 0);
  expect_first(FaultKind::missing_wait, "passed_on", [&] { launch_passed_on(input, output, PassedOn::not_at_all); });
}

TEST_CASE("simt hopper: a copy that has landed is not seen by who has not waited for it") {
  Array<float> input(ramp(32), "input"), output(1, "output");
  expect_silence([&] { launch_two_copies(input, output, false); });
  CHECK(output.values()[0] == 3);
  expect_first(FaultKind::missing_wait, "two_copies", [&] { launch_two_copies(input, output, true); });
}

TEST_CASE("simt hopper: only the groups of stores that were waited for have read their source") {
  Array<float> output(64, "output");
  expect_silence([&] { launch_store_groups(output, true); });
  CHECK(output.values() == std::vector<float>(64, 1.0f));
  expect_first(FaultKind::missing_wait, "store_groups", [&] { launch_store_groups(output, false); });
}

TEST_CASE("simt hopper: misuse of barriers and copies") {
  Array<float> input(ramp(64), "input"), output(64, "output");
  expect_silence([&] { launch_misuse(input, output, Misuse::none); });
  struct Expected {
    Misuse misuse;
    FaultKind kind;
    const char* detail;
  };
  const Expected cases[] = {
      {Misuse::no_init, FaultKind::invalid_barrier, "no mbarrier_init() has made a barrier here"},
      {Misuse::init_unordered, FaultKind::race, ""},
      {Misuse::init_unfenced, FaultKind::missing_proxy_fence, "no fence_mbarrier_init()"},
      {Misuse::too_many_arrivals, FaultKind::invalid_barrier, "one more arrival in a phase than the 1"},
      {Misuse::rank, FaultKind::invalid_operand, "2 coordinates for a tensor map of rank 1"},
      {Misuse::copy_misaligned, FaultKind::misaligned, "byte 4 of the dynamic shared memory is no multiple of 16"},
      {Misuse::copy_out_of_bounds, FaultKind::out_of_bounds, "dynamic shared memory (1024 bytes)"},
      {Misuse::copy_of_15_bytes, FaultKind::invalid_operand, "a multiple of 16 bytes, not 15"},
      {Misuse::named_id, FaultKind::invalid_barrier, "named barriers are 1 to 15"},
      {Misuse::named_threads, FaultKind::invalid_barrier, "not for 48 threads"},
      {Misuse::named_counts, FaultKind::invalid_barrier, "named barrier 1 is for 32 threads here, for 64"},
      {Misuse::named_twice, FaultKind::invalid_barrier, "comes to named barrier 1 twice"},
      {Misuse::barrier_in_global, FaultKind::invalid_barrier, "an mbarrier lies in shared memory"},
      {Misuse::copy_onto_copy, FaultKind::missing_wait, ""},
      {Misuse::copy_over_write, FaultKind::missing_proxy_fence, ""},
      {Misuse::never_waited, FaultKind::missing_wait, ""},
      {Misuse::copy_then_threads, FaultKind::stuck_barrier,
       "mbarrier at byte 8 of 'barriers', phase 1: 0 of 64 arrivals came; threads wait: 1 at line "},
  };
  for (const Expected& e : cases) {
    CAPTURE(static_cast<int>(e.misuse));
    const auto fault = expect_first(e.kind, "", [&] { launch_misuse(input, output, e.misuse); });
    CAPTURE(fault.detail);
    CHECK(fault.detail.find(e.detail) != std::string::npos);
  }
}

TEST_CASE("simt hopper: misuse of wgmma") {
  Array<float> output(128, "output");
  for (const ProductMisuse right :
       {ProductMisuse::none, ProductMisuse::right_after_own_wait, ProductMisuse::oldest_done}) {
    expect_silence([&] { launch_product_misuse(output, right); });
    CHECK(output.values() == std::vector<float>(128, 16.0f));
  }
  struct Expected {
    ProductMisuse misuse;
    FaultKind kind;
    const char *marker, *detail;
  };
  const Expected cases[] = {
      {ProductMisuse::unwritten, FaultKind::uninitialized, "", "nothing in this block has written it"},
      {ProductMisuse::past_end, FaultKind::out_of_bounds, "", "outside of the dynamic shared memory (9216 bytes)"},
      {ProductMisuse::two_rows, FaultKind::misaligned, "", "lie in two rows"},
      {ProductMisuse::unfenced, FaultKind::missing_proxy_fence, "product_misuse, fill", ""},
      {ProductMisuse::unfenced_atomic, FaultKind::missing_proxy_fence, "", ""},
      {ProductMisuse::fenced_too_early, FaultKind::missing_proxy_fence, "product_misuse, fill", ""},
      {ProductMisuse::unordered, FaultKind::race, "product_misuse, fill", ""},
      {ProductMisuse::short_block, FaultKind::divergent_collective, "", "the block ends before the fourth"},
      {ProductMisuse::ended_lane, FaultKind::divergent_collective, "", "needs all 32 lanes"},
      {ProductMisuse::lanes_differ, FaultKind::divergent_collective, "", "the lanes give different operands"},
      {ProductMisuse::overlap, FaultKind::wgmma_in_flight, "", "overlap those of another wgmma"},
      {ProductMisuse::touched_a, FaultKind::missing_wgmma_fence, "", "the registers of A were touched"},
      {ProductMisuse::write_while_read, FaultKind::missing_wait, "product_misuse, write", ""},
      {ProductMisuse::write_after_own_wait, FaultKind::race, "product_misuse, write after", ""},
      {ProductMisuse::descriptor, FaultKind::invalid_operand, "", "no descriptor"},
      {ProductMisuse::newest_in_flight, FaultKind::missing_wait, "product_misuse, newest", ""},
  };
  for (const Expected& e : cases) {
    CAPTURE(static_cast<int>(e.misuse));
    const auto fault = expect_first(e.kind, e.marker, [&] { launch_product_misuse(output, e.misuse); });
    CAPTURE(fault.detail);
    CHECK(fault.detail.find(e.detail) != std::string::npos);
  }
}

// ---- A pipeline ----------------------------------------------------------------------------------------------------

namespace {

struct PipelineData {
  Factor a, b;
  std::vector<std::uint8_t> image;  ///< of A, swizzled
  explicit PipelineData(int rows) : a(128 * 64, false, 1), b(static_cast<std::size_t>(rows * 64), false, 2) {
    image.resize(a.bytes.size());
    for (std::size_t i = 0; i < image.size(); ++i) image[swizzled(i, Swizzle::bytes128)] = a.bytes[i];
  }
};

}  // namespace

TEST_CASE("simt hopper: a pipeline of producer and consumers is right, and without fault") {
  struct Shape {
    int rows, n, slots;
  };
  for (const Shape& shape : {Shape{1, 8, 2},
                             {8, 8, 1},
                             {77, 8, 3},
                             {64, 64, 2},
                             {500, 64, 4},
                             {333, 64, 2},
                             {112, 112, 2},
                             {700, 112, 4},
                             {1000, 112, 3}}) {
    CAPTURE(shape.rows);
    CAPTURE(shape.n);
    CAPTURE(shape.slots);
    const PipelineData data(shape.rows);
    Array<std::uint8_t> a(data.image, "a"), b(data.b.bytes, "b");
    Array<std::uint16_t> out(static_cast<std::size_t>(shape.rows * 128), "out");
    const Counters c = count([&] { launch_pipeline(a, b, out, shape.rows, shape.n, shape.slots, Broken::none); });
    bool right = true;
    const auto got = out.values();
    for (int row = 0; row < shape.rows; ++row) {
      for (int channel = 0; channel < 128; ++channel) {
        int sum = 0;
        for (int k = 0; k < 64; ++k)
          sum += data.a.values[static_cast<std::size_t>(channel * 64 + k)] *
                 data.b.values[static_cast<std::size_t>(row * 64 + k)];
        right &= got[static_cast<std::size_t>(row * 128 + channel)] == half_bits(sum);
      }
    }
    CHECK(right);
    const int tiles = (shape.rows + shape.n - 1) / shape.n;
    CHECK(c.global_load_requests == 1 + tiles);
    CHECK(c.global_load_bytes == 128 * 128 + shape.rows * 128);
    CHECK(c.global_store_requests == 2 * tiles);
    CHECK(c.global_store_bytes == shape.rows * 256);
  }
}

TEST_CASE("simt hopper: a pipeline with one thing broken") {
  const PipelineData data(500);
  Array<std::uint8_t> a(data.image, "a"), b(data.b.bytes, "b");
  Array<std::uint16_t> out(500 * 128, "out");
  struct Expected {
    Broken broken;
    FaultKind kind;
    const char* marker;
  };
  const Expected cases[] = {
      {Broken::expect_too_many, FaultKind::stuck_barrier, "pipeline, full"},
      {Broken::expect_too_few, FaultKind::invalid_barrier, "pipeline, full"},
      {Broken::arrival_missing, FaultKind::stuck_barrier, "pipeline, empty"},
      {Broken::no_empty_wait, FaultKind::invalid_barrier, "pipeline, expect"},
      {Broken::full_for_empty, FaultKind::race, "pipeline, load"},
      {Broken::arrive_before_wait, FaultKind::race, "pipeline, load"},
      {Broken::one_group_arrives, FaultKind::race, "pipeline, load"},
      {Broken::no_full_wait, FaultKind::missing_wait, "pipeline, wgmma"},
      {Broken::no_later_full_wait, FaultKind::missing_wait, "pipeline, wgmma"},
      {Broken::one_lane_waits, FaultKind::missing_wait, "pipeline, wgmma"},
      {Broken::no_proxy_fence, FaultKind::missing_proxy_fence, "pipeline, store"},
      {Broken::no_init_fence, FaultKind::missing_proxy_fence, "pipeline, unfenced"},
      {Broken::no_wgmma_fence, FaultKind::missing_wgmma_fence, "pipeline, wgmma"},
      {Broken::one_wgmma_fence, FaultKind::missing_wgmma_fence, "pipeline, wgmma"},
      {Broken::touched_after_fence, FaultKind::missing_wgmma_fence, "pipeline, touched"},
      {Broken::read_before_wait, FaultKind::wgmma_in_flight, "pipeline, read"},
      {Broken::write_before_wait, FaultKind::wgmma_in_flight, "pipeline, write"},
      {Broken::no_commit, FaultKind::wgmma_in_flight, "pipeline, wait"},
      {Broken::no_staging_wait, FaultKind::missing_wait, "pipeline, stage"},
      {Broken::wait_without_commit, FaultKind::missing_wait, "pipeline, stage"},
      {Broken::no_staging_barrier, FaultKind::missing_wait, "pipeline, store"},
      {Broken::named_count, FaultKind::stuck_barrier, "pipeline, named"},
      {Broken::parity, FaultKind::missing_wait, "pipeline, wgmma"},
      {Broken::other_descriptor, FaultKind::divergent_collective, "pipeline, wgmma"},
      {Broken::one_wgmma_less, FaultKind::divergent_collective, "pipeline, wgmma"},
      {Broken::one_lane_less, FaultKind::divergent_collective, "pipeline, wgmma"},
  };
  for (const Expected& e : cases) {
    CAPTURE(static_cast<int>(e.broken));
    CAPTURE(e.marker);
    const auto fault = expect_first(e.kind, e.marker, [&] { launch_pipeline(a, b, out, 500, 64, 3, e.broken); });
    CHECK(simt::kernel_name(fault.kernel) == "pipeline<64>");
  }
  // The thread that stores may also fence itself, once it knows of the others' writes.
  expect_silence([&] { launch_pipeline(a, b, out, 500, 64, 3, Broken::fence_after_barrier); });
}

// Bulk copies and matrix products of sm_90, alone and together: results against plain loops.
#include "tests/kernel/hopper.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "common/simt/tensor_core.hpp"
#include "tests/kernel/arrays.hpp"
#include "tests/kernel/hopper_data.hpp"

using namespace convladder;

namespace {

std::vector<std::uint8_t> random_bytes(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

struct BoxCase {
  TensorForm form;
  int at[5];
};

/// Calls visit(offset in the box, offset in the tensor or -1) for each byte of the box.
/// @param piece bytes to whose multiple a row of the tensor is rounded up
template <class Visit>
void for_each_byte(const BoxCase& box, long long piece, Visit visit) {
  const TensorForm& form = box.form;
  const auto each = static_cast<long long>(element_bytes(form.element));
  long long index[5] = {}, offset = 0;
  for (bool more = true; more;) {
    long long address = 0;
    bool inside = true;
    for (int i = 0; i < form.rank; ++i) {
      const long long at = box.at[i] + index[i];
      const auto size = static_cast<long long>(form.dimensions[i].size);
      inside &= at >= 0 && at < (i > 0 ? size : (size * each + piece - 1) / piece * piece / each);
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
  std::size_t bytes = element_bytes(form.element);
  for (int i = 0; i < form.rank; ++i) bytes *= form.dimensions[i].box;
  return bytes;
}

std::size_t tensor_bytes(const TensorForm& form) {
  std::size_t bytes = element_bytes(form.element);
  for (int i = 0; i < form.rank; ++i) bytes += (form.dimensions[i].size - 1) * form.dimensions[i].stride;
  return bytes;
}

const BoxCase kBoxes[] = {
    {{TensorElement::fp32, Swizzle::none, 1, {{100, 4, 32}}}, {0}},
    {{TensorElement::fp32, Swizzle::none, 1, {{100, 4, 32}}}, {-4}},
    {{TensorElement::int32, Swizzle::none, 1, {{100, 4, 256}}}, {92}},
    {{TensorElement::fp16, Swizzle::none, 1, {{100, 2, 8}}}, {200}},
    {{TensorElement::int8, Swizzle::none, 2, {{33, 1, 16}, {7, 48, 9}}}, {32, -1}},
    {{TensorElement::fp16, Swizzle::bytes128, 2, {{64, 2, 64}, {40, 128, 26}}}, {0, -1}},
    {{TensorElement::fp16, Swizzle::bytes128, 2, {{64, 2, 64}, {40, 128, 26}}}, {0, 30}},
    {{TensorElement::fp16, Swizzle::bytes128, 2, {{130, 2, 64}, {40, 272, 9}}}, {-8, 5}},
    {{TensorElement::int8, Swizzle::bytes64, 2, {{64, 1, 64}, {40, 64, 26}}}, {0, 20}},
    {{TensorElement::fp32, Swizzle::bytes64, 2, {{21, 4, 16}, {40, 96, 13}}}, {8, 3}},
    {{TensorElement::fp16, Swizzle::bytes128, 3, {{64, 2, 64}, {14, 128, 16}, {6, 1792, 1}}}, {0, -1, 5}},
    {{TensorElement::fp16, Swizzle::bytes128, 3, {{64, 2, 64}, {14, 128, 5}, {6, 1792, 3}}}, {0, 12, -1}},
    {{TensorElement::int8, Swizzle::none, 3, {{16, 1, 16}, {2, 64, 2}, {2, 16, 2}}}, {0, 0, 0}},
    {{TensorElement::fp16, Swizzle::none, 4, {{16, 2, 16}, {5, 32, 3}, {4, 160, 2}, {3, 640, 2}}}, {0, 3, -1, 2}},
    {{TensorElement::int8, Swizzle::none, 5, {{16, 1, 16}, {3, 16, 2}, {4, 48, 3}, {2, 192, 2}, {3, 384, 3}}},
     {0, 1, 2, -1, -1}},
    {{TensorElement::fp32, Swizzle::none, 5, {{9, 4, 4}, {3, 48, 2}, {2, 16, 3}, {2, 160, 1}, {2, 320, 2}}},
     {8, -1, 0, 1, 1}},
};

}  // namespace

// ---- Copies --------------------------------------------------------------------------------------------------------

TEST_CASE("hopper: tensor loads of every rank, with zeros outside the tensor (sm_90)") {
  for (const BoxCase& box : kBoxes) {
    CAPTURE(&box - kBoxes);
    const auto tensor = random_bytes(tensor_bytes(box.form), 1);
    DeviceArray<std::uint8_t> input(tensor, "input"), output(box_bytes(box.form), "output");
    const Counters c = run_kernel([&](Stream stream) {
      launch_tensor_load(input, box.form, box.at, output, static_cast<int>(box_bytes(box.form)), stream);
    });
    std::vector<std::uint8_t> expected(box_bytes(box.form));
    std::int64_t inside = 0;
    std::vector<bool> sectors(tensor.size() / 32 + 1);
    for_each_byte(box, 1, [&](long long offset, long long address) {
      if (address < 0) return;
      expected[swizzled(static_cast<std::size_t>(offset), box.form.swizzle)] =
          tensor[static_cast<std::size_t>(address)];
      ++inside;
      sectors[static_cast<std::size_t>(address / 32)] = true;
    });
    CHECK(output.values() == expected);
    if (backend() == Backend::gpu) continue;
    CHECK(c.global_load_requests == 1);
    CHECK(c.global_load_bytes == inside);
    CHECK(c.global_load_unique_bytes <= inside);
    CHECK(c.global_load_sectors == std::count(sectors.begin(), sectors.end(), true));
  }
}

TEST_CASE("hopper: tensor stores leave what is outside the tensor alone, but for a row's last 16 bytes (sm_90)") {
  for (const BoxCase& loaded : kBoxes) {
    CAPTURE(&loaded - kBoxes);
    BoxCase box = loaded;
    for (int& at : box.at) at = std::max(at, 0);  // where stores may begin
    const auto tensor = random_bytes(tensor_bytes(box.form) + 16, 1), bytes = random_bytes(box_bytes(box.form), 2);
    DeviceArray<std::uint8_t> output(tensor, "output"), input(bytes, "input");
    const Counters c = run_kernel([&](Stream stream) {
      launch_tensor_store(output, box.form, box.at, input, static_cast<int>(box_bytes(box.form)), stream);
    });
    std::vector<std::uint8_t> expected = tensor;
    std::int64_t inside = 0;
    for_each_byte(box, 16, [&](long long offset, long long address) {
      if (address < 0) return;
      expected[static_cast<std::size_t>(address)] = bytes[swizzled(static_cast<std::size_t>(offset), box.form.swizzle)];
      ++inside;
    });
    CHECK(output.values() == expected);
    if (backend() == Backend::gpu) continue;
    CHECK(c.global_store_requests == 1);
    CHECK(c.global_store_bytes == inside);
  }
}

TEST_CASE("hopper: a bulk copy, and a prefetch of the same bytes (sm_90)") {
  const auto bytes = random_bytes(4096, 3);
  for (const int size : {16, 48, 4096}) {
    DeviceArray<std::uint8_t> input(bytes, "input"), output(static_cast<std::size_t>(size), "output");
    const Counters c = run_kernel([&](Stream stream) { launch_bulk_load(input, output, size, stream); });
    CHECK(output.values() == std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + size));
    if (backend() == Backend::gpu) continue;
    CHECK(c.global_load_requests == 1);
    CHECK(c.global_load_bytes == size);
    CHECK(c.global_load_unique_bytes == size);
    CHECK(c.global_load_sectors == (size + 31) / 32);
  }
}

// ---- Products ------------------------------------------------------------------------------------------------------

namespace {

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
  DeviceArray<std::uint8_t> of_a(a.bytes, "a"), of_b(b.bytes, "b");
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    DeviceArray<T> d(std::vector<T>(before.begin(), before.end()), "d");
    run_kernel([&](Stream stream) { launch_product(form, of_a, of_b, static_cast<T*>(d), warpgroups, stream); });
    CHECK(d.values() == std::vector<T>(expected.begin(), expected.end()));
  };
  form.bytes ? run(0) : run(0.0f);
}

}  // namespace

TEST_CASE("hopper: products of all kinds and widths (sm_90)") {
  for (const bool bytes : {false, true})
    for (const bool a_registers : {false, true})
      for (const int span : {128, 64, 0})
        for (const int n : {8, 16, 24, 64, 112, 128, 200, 256})
          if (!(bytes && n == 200)) check_product({bytes, a_registers, n, span, 2, 0, 0});
}

TEST_CASE("hopper: descriptors that begin at another row or another step of the sum (sm_90)") {
  for (const int span : {128, 64, 0})
    for (const int shift : {0, 1, 2, 5, 8, 11})
      for (const int first_step : {0, 1, 3}) check_product({span == 64, false, 64, span, 3, first_step, shift});
}

TEST_CASE("hopper: two warpgroups (sm_90)") { check_product({false, false, 64, 128, 4, 0, 1}, 2); }

// ---- Rounding ------------------------------------------------------------------------------------------------------

namespace {

/// Halves with random signs and fractions, and exponents from a range: 0 for subnormal ones and zero, 1 to 30.
std::vector<std::uint16_t> random_halves(std::size_t count, std::mt19937& random, unsigned least, unsigned most) {
  std::vector<std::uint16_t> halves(count);
  for (std::uint16_t& half : halves)
    half = static_cast<std::uint16_t>((random() & 0x83ff) | (least + random() % (most - least + 1)) << 10);
  return halves;
}

/// Floats likewise, with exponents of two.
std::vector<float> random_floats(std::size_t count, std::mt19937& random, int least, int most) {
  std::vector<float> floats(count);
  for (float& value : floats) {
    const auto exponent = static_cast<unsigned>(least + 127) + random() % static_cast<unsigned>(most - least + 1);
    value = std::bit_cast<float>(static_cast<std::uint32_t>((random() & 0x807fffff) | exponent << 23));
  }
  return floats;
}

/// Multiplies, and requires each sum to be tensor_core_sum()'s, bit by bit; a NaN any NaN.
void check_rounding(const ProductForm& form, const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b,
                    const std::vector<float>& before) {
  CAPTURE(form.a_registers);
  CAPTURE(form.n);
  CAPTURE(form.steps);
  DeviceArray<std::uint16_t> of_a(a, "a"), of_b(b, "b");
  DeviceArray<float> d(before, "d");
  run_kernel([&](Stream stream) { launch_product(form, of_a, of_b, static_cast<float*>(d), 1, stream); });
  const auto got = d.values();
  const auto length = static_cast<std::size_t>(form.steps) * 16, n = static_cast<std::size_t>(form.n);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    float expected = before[i];
    for (std::size_t k = 0; k < length; k += 16)
      expected = simt::tensor_core_sum(&a[i / n * length + k], &b[i % n * length + k], expected);
    if (std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected)) continue;
    if (std::isnan(got[i]) && std::isnan(expected)) continue;
    if (++wrong > 3) continue;
    CAPTURE(i);
    CAPTURE(before[i]);
    CHECK(std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(expected));
  }
  CHECK(wrong == 0);
}

/// Of one wgmma, and of five in a row. @param specials are put among the halves, and among the old sums
void check_rounding(unsigned seed, unsigned least, unsigned most, int least_before, int most_before,
                    const std::vector<std::uint16_t>& special_halves = {},
                    const std::vector<float>& special_floats = {}) {
  std::mt19937 random(seed);
  for (const bool a_registers : {false, true}) {
    for (const int n : {8, 64, 256}) {
      for (const int steps : {1, 5}) {
        const auto length = static_cast<std::size_t>(steps) * 16, columns = static_cast<std::size_t>(n);
        auto a = random_halves(64 * length, random, least, most),
             b = random_halves(columns * length, random, least, most);
        auto before = random_floats(64 * columns, random, least_before, most_before);
        for (auto* halves : {&a, &b})
          for (std::size_t i = 0; i < halves->size() / 16 && !special_halves.empty(); ++i)
            (*halves)[random() % halves->size()] = special_halves[random() % special_halves.size()];
        for (std::size_t i = 0; i < before.size() / 16 && !special_floats.empty(); ++i)
          before[random() % before.size()] = special_floats[random() % special_floats.size()];
        check_rounding({false, a_registers, n, 0, steps, 0, 0}, a, b, before);
      }
    }
  }
}

}  // namespace

TEST_CASE("hopper: sums of halves are cut as MMA-Sim says (sm_90)") {
  check_rounding(1, 13, 16, 0, 4);    // neighbouring exponents
  check_rounding(2, 10, 20, -8, 8);   // terms that others cut in part
  check_rounding(3, 1, 30, -30, 40);  // any normal halves
  check_rounding(4, 1, 8, -30, -8);   // small ones
}

TEST_CASE("hopper: sums of zeros, subnormal halves, and very small and large old sums (sm_90)") {
  check_rounding(5, 0, 3, -60, -20);                           // every fourth subnormal
  check_rounding(6, 0, 30, -126, 127, {0, 0x8000, 1, 0x3ff});  // old sums of any size
  check_rounding(7, 0, 0, -56, -40);
  check_rounding(8, 0, 0, -127, -100, {0, 0x8000}, {0, -0.0f});  // subnormal old sums among them
  std::mt19937 random(9);                                        // and beside zeros alone
  const std::vector<std::uint16_t> a = random_halves(64 * 16, random, 0, 30), zeros(64 * 16, 0);
  auto before = random_floats(64 * 64, random, -127, 127);
  before[0] = -0.0f;
  check_rounding({false, false, 64, 0, 1, 0, 0}, a, zeros, before);
}

TEST_CASE("hopper: sums with NaN and infinity (sm_90)") {
  check_rounding(10, 10, 20, -8, 8, {0, 0x7c00, 0xfc00, 0x7e00});
  check_rounding(11, 10, 20, -8, 8, {}, {INFINITY, -INFINITY, NAN});
}

// ---- A pipeline ----------------------------------------------------------------------------------------------------

TEST_CASE("hopper: a pipeline of producer and consumers is right, and without fault (sm_90)") {
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
    DeviceArray<std::uint8_t> a(data.image, "a"), b(data.b.bytes, "b");
    DeviceArray<std::uint16_t> out(static_cast<std::size_t>(shape.rows * 128), "out");
    const Counters c = run_kernel(
        [&](Stream stream) { launch_pipeline(a, b, out, shape.rows, shape.n, shape.slots, Broken::none, stream); });
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
    if (backend() == Backend::gpu) continue;
    const int tiles = (shape.rows + shape.n - 1) / shape.n;
    CHECK(c.global_load_requests == 1 + tiles);
    CHECK(c.global_load_bytes == 128 * 128 + shape.rows * 128);
    CHECK(c.global_store_requests == 2 * tiles);
    CHECK(c.global_store_bytes == shape.rows * 256);
  }
}

// Barriers, bulk copies and matrix products of sm_90: faults where one thing is missing.
#include "tests/kernel/hopper_data.hpp"
#include "tests/simt/expect.hpp"
#include "tests/simt/hopper_kernels.hpp"

using namespace convladder;
using simt::FaultKind;

// ---- Copies --------------------------------------------------------------------------------------------------------

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
  expect("the step of dimension 1 must be 1 to 8; got 9", [](TensorForm& f) { f.dimensions[1].step = 9; });
  expect("the step of dimension 0 must be 1; got 2", [](TensorForm& f) { f.dimensions[0].step = 2; });

  TensorForm columns{TensorElement::fp16, Swizzle::none, 4, {{64, 2, 64}, {9, 128, 1}, {7, 1152, 1}, {2, 8064, 1}}};
  columns.pixels = 1024;
  CHECK_NOTHROW(make_map(tensor, columns));
  const auto expect_columns = [&](const std::string& rule, const std::function<void(TensorForm&)>& change) {
    TensorForm form = columns;
    change(form);
    CHECK_THROWS_WITH_AS(make_map(tensor, form), ("tensor map: " + rule).c_str(), std::invalid_argument);
  };
  expect_columns("columns are of tensors with 3 to 5 dimensions; got 2", [](TensorForm& f) { f.rank = 2; });
  expect_columns("a column has 1 to 1024 pixels; got 1025", [](TensorForm& f) { f.pixels = 1025; });
  expect_columns("the corners of dimension 2 must be -128 to 127; got -129", [](TensorForm& f) { f.lower[1] = -129; });
  expect_columns("the corners of dimension 1 must be -128 to 127; got 128", [](TensorForm& f) { f.upper[0] = 128; });
  expect_columns("no pixel lies between the corners of dimension 1", [](TensorForm& f) { f.upper[0] = -9; });
  expect_columns("the step of dimension 3 must be 1; got 2", [](TensorForm& f) { f.dimensions[3].step = 2; });
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

TEST_CASE("simt hopper: a prefetch counts nothing, and stays inside one allocation") {
  Array<unsigned char> input(256, "input");  // nothing has written it
  Array<float> output(32, "output");
  const Counters without = count([&] { launch_prefetch(input, output, 0, -1); });
  for (const int bytes : {16, 48, 240}) {
    const Counters with = count([&] { launch_prefetch(input, output, 16, bytes); });
    for (const convladder::CounterField& field : convladder::kCounterFields)
      CHECK(with.*field.member == without.*field.member);
  }
  const auto expect = [&](FaultKind kind, const char* detail, const unsigned char* from, int first, int bytes) {
    const auto fault = expect_first(kind, "prefetch", [&] { launch_prefetch(from, output, first, bytes); });
    CHECK(fault.detail == detail);
  };
  expect(FaultKind::out_of_bounds, "prefetches just past the end of 'input' (256 bytes)", input, 16, 256);
  expect(FaultKind::out_of_bounds, "prefetches 16 bytes before 'input' (256 bytes)", input, -16, 32);
  expect(FaultKind::out_of_bounds, "prefetches an address that is not device memory", nullptr, 16, 16);
  expect(FaultKind::misaligned, "a bulk prefetch begins at a multiple of 16 bytes", input, 8, 16);
  expect(FaultKind::invalid_operand, "a bulk prefetch takes a multiple of 16 bytes, not 24", input, 0, 24);
  expect(FaultKind::invalid_operand, "a bulk prefetch takes a multiple of 16 bytes, not 0", input, 0, 0);
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
      {Misuse::between_pieces, FaultKind::invalid_operand,
       "at a multiple of 16 bytes of the innermost dimension, not at element 3 of 4 bytes"},
      {Misuse::stored_before, FaultKind::invalid_operand,
       "a box that is stored begins inside the tensor or behind it, not at -4"},
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

TEST_CASE("simt hopper: misuse of columns of pixels") {
  Array<float> input(ramp(4 * 5 * 6), "input"), output(4, "output");
  struct Expected {
    ColumnMisuse misuse;
    const char* detail;
  };
  const Expected cases[] = {
      {ColumnMisuse::box_of_columns, "a box of a tensor map for columns of pixels"},
      {ColumnMisuse::column_of_boxes, "a column of pixels of a tensor map for boxes"},
      {ColumnMisuse::before_corner,
       "a column begins at a pixel between the map's corners, -1 to 3 in dimension 1, not at -2"},
      {ColumnMisuse::behind_corner,
       "a column begins at a pixel between the map's corners, -1 to 3 in dimension 1, not at 4"},
      {ColumnMisuse::offset, "the offsets of a column are 0 to 65535, not -1"},
  };
  expect_silence([&] { launch_column_misuse(input, output, ColumnMisuse::none); });
  for (const Expected& e : cases) {
    CAPTURE(static_cast<int>(e.misuse));
    CHECK(expect_first(FaultKind::invalid_operand, "", [&] { launch_column_misuse(input, output, e.misuse); }).detail ==
          e.detail);
  }
}

TEST_CASE("simt hopper: registers that the block does not have") {
  // Nine to twelve warps are three warpgroups to nvcc: 168 registers a thread. 2 x 232 + 40 are 3 x 168.
  expect_silence([] { launch_registers(12, 232); });
  const auto detail = [](int warps, int registers) {
    return expect_first(FaultKind::invalid_operand, "registers, increase", [=] { launch_registers(warps, registers); })
        .detail;
  };
  CHECK(detail(12, 240) ==
        "every fourth warp from 0 on: 3 with 520 registers a thread in all; they were started with 168 each, so on a "
        "GPU they wait forever");
  // What warp 8 leaves helps warps 0 and 4 alone.
  CHECK(detail(9, 232) ==
        "every fourth warp from 1 on: 2 with 464 registers a thread in all; they were started with 168 each, so on a "
        "GPU they wait forever");
  CHECK(detail(12, 160) == "160 registers are no increase: the thread has 168");
}

TEST_CASE("simt hopper: misuse of wgmma") {
  Array<float> output(128, "output");
  for (const ProductMisuse right : {ProductMisuse::none, ProductMisuse::right_after_own_wait,
                                    ProductMisuse::right_after_others_wait, ProductMisuse::oldest_done}) {
    for (const bool of_tf32 : {false, true}) {
      expect_silence([&] { launch_product_misuse(output, right, of_tf32); });
      CHECK(output.values() == std::vector<float>(128, of_tf32 ? 8.0f : 16.0f));
    }
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
      {ProductMisuse::read_after_others_wait, FaultKind::wgmma_in_flight, "product_misuse, sums", ""},
      {ProductMisuse::descriptor, FaultKind::invalid_operand, "", "no descriptor"},
      {ProductMisuse::newest_in_flight, FaultKind::missing_wait, "product_misuse, newest", ""},
      {ProductMisuse::other_element, FaultKind::divergent_collective, "", "the warps of a warpgroup differ"},
  };
  for (const Expected& e : cases) {
    CAPTURE(static_cast<int>(e.misuse));
    for (const bool of_tf32 : {false, true}) {
      if (of_tf32 && e.misuse == ProductMisuse::touched_a) continue;  // A in registers is for halves
      CAPTURE(of_tf32);
      const auto fault = expect_first(e.kind, e.marker, [&] { launch_product_misuse(output, e.misuse, of_tf32); });
      CAPTURE(fault.detail);
      CHECK(fault.detail.find(e.detail) != std::string::npos);
    }
  }
}

// ---- A pipeline ----------------------------------------------------------------------------------------------------

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
    const auto fault =
        expect_first(e.kind, e.marker, [&] { launch_pipeline(a, b, out, 500, 64, 3, e.broken, nullptr); });
    CHECK(simt::kernel_name(fault.kernel) == "pipeline<64>");
  }
  // The thread that stores may also fence itself, once it knows of the others' writes.
  expect_silence([&] { launch_pipeline(a, b, out, 500, 64, 3, Broken::fence_after_barrier, nullptr); });
}

#include "common/harness/commands/fusion_measure.hpp"

#include <doctest/doctest.h>

#include <string>

#include "common/harness/files/problem_io.hpp"

using namespace convladder;

namespace {

// 18 tiles of 4 x 4 outputs; 3 blocks of 8 tiles, 2 of 32 filters, 2 of 16 channels.
const ConvProblem kLayer = parse_shape("n=2,c=20,h=9,w=12,k=40,r=3,s=3");
constexpr double kInput = 2 * 2 * 20 * 9 * 12, kOutput = 2 * 2 * 40 * 9 * 12;
constexpr double kV = 2 * 36 * 18 * 20, kU = 2 * 36 * 20 * 40, kM = 2 * 36 * 18 * 40;

std::vector<KernelModel> model(FusedForm form, std::int64_t l2_bytes = 0) {
  FusedPoint point;
  point.form = form;
  point.tbm = 8;
  point.tbn = 32;
  point.tbk = 16;
  return fused_model(kLayer, point, l2_bytes);
}

}  // namespace

TEST_CASE("model of partial fusion: what each form moves") {
  const auto unfused = model(FusedForm::none);
  REQUIRE(unfused.size() == 3);
  CHECK(unfused[0].dram_bytes == kInput + kV);
  CHECK(unfused[0].l2_bytes == 2 * kV);  // tiles read as many halves as they write
  CHECK(unfused[1].dram_bytes == kV + kU + kM);
  CHECK(unfused[1].l2_bytes == 2 * kV + 3 * kU + kM);
  CHECK(unfused[1].operations == 2.0 * 36 * 24 * 64 * 32);
  CHECK(unfused[2].l2_bytes == kM + kOutput);
  const auto shmem = model(FusedForm::input);
  REQUIRE(shmem.size() == 2);
  CHECK(shmem[0].l2_bytes == 2 * kV + 3 * kU + kM);
  CHECK(shmem[0].shared_bytes == 4 * kV);
  const auto llc = model(FusedForm::through_l2);
  REQUIRE(llc.size() == 2);
  CHECK(llc[0].l2_bytes == 6 * kV + 3 * kU + kM);
  CHECK(llc[0].shared_bytes == 0);
  const auto output = model(FusedForm::output);
  REQUIRE(output.size() == 2);
  CHECK(output[1].l2_bytes == 2 * kV + 3 * kU + kOutput);
}

TEST_CASE("model of partial fusion: tensors that fit L2 stay there") {
  const auto all = static_cast<std::int64_t>(kInput + kOutput + kU + kM);
  CHECK(model(FusedForm::input, all)[0].dram_bytes == 0);
  CHECK(model(FusedForm::input, all - 1)[0].dram_bytes == kInput + kU + kM);
  CHECK(model(FusedForm::none, all)[0].dram_bytes > 0);  // V is a tensor there
}

TEST_CASE("model of partial fusion: a kernel takes its largest term and its start") {
  const ModelCeilings ceilings{1e6, 2e6, 4e6, 1e9, 0.5};
  const char* bound = nullptr;
  CHECK(kernel_time({"", 3, 4, 8, 1000}, ceilings, &bound) == doctest::Approx(3.5));
  CHECK(std::string(bound) == "DRAM");
  CHECK(kernel_time({"", 0, 4, 8, 1000}, ceilings, &bound) == doctest::Approx(2.5));
  CHECK(std::string(bound) == "L2");
  CHECK(kernel_time({"", 0, 0, 12, 4000}, ceilings, &bound) == doctest::Approx(4.5));
  CHECK(std::string(bound) == "Tensor Cores");
  CHECK(kernel_time({"", 0, 0, 12, 1000}, ceilings, &bound) == doctest::Approx(3.5));
  CHECK(std::string(bound) == "shared memory");
  CHECK(kernel_time({"", 0, 0, 0, 0}, ceilings, &bound) == doctest::Approx(0.5));
}

#include "common/harness/run/run_result.hpp"

#include <doctest/doctest.h>

#include <thread>

using namespace convladder;
using namespace std::chrono_literals;

TEST_CASE("15 samples are enough, or 5 that took a second, or 3 that took two") {
  CHECK_FALSE(enough_samples(0, 1h));
  CHECK_FALSE(enough_samples(2, 1h));
  CHECK_FALSE(enough_samples(3, 1999ms));
  CHECK(enough_samples(3, 2s));
  CHECK_FALSE(enough_samples(4, 1999ms));
  CHECK_FALSE(enough_samples(5, 999ms));
  CHECK(enough_samples(5, 1s));
  CHECK_FALSE(enough_samples(14, 999ms));
  CHECK(enough_samples(15, 0s));
}

TEST_CASE("samples are taken until there are enough") {
  int taken = 0;
  const std::vector<double> fast = take_samples([&] { return ++taken; });
  CHECK(fast.size() == kSamples);
  CHECK(fast.front() == 1);
  CHECK(fast.back() == kSamples);
  CHECK(take_samples([] {
          std::this_thread::sleep_for(210ms);
          return 1.0;
        }).size() == 5);
}

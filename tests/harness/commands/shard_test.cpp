#include "common/harness/commands/shard.hpp"

#include <doctest/doctest.h>

#include "common/harness/commands/tuner.hpp"
#include "tests/usage_error.hpp"

using namespace convladder;

TEST_CASE("shards: as text, and what is none") {
  const Shard shard = parse_shard("2/4");
  CHECK(shard.number == 2);
  CHECK(shard.of == 4);
  CHECK(to_string(shard) == "2/4");
  CHECK(to_string(parse_shard("1/1")) == "");  // the whole
  for (const char* text :
       {"", "2", "2/", "/4", "0/4", "5/4", "-1/4", "2/4/8", "2/4 ", "a/b", "1/10001", "1/99999999999999999999"})
    CHECK(usage_error([&] { parse_shard(text); }).find("--shards takes I/N") == 0);
}

TEST_CASE("shards: each thing is dealt to one of them") {
  for (std::size_t place = 0; place < 20; ++place) {
    int dealt = 0;
    for (std::size_t number = 1; number <= 3; ++number) dealt += Shard{number, 3}.has(place) ? 1 : 0;
    CHECK(dealt == 1);
  }
  CHECK(Shard{1, 3}.has(0));
  CHECK(Shard{3, 3}.has(2));
  CHECK(Shard{1, 3}.has(3));
}

TEST_CASE("shards: the parts of a space are the space") {
  static constexpr int kA[] = {1, 2, 3}, kB[] = {1, 2, 3, 4};
  static constexpr Knob kKnobs[] = {{"a", kA, 1}, {"b", kB, 1}};
  const Knobs knobs(kKnobs);
  const auto valid = [](const Configuration& point) { return (point.values[0] + point.values[1]) % 3 != 0; };
  const Space whole(knobs, valid);
  REQUIRE(whole.valid().size() == 8);
  CHECK(whole.valid_in_all() == 8);
  std::size_t points = 0;
  for (std::size_t number = 1; number <= 3; ++number) {
    const Space part(knobs, valid, {number, 3});
    CHECK(part.valid_in_all() == 8);
    for (std::size_t i = 0; i < part.valid().size(); ++i) {
      const Configuration& point = part.valid()[i];
      CHECK(whole.find(point) == number - 1 + 3 * i);
      CHECK(part.find(point) == i);
    }
    for (const Configuration& point : whole.valid())
      CHECK(part.find(point).has_value() == (*whole.find(point) % 3 == number - 1));
    points += part.valid().size();
  }
  CHECK(points == 8);
}

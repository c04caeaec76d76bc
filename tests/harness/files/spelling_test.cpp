#include "common/harness/files/spelling.hpp"

#include <doctest/doctest.h>

namespace convladder {
namespace {

TEST_CASE("the nearest name, if it is near") {
  CHECK(nearest_name("replicat", {"zero", "replicate"}) == "replicate");
  CHECK(nearest_name("ZERO", {"zero", "replicate"}) == "zero");
  CHECK(nearest_name("x", {"zero", "replicate"}).empty());
  CHECK(nearest_name("x", {}).empty());
  CHECK(in_quotes("a\nb") == "'a?b'");
}

}  // namespace
}  // namespace convladder

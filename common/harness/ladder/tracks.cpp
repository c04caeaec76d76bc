#include "common/harness/ladder/tracks.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace convladder {

const Track& track_named(std::string_view name) {
  const auto found = std::ranges::find(tracks(), name, &Track::name);
  if (found == tracks().end()) throw std::logic_error("there is no track " + std::string(name));
  return *found;
}

}  // namespace convladder

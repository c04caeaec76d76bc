/// @file
/// A part of a search or of a benchmark, of several that together are the whole: `--shards 2/4`.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace convladder {

/// One of `of` parts. Things are dealt to them like cards, in their order: the first to the first, and round again.
struct Shard {
  std::size_t number = 1, of = 1;

  /// Whether a thing is dealt to it. @param place of the thing, from 0
  bool has(std::size_t place) const { return place % of == number - 1; }
  /// Whether it is less than the whole.
  bool is_part() const { return of > 1; }
};

/// @param text "2/4" @throws UsageError
Shard parse_shard(std::string_view text);
/// "2/4", or "" for the whole.
std::string to_string(const Shard& shard);

}  // namespace convladder

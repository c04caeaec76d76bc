/// @file
/// Near matches for names that a user mistyped.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace convladder {

/// Of `names`, the one that takes the fewest edits (Levenshtein, ASCII case ignored) to reach from `typed`; empty where
/// even that one takes more than a third of its letters.
std::string_view nearest_name(std::string_view typed, const std::vector<std::string_view>& names);

/// User text on one line, in quotes.
std::string in_quotes(std::string_view text);

}  // namespace convladder

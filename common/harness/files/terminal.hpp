/// @file
/// What the terminal that text goes to can show.
#pragma once
#include <cstddef>
#include <cstdio>
#include <string>

namespace convladder {

/// Of a file or a pipe neither: its text is never cut and never coloured.
struct Terminal {
  std::size_t columns = 0;  ///< 0: no limit
  bool colours = false;
};

/// What a stream writes to. A terminal's width is that of COLUMNS, where that is set; it has colours unless NO_COLOR is
/// set to anything or TERM is "dumb".
Terminal terminal_of(std::FILE* stream);

/// The text with the status that it begins with in colour: wrong, fault and error red, refused dim.
std::string with_coloured_status(const std::string& text, const Terminal& terminal);

}  // namespace convladder

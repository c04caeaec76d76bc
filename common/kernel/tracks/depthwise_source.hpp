/// @file
/// The translation unit that a depthwise stage has compiled when the program runs: the problem's numbers, and those of
/// its configuration, as constants (compiled_kernel.hpp).
#pragma once
#include <cstdio>

#include "common/kernel/tracks/depthwise.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {

/// Text, line by line.
struct KernelSource {
  char text[4096] = "";    ///< so far
  std::size_t length = 0;  ///< of it

  /// Adds lines.
  void add(const char* lines) { advance(std::snprintf(text + length, sizeof text - length, "%s\n", lines)); }
  /// Adds a member of the type that is open: a constant of the number's name.
  void constant(const char* name, long long value) {
    advance(std::snprintf(text + length, sizeof text - length, "  static constexpr int %s = %lld;\n", name, value));
  }
  /// Adds `struct Problem`, with the members of Depthwise.
  void add_problem(const Depthwise& d) {
    add("struct Problem {");
    constant("batch", d.batch);
    constant("channels", d.channels);
    constant("height", d.height);
    constant("width", d.width);
    constant("out_height", d.out_height);
    constant("out_width", d.out_width);
    constant("rows", d.rows);
    constant("columns", d.columns);
    constant("pad_y", d.pad_y);
    constant("pad_x", d.pad_x);
    constant("stride_y", d.stride_y);
    constant("stride_x", d.stride_x);
    constant("dilation_y", d.dilation_y);
    constant("dilation_x", d.dilation_x);
    constant("number_of_padding", static_cast<int>(d.padding));
    add("  static constexpr Padding padding = static_cast<Padding>(number_of_padding);\n};");
  }
  /// Adds the knobs to the type that is open, each by its name.
  void add_knobs(const Configuration& point) {
    for (int i = 0; i < point.knobs.count; ++i) constant(point.knobs.knobs[i].name, point.values[i]);
  }

 private:
  void advance(int written) { length += static_cast<std::size_t>(written); }
};

}  // namespace convladder

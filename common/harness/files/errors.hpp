/// @file
/// What the harness throws where it cannot do what was asked, besides the device's own errors (device.hpp).
#pragma once
#include <stdexcept>

namespace convladder {

/// Unusable arguments or input: one line that names the thing and the remedy. Exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A rule refuses a well-formed problem (a stage's, or reflect padding that reaches past the input). Exit status 3.
struct RefusedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace convladder

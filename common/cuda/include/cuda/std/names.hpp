/// @file
/// The names of cuda::std.
#pragma once
#include <cstddef>

/// @cond
namespace cuda {
namespace std {
using namespace ::std;
}  // namespace std
}  // namespace cuda
/// @endcond

/// @file
/// For the host's inner loops over doubles.
#pragma once

/// A function with this mark is compiled for several vector lengths; the host's is chosen when the program starts. The
/// program is compiled without contraction of products and sums, so the results are the same.
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__)
#define CONVLADDER_FOR_EVERY_VECTOR_LENGTH __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define CONVLADDER_FOR_EVERY_VECTOR_LENGTH
#endif

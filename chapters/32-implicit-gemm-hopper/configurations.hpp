// What stages 32 and 34 take, and their configurations.
#pragma once
#include "chapters/32-implicit-gemm-hopper/strips_and_tiles.cuh"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

// The knob that says whose a tile is. Where both consumers have one, a box of pixels serves 128 filters.
enum { kOwnTiles = 1, kSharedTiles };
constexpr int kTiles[] = {kOwnTiles, kSharedTiles};
constexpr const char* kWhose[] = {"own", "shared"};

template <class Element, int Count>
Verdict check_problem(const ConvProblem& problem, const int (&positions)[Count]) {
  if (const Verdict verdict = check_implicit_gemm_hopper(problem, kTilePixel / Element::kBytes, 2 * kFilters);
      !verdict.accepted())
    return verdict;
  for (const int each : positions)
    if (has_kernel<Element>(problem, each, false)) return Verdict::accept();
  return Verdict::refuse(
      "the taps lie too far apart for a tile's pixels to fit in shared memory; got r={}, s={}, dilation_h={}, "
      "dilation_w={}",
      problem.r, problem.s, problem.dilation_h, problem.dilation_w);
}

template <class Element>
Verdict check_positions(const ConvProblem& problem, int positions, bool shared) {
  if (shared && by_rows(problem))
    return Verdict::refuse("3 x 3 filters of up to 64 channels have strips, no tiles to be shared");
  if (shared && problem.k <= kFilters)
    return Verdict::refuse("a shared tile has 128 filters, so k must be more than 64; got k={}", problem.k);
  if (has_kernel<Element>(problem, positions, shared)) return Verdict::accept();
  if (by_rows(problem))
    return Verdict::refuse("strips, for 3 x 3 filters of up to 64 channels, are {} wide; got positions={}",
                           Element::kStripWords, positions);
  const bool nine = cut_of(problem, shared) == Cut::nine;
  if (nine ? Element::TileSizes::has(positions) : Element::AnyTileSizes::has(positions))
    return Verdict::refuse("no tile of {} positions fits in shared memory with the pixels that it needs", positions);
  return Verdict::refuse("{} have {} positions; got positions={}",
                         nine     ? "tiles of 3 x 3 filters"
                         : shared ? "shared tiles"
                                  : "tiles of such filters",
                         nine ? Element::kTileWords : Element::kAnyTileWords, positions);
}

template <class Element, int Count>
Configuration cheapest_configuration(const Knobs& knobs, const int (&positions)[Count], const ConvProblem& problem,
                                     const DeviceLimits& limits) {
  Configuration configuration = knobs;
  const Choice choice = cheapest<Element>(positions, problem, limits.multiprocessors);
  configuration["positions"] = choice.positions;
  configuration["tiles"] = choice.shared ? kSharedTiles : kOwnTiles;
  return configuration;
}

}  // namespace
}  // namespace convladder

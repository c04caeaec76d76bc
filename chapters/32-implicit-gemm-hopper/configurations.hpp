// What stages 32 and 34 take, and their configurations.
#pragma once
#include "chapters/32-implicit-gemm-hopper/tiles.cuh"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

// The knob that says whose a tile is. Where both consumers have one, a box of pixels serves 128 filters.
enum { kOwnTiles = 1, kSharedTiles };
constexpr int kTiles[] = {kOwnTiles, kSharedTiles};
constexpr const char* kWhose[] = {"own", "shared"};

// The knob that says what a load of pixels is: a box, for all taps of a phase; or a column of im2col's matrix, for one.
enum { kBoxes = 1, kColumns };
constexpr int kLoads[] = {kBoxes, kColumns};
constexpr const char* kOfWhat[] = {"boxes", "columns"};

Choice choice_of(const Configuration& configuration) {
  return {configuration["positions"], configuration["tiles"] == kSharedTiles, configuration["split"],
          configuration["loads"] == kColumns};
}

template <class Element, int Count>
Verdict check_problem(const ConvProblem& problem, const int (&positions)[Count]) {
  if (const Verdict verdict = check_implicit_gemm_hopper(problem, kTilePixel / Element::kBytes, 2 * kFilters);
      !verdict.accepted())
    return verdict;
  for (const int each : positions)
    if (has_kernel<Element>(problem, {each, false, 1}) || has_kernel<Element>(problem, {each, false, 1, true}))
      return Verdict::accept();
  return Verdict::refuse(
      "the taps lie too far apart for a tile's pixels to fit in shared memory; got r={}, s={}, dilation_h={}, "
      "dilation_w={}",
      problem.r, problem.s, problem.dilation_h, problem.dilation_w);
}

template <class Element>
Verdict check_choice(const ConvProblem& problem, const Choice& choice) {
  if (by_rows(problem) && (choice.shared || choice.slices > 1 || choice.columns))
    return Verdict::refuse("3 x 3 filters of up to 64 channels have strips: tiles=own, split=1 and loads=boxes");
  if (choice.columns && !has_columns<Element>(problem))
    return Verdict::refuse(
        "loads=columns wants filters that are not folded, in multiples of {}, at most 127 of padding, and taps that "
        "reach at most 128 beyond it; got k={}, r={}, s={}, pad_h={}, pad_w={}, dilation_h={}, dilation_w={}",
        kChunk<Element>, problem.k, problem.r, problem.s, problem.pad_h, problem.pad_w, problem.dilation_h,
        problem.dilation_w);
  if (choice.shared && problem.k <= kFilters)
    return Verdict::refuse("a shared tile has 128 filters, so k must be more than 64; got k={}", problem.k);
  if (choice.slices > 1 && !choice.columns)
    return Verdict::refuse("boxes have all channels: split={} wants loads=columns", choice.slices);
  if (choice.slices > 1 && !has_slices<Element>(problem, choice))
    return Verdict::refuse(
        "split={} wants tiles=own, at most {} positions, and as many taps of {} channels; got positions={}, c={}, "
        "r={}, s={}",
        choice.slices, kMostSlicePositions, kTilePixel / Element::kBytes, choice.positions, problem.c, problem.r,
        problem.s);
  if (has_kernel<Element>(problem, choice)) return Verdict::accept();
  if (by_rows(problem))
    return Verdict::refuse("strips, for 3 x 3 filters of up to 64 channels, are {} wide; got positions={}",
                           Element::kStripWords, choice.positions);
  if (choice.columns)
    return Verdict::refuse("tiles by columns have {} positions; got positions={}", Element::kLineWords,
                           choice.positions);
  const bool nine = cut_of(problem, choice) == Cut::nine;
  if (nine ? Element::TileSizes::has(choice.positions) : Element::AnyTileSizes::has(choice.positions))
    return Verdict::refuse("no tile of {} positions fits in shared memory with the pixels that it needs",
                           choice.positions);
  return Verdict::refuse("{} have {} positions; got positions={}",
                         nine ? "tiles of 3 x 3 filters" : "tiles of any filter, and shared ones,",
                         nine ? Element::kTileWords : Element::kAnyTileWords, choice.positions);
}

template <class Element, int Count>
Configuration cheapest_configuration(const Knobs& knobs, const int (&positions)[Count], const ConvProblem& problem,
                                     const DeviceLimits& limits) {
  Configuration configuration = knobs;
  const Choice choice = cheapest<Element>(positions, problem, limits.multiprocessors);
  configuration["positions"] = choice.positions;
  configuration["tiles"] = choice.shared ? kSharedTiles : kOwnTiles;
  configuration["split"] = choice.slices;
  configuration["loads"] = choice.columns ? kColumns : kBoxes;
  return configuration;
}

}  // namespace
}  // namespace convladder

/// @file
/// The tracks of the ladder, and in what they differ. The build makes the table from tracks.json beside this file,
/// which CMake and Python read too: a new track is an object there, its workloads in workloads.cpp, and its stages.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "common/harness/check/inputs.hpp"

namespace convladder {

/// Where a track's stages run.
enum class RunsOn {
  device,  ///< the program's: a GPU or the simulator
  host     ///< the host's processor, with every program
};

/// What `bench` compares a track's stages with (rows_beside.hpp), besides what stands on a library, on a GPU.
enum class RowsBeside {
  none,   ///< nothing
  cpu,    ///< libraries for the host, and the ablation of stage 22
  knobs,  ///< its own stages with their knobs at other values
  tiles   ///< stage 35 with other tiles, on a GPU
};

/// A track. The members are tracks.json's keys, which has two more: "title", and "first", the number of its first
/// stage, which says the track of a new one.
struct Track {
  std::string_view name;
  RunsOn runs_on;
  std::string_view suite;  ///< the shapes that its stages are tested with (tests/stage_suite.hpp)
  double fp32_error;       ///< promised bound of the relative root mean square error of its stages of fp32
  FilterForm filter = FilterForm::dense;  ///< of its problems: every stage of the track can run them
  RowsBeside rows_beside = RowsBeside::none;
  bool lowers = false;         ///< to a matrix product: `bench` tells of memory
  bool uses_winograd = false;  ///< some stage needs fewer operations than the direct form, and errors differ
  bool pictures = false;       ///< `image` runs its stages on pictures
  bool sounds = false;         ///< `sound` runs its stages on sounds
  bool alike_on_gpu = false;   ///< its stages do the same on one GPU: there `bench` has one workload of it
  std::vector<std::string_view> prune_shapes = {};  ///< several blocks, several steps of every loop, parts of tiles
};

/// In the order of their first stages' numbers.
std::span<const Track> tracks();

/// @throws std::logic_error if there is none of this name
const Track& track_named(std::string_view name);

}  // namespace convladder

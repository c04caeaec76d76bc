// 41 halo-exchange, its exchange: steps 1 and 2 of halo_exchange.cu.
#pragma once
#include "common/kernel/tracks/several.hpp"

namespace convladder {
namespace {

inline bool owns(const Part& part, std::int64_t row) {
  return row >= part.first_row && row < part.first_row + part.rows;
}

// 1. Sends and receives what the buffer of rank `to` lacks, as far as this rank takes part. Both sides go through the
// rows in the same order: what is sent first is received first.
inline void fill_halo_of(int to, const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) {
  const Part its = band_part(problem, to, all.ranks(), own.unit);
  std::int64_t rows = 1;
  for (std::int64_t at = 0; at < its.problem.h; at += rows) {
    rows = 1;
    if (at == its.above && its.rows > 0) {  // its own
      rows = its.rows;
      continue;
    }
    const std::int64_t source = source_row(problem, its, at);
    if (source < 0) continue;  // zeros
    int owner = 0;
    while (!owns(band_part(problem, owner, all.ranks(), own.unit), source)) ++owner;
    // Neighbours in the buffer that are neighbours in the image go together.
    const Part from = band_part(problem, owner, all.ranks(), own.unit);
    while (at + rows < its.problem.h && at + rows != its.above &&
           source_row(problem, its, at + rows) == source + rows && owns(from, source + rows))
      ++rows;
    const std::int64_t bytes = rows * own.row_bytes;
    for (std::int64_t image = 0; image < its.problem.n; ++image) {
      if (owner == all.rank()) all.send(own.row(image, own.above + source - own.first_row), bytes, to, stream);
      if (to == all.rank()) all.receive(own.row(image, at), bytes, owner, stream);
    }
  }
}

// 2. All of it as one group.
inline void exchange_halos(const ConvProblem& problem, const Part& own, Communicator& all, Stream stream) {
  if (all.ranks() == 1) return;
  all.group_start();
  for (int to = 0; to < all.ranks(); ++to) fill_halo_of(to, problem, own, all, stream);
  all.group_end();
}

}  // namespace
}  // namespace convladder

// The design space of 26 to 30, host side: the knobs that they share, the rules that say which of their values go
// together, and the kernel of a configuration.
//
// A kernel is a template over the form, the fragment's shape and the block's numbers. Compiled for every point of the
// space, it would be in each program hundreds of times. So a program for a GPU holds the kernel of the default alone,
// and prepare() has NVRTC compile that of any other configuration from the same source. In the simulator the block's
// numbers are variables, and one kernel serves all of them.
#pragma once
#include <cstdio>

#include "chapters/26-winograd-tensor-core/half_transforms.cuh"
#include "common/kernel/compiled_kernel.hpp"
#include "common/stage/tunable.hpp"

namespace convladder {
namespace {

// The values of tbm, tbn and tbk, of m, and of fragment.
constexpr int kBlockNumbers[] = {16, 32, 64};
constexpr int kOutputSides[] = {2, 4};
enum { k16x16x16, k32x8x16, k8x32x16 };
constexpr int kFragments[] = {k16x16x16, k32x8x16, k8x32x16};
constexpr const char* kFragmentWords[] = {"16x16x16", "32x8x16", "8x32x16"};

// The filters of a block, where they may be left to the stage: as many as a thread has sums for.
enum { kChosenFilters };
constexpr int kFilterNumbers[] = {kChosenFilters, 16, 32, 64};
constexpr const char* kFilterNumberWords[] = {"auto", "16", "32", "64"};

// A point of the space.
struct Point {
  int m, fragment;
  BlockTile block;

  int size() const { return m + 2; }  // positions of a row, and of a column
  int positions() const { return size() * size(); }
  // Tiles, and filters, of a fragment.
  int fragment_tiles() const { return fragment == k16x16x16 ? 16 : fragment == k32x8x16 ? 32 : 8; }
  int fragment_filters() const { return 256 / fragment_tiles(); }
  // Parts of the product that a block has one of, across the filters and across the tiles.
  int filter_parts(const Winograd& w) const { return blocks_for(padded_filters(w), block.tbn); }
  int tile_parts(const Winograd& w) const { return blocks_for(padded_tiles(w), block.tbm); }
  std::int64_t parts(const Winograd& w) const { return std::int64_t{tile_parts(w)} * filter_parts(w); }
  // Steps over the channels.
  int steps(const Winograd& w) const { return blocks_for(channel_blocks(w) * kBlock, block.tbk); }
};

// The point of a configuration. Filters that are left to the stage are as many as make 1024 sums at a position.
Point point_of(const Configuration& c, int m) {
  const int tbm = c["tbm"], tbn = c["tbn"];
  return {m, c["fragment"], {tbm, tbn == kChosenFilters ? 1024 / tbm : tbn, c["tbk"]}};
}

// The point as types: what a program for a GPU has a kernel of.
template <class F, int M, int N, int Tbm, int Tbn, int Tbk>
struct FixedPoint {
  using Form = F;
  using Shape = FragmentShape<M, N>;
  using Block = FixedBlockTile<Tbm, Tbn, Tbk>;
  static bool is(const Point& p) {
    return p.m == kTileOutputs<F> && p.fragment_tiles() == M && p.block.tbm == Tbm && p.block.tbn == Tbn &&
           p.block.tbk == Tbk;
  }
};

// Calls work with the form of F(m x m, 3 x 3).
template <class Work>
void with_form(int m, const Work& work) {
  if (m == 2)
    work(F2{});
  else
    work(F4Fractions{});
}

// Calls work with the fragment's shape and the block's numbers of the kernel for a point: under nvcc those of the one
// of `BuiltIn` that it is, in the simulator any.
#if defined(__CUDACC__)
template <class First, class... BuiltIn, class Work>
void with_shape_types(const Point& p, const Work& work) {
  if constexpr (sizeof...(BuiltIn) > 0)
    if (!First::is(p)) return with_shape_types<BuiltIn...>(p, work);
  work(typename First::Shape{}, typename First::Block{});
}
#else
template <class... BuiltIn, class Work>
void with_shape_types(const Point& p, const Work& work) {
  if (p.fragment == k16x16x16)
    work(FragmentShape<16, 16>{}, p.block);
  else if (p.fragment == k32x8x16)
    work(FragmentShape<32, 8>{}, p.block);
  else
    work(FragmentShape<8, 32>{}, p.block);
}
#endif
// The same with the form, which all of `BuiltIn` share.
template <class First, class... BuiltIn, class Work>
void with_kernel_types(const Point& p, const Work& work) {
#if defined(__CUDACC__)
  with_shape_types<First, BuiltIn...>(p, [&](auto shape, auto block) { work(typename First::Form{}, shape, block); });
#else
  with_form(p.m, [&](auto form) {
    with_shape_types<First, BuiltIn...>(p, [&](auto shape, auto block) { work(form, shape, block); });
  });
#endif
}

// What every stage asks of a point. A warp has `tiles` x `filters` of the block.
Verdict check_point(const ConvProblem& problem, const Point& p, int tiles, int filters) {
  if (tiles % p.fragment_tiles() != 0 || filters % p.fragment_filters() != 0)
    return Verdict::refuse("a warp has {} tiles x {} filters of a block of {} x {}; whole fragments have {} x {}",
                           tiles, filters, p.block.tbm, p.block.tbn, p.fragment_tiles(), p.fragment_filters());
  // U is padded for the fragments of the others.
  const int padded = padded_filters(winograd_of(problem, p.m));
  if (padded % p.fragment_filters() != 0)
    return Verdict::refuse("k, rounded up to a multiple of 16, must be one of {} for fragment={}; got {}",
                           p.fragment_filters(), kFragmentWords[p.fragment], padded);
  return check_winograd(problem, p.m, kTileUnit);
}

// A thread's sums stay in registers. @param warps that share a column of positions
[[maybe_unused]] Verdict check_sums(const Point& p, int rows, int warps, int most) {
  const int sums = rows * p.block.tbm * p.block.tbn / 32 / warps;
  if (sums <= most) return Verdict::accept();
  return Verdict::refuse("tbm={},tbn={} gives a thread {} sums; its registers have room for {}", p.block.tbm,
                         p.block.tbn, sums, most);
}

// Why a configuration whose kernel is not in the program cannot run: "" where it can.
#if defined(__CUDACC__)
const char* cannot_compile() { return compiling_unavailable(); }
#else
const char* cannot_compile() { return ""; }  // nothing has to be compiled
#endif

// Has the kernel of a point compiled, where the program does not hold it. Its template takes the fragment's shape and
// the block's numbers, and other arguments `before` and `after` these.
void compile_point(CompiledKernel& compiled, const Point& p, const char* file, const char* kernel, const char* before,
                   const char* after) {
  char source[160], name[320];
  std::snprintf(source, sizeof source, "#include \"chapters/%s\"\n", file);
  std::snprintf(name, sizeof name,
                "convladder::%s<%sconvladder::FragmentShape<%d, %d>, convladder::FixedBlockTile<%d, %d, %d>%s>", kernel,
                before, p.fragment_tiles(), p.fragment_filters(), p.block.tbm, p.block.tbn, p.block.tbk, after);
  compiled.compile(source, name);
}
// The form as such an argument.
[[maybe_unused]] const char* form_text(const Point& p) {
  return p.m == 2 ? "convladder::F2, " : "convladder::F4Fractions, ";
}

}  // namespace
}  // namespace convladder

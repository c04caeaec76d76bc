#include "common/harness/check/winograd_error.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>

#include "common/harness/check/half_bits.hpp"
#include "common/kernel/tracks/winograd.hpp"
#include "common/stage/vector_lengths.hpp"

namespace convladder {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDeviations = 8;  // as lambda in relative_bound(): the chance to exceed it is below 1e-14
constexpr double kFloatOverflow = 0x1p128 - 0x1p103;
constexpr int kMostSize = 9;  // of a tile along a side: F(7 x 7)
constexpr int kMostPositions = kMostSize * kMostSize;
constexpr int kLanes = 8;          // tiles that are computed together
constexpr int kFiltersAtOnce = 2;  // filters that share what is loaded of a tile

/// One number for each of kLanes tiles, in as many vectors as the processor needs. Aligned for the longest of them,
/// which only some of the functions below are compiled for.
using Lanes = double __attribute__((vector_size(kLanes * sizeof(double)), aligned(kLanes * sizeof(double))));

// ---- The matrices --------------------------------------------------------------------------------------------------

/// A matrix of a transform.
struct Matrix {
  int rows = 0, columns = 0;
  double at[kMostSize][kMostSize] = {};
  /// In computing a row: the variance of all roundings, over that of one rounding of a number whose square is the sum
  /// of the terms' squares. Each product is rounded, unless the factors are 1; and so are partial sums of 2, 3, ...
  /// terms, whose squares are to each other as the numbers of their terms, if these are independent.
  double roundings[kMostSize] = {};

  template <int kRows, int kColumns>
  constexpr explicit Matrix(const Ratio (&exact)[kRows][kColumns]) : rows(kRows), columns(kColumns) {
    for (int i = 0; i < kRows; ++i) {
      int terms = 0;
      bool multiplies = false;
      for (int j = 0; j < kColumns; ++j) {
        at[i][j] = exact[i][j].value();
        if (exact[i][j].over == 0) continue;
        ++terms;
        multiplies = multiplies || (at[i][j] != 1 && at[i][j] != -1);
      }
      roundings[i] = (terms - 1) * (terms + 2) / (2.0 * terms) + (multiplies ? 1 : 0);
    }
  }
};

/// Instead of WinogradMatrices, along a dimension that is not transformed.
struct Untransformed {
  Ratio input[1][1] = {{1}}, filter[1][1] = {{1}}, output[1][1] = {{1}};
};

struct Matrices {
  Matrix input, filter, output;  // B^T, G, A^T

  template <class Exact>
  constexpr explicit Matrices(const Exact& exact) : input(exact.input), filter(exact.filter), output(exact.output) {}
};

template <class Exact>
const Matrices& matrices() {
  static constexpr Matrices kMatrices{Exact()};
  return kMatrices;
}

const Matrices& matrices_of(int m, bool fractions) {
  if (m == 2) return matrices<WinogradMatrices<F2>>();
  if (m == 4) return fractions ? matrices<WinogradMatrices<F4Fractions>>() : matrices<WinogradMatrices<F4>>();
  if (m == 6) return matrices<WinogradMatrices<F6>>();
  if (m == 7) return matrices<WinogradMatrices<F7>>();
  throw std::logic_error("there is no such form of Winograd's algorithm");
}
const Matrices& matrices_down(const WinogradForm& form) { return matrices_of(form.m, form.fractions); }
const Matrices& matrices_across(const WinogradForm& form) {
  if (form.along_height) return matrices<Untransformed>();
  return matrices_of(form.m_across > 0 ? form.m_across : form.m, form.fractions);
}
/// The sum of a row's magnitudes.
double magnitudes_of(const Matrix& matrix, int row) {
  double sum = 0;
  for (int j = 0; j < matrix.columns; ++j) sum += std::abs(matrix.at[row][j]);
  return sum;
}
/// Half the spacing of what two halves leave of a number that is at most `largest`. Scaled by a power of two such a
/// number is below 2^15, so at least 2^13; in two dimensions, whose factors are rounded up apart, 2^12.
double least_of_halves(double largest) { return std::isfinite(largest) ? largest * 0x1p-37 : 0; }

/// Columns of a filter that M is a sum over.
int columns_of_sum(const WinogradForm& form) { return form.along_height ? kWinogradTaps : 1; }

// ---- Numbers with errors -------------------------------------------------------------------------------------------

/// A type that numbers are rounded to.
struct Rounding {
  double unit;      ///< relative: the unit roundoff
  double least;     ///< absolute: half the spacing of subnormal numbers
  double overflow;  ///< from here on a number is infinite

  double variance(double square) const { return (unit * unit * square + least * least) / 3; }
};
constexpr Rounding kToFloat{0x1p-24, 0x1p-150, kFloatOverflow};
constexpr Rounding kToHalf{0x1p-11, 0x1p-25, kHalfOverflow};
constexpr Rounding kToBf16{0x1p-8, 0x1p-134, kBf16Overflow};
constexpr Rounding kToTwoHalves{0x1p-22, 0, kFloatOverflow};  // scaled: what they lose of small numbers is told apart

/// What transformed numbers are kept in.
const Rounding& kept_in(const WinogradForm& form) {
  if (form.stored == Precision::fp16) return kToHalf;
  if (form.stored == Precision::bf16) return kToBf16;
  return form.split_channels != 0 ? kToTwoHalves : kToFloat;
}

/// What the input, and each operation of its transform, is rounded to.
const Rounding& transformed_in(const WinogradForm& form) {
  return form.stored == Precision::fp32 ? kToFloat : form.stored == Precision::bf16 ? kToBf16 : kToHalf;
}

/// Exact values, the variances of the errors of the computed ones, and what no partial sum on the way exceeds.
struct Uncertain {
  Lanes value, variance, magnitude;
};

/// Infinite variance where a number may have overflowed.
void add_overflow(Uncertain& x, double overflow) {
  for (int lane = 0; lane < kLanes; ++lane)
    if (!(x.magnitude[lane] < overflow)) x.variance[lane] = kInfinity;
}

/// One row of a matrix times `x`, whose elements are `step` apart. A NaN reaches every row, even past a factor of 0.
inline void multiply_row(const Matrix& matrix, int row, const Rounding& rounding, const Uncertain* x, int step,
                         Uncertain& result) {
  Uncertain sum{};
  Lanes squares{};
  for (int j = 0; j < matrix.columns; ++j) {
    const double factor = matrix.at[row][j];
    const Uncertain& element = x[j * step];
    const Lanes term = factor * element.value;
    sum.value += term;
    squares += term * term;
    sum.variance += factor * factor * element.variance;
    sum.magnitude += std::abs(factor) * element.magnitude;
  }
  const double roundings = matrix.roundings[row];
  sum.variance += roundings * (rounding.unit * rounding.unit * squares + rounding.least * rounding.least) / 3;
  result = sum;
}

/// D x A^T. @param x (columns of D, columns of A)  @param result (rows of D, rows of A)
CONVLADDER_FOR_EVERY_VECTOR_LENGTH
void transform(const Matrix& down, const Matrix& across, const Rounding& rounding, const Uncertain* x,
               Uncertain* result) {
  Uncertain half_way[kMostPositions];  // (rows of D, columns of A)
  for (int i = 0; i < down.rows; ++i)
    for (int j = 0; j < across.columns; ++j)
      multiply_row(down, i, rounding, x + j, across.columns, half_way[i * across.columns + j]);
  for (int i = 0; i < down.rows; ++i)
    for (int j = 0; j < across.rows; ++j)
      multiply_row(across, j, rounding, half_way + i * across.columns, 1, result[i * across.rows + j]);
}

// ---- The filter ----------------------------------------------------------------------------------------------------

/// An element of U, and its standard deviation.
struct FilterElement {
  float value = 0, deviation = 0;
};

/// U: (position, k / kFiltersAtOnce, term, k % kFiltersAtOnce), zeros for the filters that are missing from the last
/// few. The terms of a sum are the channels, of each column of the filter that it goes over.
class TransformedFilter {
 public:
  TransformedFilter(const ConvProblem& problem, const WinogradForm& form, const std::vector<float>& filter)
      : channels_(problem.c), terms_(problem.c * columns_of_sum(form)), groups_((problem.k - 1) / kFiltersAtOnce + 1) {
    const Matrix &down = matrices_down(form).filter, &across = matrices_across(form).filter;
    positions_ = down.rows * across.rows;
    elements_.resize(static_cast<std::size_t>(positions_ * groups_ * terms_ * kFiltersAtOnce));
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
    for (std::int64_t k = 0; k < problem.k; ++k) {
      for (std::int64_t c = 0; c < channels_; c += kLanes) add(down, across, form, filter.data(), k, c);
      if (form.stored == Precision::int8) quantise(k);
      if (form.split_channels != 0)
        split(down, across, filter.data() + k * channels_ * kWinogradTaps * kWinogradTaps, k);
    }
  }

  /// The elements of a few filters at a position: (term, kFiltersAtOnce)
  const FilterElement* at(int position, std::int64_t group) const {
    return elements_.data() + (position * groups_ + group) * terms_ * kFiltersAtOnce;
  }
  std::int64_t groups() const { return groups_; }

 private:
  FilterElement& element(int position, std::int64_t k, std::int64_t term) {
    const std::int64_t row = (position * groups_ + k / kFiltersAtOnce) * terms_ + term;
    return elements_[static_cast<std::size_t>(row * kFiltersAtOnce + k % kFiltersAtOnce)];
  }

  /// The channels from c on, as many as there are lanes.
  void add(const Matrix& down, const Matrix& across, const WinogradForm& form, const float* filter, std::int64_t k,
           std::int64_t c) {
    const std::int64_t count = std::min<std::int64_t>(kLanes, channels_ - c);
    for (int column = 0; column < columns_of_sum(form); ++column) {
      Uncertain taps[kWinogradTaps * kWinogradTaps] = {}, result[kMostPositions];
      for (int i = 0; i < down.columns * across.columns; ++i) {
        const int tap = i / across.columns * kWinogradTaps + i % across.columns + column;
        for (std::int64_t lane = 0; lane < count; ++lane) {
          const double value = filter[(k * channels_ + c + lane) * kWinogradTaps * kWinogradTaps + tap];
          taps[i].value[lane] = value;
          taps[i].magnitude[lane] = std::abs(value);
        }
      }
      transform(down, across, kToFloat, taps, result);
      const Rounding& kept = kept_in(form);
      for (int position = 0; position < positions_; ++position) {
        add_overflow(result[position], kept.overflow);
        for (std::int64_t lane = 0; lane < count; ++lane) {
          const double value = result[position].value[lane];
          const double variance = result[position].variance[lane] + kept.variance(value * value);
          element(position, k, column * channels_ + c + lane) = {static_cast<float>(value),
                                                                 static_cast<float>(std::sqrt(variance))};
        }
      }
    }
  }

  void quantise(std::int64_t k) {
    for (int position = 0; position < positions_; ++position) {
      float largest = 0;
      for (std::int64_t c = 0; c < channels_; ++c) largest = std::max(largest, std::abs(element(position, k, c).value));
      const float step_deviation = largest / 127 / std::sqrt(12.0f);
      for (std::int64_t c = 0; c < channels_; ++c) {
        float& deviation = element(position, k, c).deviation;
        deviation = std::hypot(deviation, step_deviation);
      }
    }
  }

  void split(const Matrix& down, const Matrix& across, const float* taps, std::int64_t k) {
    double largest = 0;
    for (std::int64_t i = 0; i < channels_ * kWinogradTaps * kWinogradTaps; ++i)
      if (std::isfinite(taps[i])) largest = std::max(largest, std::abs(double{taps[i]}));
    for (int position = 0; position < positions_; ++position) {
      const double factor = magnitudes_of(down, position / across.rows) * magnitudes_of(across, position % across.rows);
      const auto least = static_cast<float>(least_of_halves(largest * factor) / std::sqrt(3));
      for (std::int64_t term = 0; term < terms_; ++term) {
        float& deviation = element(position, k, term).deviation;
        deviation = std::hypot(deviation, least);
      }
    }
  }

  std::int64_t channels_, terms_, groups_;
  int positions_ = 0;
  std::vector<FilterElement> elements_;
};

// ---- The input -----------------------------------------------------------------------------------------------------

/// The input of a problem, cut into tiles.
class Tiles {
 public:
  Tiles(const ConvProblem& problem, const WinogradForm& form, const std::vector<float>& input)
      : problem_(problem),
        matrix_down_(matrices_down(form).input),
        matrix_across_(matrices_across(form).input),
        rounding_(transformed_in(form)),
        rounds_input_(form.stored != Precision::fp32),
        input_(input.data()),
        m_(form.m),
        m_across_(matrices_across(form).output.rows),
        down_((problem.p() - 1) / m_ + 1),
        across_((problem.q() - 1) / m_across_ + 1) {}

  std::int64_t count() const { return problem_.n * down_ * across_; }
  int positions() const { return matrix_down_.rows * matrix_across_.rows; }

  struct Place {
    std::int64_t n, row, column;  ///< row and column of the first output
  };
  Place place(std::int64_t tile) const {
    return {tile / across_ / down_, tile / across_ % down_ * m_, tile % across_ * m_across_};
  }

  /// Half the spacing of V's numbers of a tile, which are kept as two halves scaled by the largest of some channels.
  double least(std::int64_t tile, std::int64_t first_channel, std::int64_t end_channel) const {
    const Place at = place(tile);
    double largest = 0;
    for (std::int64_t c = first_channel; c < end_channel; ++c) {
      const float* plane = input_ + (at.n * problem_.c + c) * problem_.h * problem_.w;
      for (int i = 0; i < matrix_down_.rows; ++i) {
        const std::int64_t y = source(at.row - problem_.pad_h + i, problem_.h);
        for (int j = 0; y >= 0 && j < matrix_across_.rows; ++j) {
          const std::int64_t x = source(at.column - problem_.pad_w + j, problem_.w);
          if (x >= 0) largest = std::max(largest, std::abs(double{plane[y * problem_.w + x]}));
        }
      }
    }
    double down = 0, across = 0;
    for (int i = 0; i < matrix_down_.rows; ++i) down = std::max(down, magnitudes_of(matrix_down_, i));
    for (int i = 0; i < matrix_across_.rows; ++i) across = std::max(across, magnitudes_of(matrix_across_, i));
    return least_of_halves(largest * down * across);
  }

  /// The same of every tile, scaled by the largest of the whole input, which is then at least 2^10.
  double least_of_all() const {
    double largest = 0;
    for (std::int64_t i = 0; i < problem_.input_size(); ++i)
      if (const double magnitude = std::abs(double{input_[i]}); std::isfinite(magnitude))
        largest = std::max(largest, magnitude);
    return largest * 0x1p-35;
  }

  /// V of one term of some tiles, not yet rounded to what it is stored in. Zeros in further lanes.
  /// @param result (positions)
  void transformed(std::span<const std::int64_t> tiles, std::int64_t term, Uncertain* result) const {
    Uncertain elements[kMostPositions] = {};
    const std::int64_t c = term % problem_.c;
    const std::int64_t first_column = term / problem_.c;
    for (std::size_t lane = 0; lane < tiles.size(); ++lane) {
      const Place at = place(tiles[lane]);
      const float* plane = input_ + (at.n * problem_.c + c) * problem_.h * problem_.w;
      for (int i = 0; i < matrix_down_.rows; ++i) {
        const std::int64_t y = source(at.row - problem_.pad_h + i, problem_.h);
        if (y < 0) continue;
        for (int j = 0; j < matrix_across_.rows; ++j) {
          const std::int64_t x = source(at.column - problem_.pad_w + first_column + j, problem_.w);
          if (x < 0) continue;
          const double value = plane[y * problem_.w + x];
          Uncertain& element = elements[i * matrix_across_.rows + j];
          element.value[lane] = value;
          element.magnitude[lane] = std::abs(value);
          if (rounds_input_) element.variance[lane] = rounding_.variance(value * value);
        }
      }
    }
    transform(matrix_down_, matrix_across_, rounding_, elements, result);
    for (int position = 0; position < positions(); ++position) add_overflow(result[position], rounding_.overflow);
  }

 private:
  /// What the reference reads for the outputs; zeros where a tile reaches so far that reflection does not lead back.
  std::int64_t source(std::int64_t i, std::int64_t size) const {
    const std::int64_t last = size - 1;
    if (problem_.padding == Padding::replicate) return std::clamp<std::int64_t>(i, 0, last);
    if (problem_.padding == Padding::reflect) i = last - std::abs(last - std::abs(i));
    return i < 0 || i > last ? -1 : i;
  }

  const ConvProblem& problem_;
  const Matrix &matrix_down_, &matrix_across_;
  const Rounding& rounding_;
  const bool rounds_input_;
  const float* input_;
  const std::int64_t m_, m_across_, down_, across_;
};

/// How an int8 stage may quantise the elements of V at a position: where clipping values are nearly as good as the
/// best, it may have any of them.
struct Quantisation {
  double step = 0;              ///< the largest
  double clipping = kInfinity;  ///< the smallest
};

/// Finds the clipping values for a position.
/// @param sample |V| of the sample's tiles and channels  @param largest of them
Quantisation calibrate(const std::vector<float>& sample, double largest) {
  if (!std::isfinite(largest)) return {kInfinity, kInfinity};
  std::array<double, kClippingValues> clippings, errors{};
  for (int i = 0; i < kClippingValues; ++i) {
    const auto index = static_cast<std::size_t>(i);
    clippings[index] = largest * (10 - i) / 10;
    if (largest == 0) continue;
    const double step = clippings[index] / 127;
    for (const double magnitude : sample) {
      const double error = magnitude - step * std::min(std::nearbyint(magnitude / step), 127.0);
      errors[index] += error * error;
    }
  }
  Quantisation result{};
  constexpr double kNearly = 1.01;  // the stage computes in fp16 and fp32
  const double enough = kNearly * *std::min_element(errors.begin(), errors.end());
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i] > enough) continue;
    result.step = std::max(result.step, clippings[i] / 127);
    result.clipping = std::min(result.clipping, clippings[i]);
  }
  return result;
}

/// For each position, on the sample.
std::array<Quantisation, kMostPositions> calibrate(const Tiles& tiles, std::int64_t channels) {
  const std::int64_t count = std::min(tiles.count(), kSampleTiles);
  const int positions = tiles.positions();
  std::vector<std::vector<float>> samples(static_cast<std::size_t>(positions));
  std::array<double, kMostPositions> largest{};
  for (std::int64_t first = 0; first < count; first += kLanes) {
    std::array<std::int64_t, kLanes> chosen;
    const auto lanes = static_cast<std::size_t>(std::min<std::int64_t>(kLanes, count - first));
    for (std::size_t lane = 0; lane < lanes; ++lane)
      chosen[lane] = (first + static_cast<std::int64_t>(lane)) * tiles.count() / count;
    Uncertain v[kMostPositions];
    for (std::int64_t c = 0; c < channels; ++c) {
      tiles.transformed({chosen.data(), lanes}, c, v);
      for (std::size_t position = 0; position < samples.size(); ++position) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
          const double magnitude = std::abs(v[position].value[lane]);
          const bool finite = std::isfinite(v[position].variance[lane]);
          largest[position] = std::max(largest[position], finite ? magnitude : kInfinity);
          samples[position].push_back(static_cast<float>(magnitude));
        }
      }
    }
  }
  std::array<Quantisation, kMostPositions> result{};
#ifdef _OPENMP
#pragma omp parallel for schedule(static)
#endif
  for (std::size_t position = 0; position < samples.size(); ++position)
    result[position] = calibrate(samples[position], largest[position]);
  return result;
}

// ---- Products and outputs ------------------------------------------------------------------------------------------

/// An element of V of kLanes tiles; its variance without what is in proportion to its square.
struct InputElement {
  Lanes value, variance;
};

/// Sums over the terms, for kLanes tiles.
struct Sums {
  Lanes value, variance;
  Lanes squares;  ///< of the products
};

/// Sums over the terms, for a few filters. @param v (term)  @param u (term, kFiltersAtOnce)
CONVLADDER_FOR_EVERY_VECTOR_LENGTH
void multiply(const InputElement* v, const FilterElement* u, std::int64_t terms, Sums* sums) {
  Sums sum[kFiltersAtOnce] = {};
  for (std::int64_t term = 0; term < terms; ++term) {
    const Lanes value = v[term].value, variance = v[term].variance, square = value * value;
    for (int k = 0; k < kFiltersAtOnce; ++k) {
      const double factor = u[term * kFiltersAtOnce + k].value, deviation = u[term * kFiltersAtOnce + k].deviation;
      sum[k].value += factor * value;
      const double factor_square = factor * factor;
      sum[k].variance += factor_square * variance + deviation * deviation * square;
      sum[k].squares += factor_square * square;
    }
  }
  std::copy_n(sum, kFiltersAtOnce, sums);
}

/// Computes the bounds, kLanes tiles at a time. One for each thread.
class Bounds {
 public:
  Bounds(const ConvProblem& problem, const WinogradForm& form, const Tiles& tiles, const TransformedFilter& filter,
         const std::array<Quantisation, kMostPositions>& quantisations, std::vector<float>& bounds)
      : problem_(problem),
        form_(form),
        tiles_(tiles),
        filter_(filter),
        quantisations_(quantisations),
        bounds_(bounds),
        positions_(tiles.positions()),
        terms_(problem.c * columns_of_sum(form)),
        kept_(kept_in(form)),
        sum_unit_(form.stored == Precision::fp32   ? 0x1p-24
                  : form.stored == Precision::int8 ? 0
                                                   : 0x1p-22),
        least_of_all_(form.split_channels < 0 ? tiles.least_of_all() : 0),
        v_(static_cast<std::size_t>(positions_ * terms_)) {}

  /// Of the outputs of kLanes tiles from `first` on.
  void compute(std::int64_t first) {
    Lanes least = Lanes{} + least_of_all_ * least_of_all_;  // of V, squared
    for (std::int64_t term = 0; term < terms_; ++term) {
      if (form_.split_channels > 0 && term % form_.split_channels == 0)
        for (std::int64_t lane = 0; lane < std::min<std::int64_t>(kLanes, tiles_.count() - first); ++lane) {
          const double of_tile =
              tiles_.least(first + lane, term, std::min<std::int64_t>(term + form_.split_channels, terms_));
          least[lane] = of_tile * of_tile;
        }
      load(first, term, least);
    }
    for (std::int64_t group = 0; group < filter_.groups(); ++group) {
      Uncertain products[kFiltersAtOnce][kMostPositions];
      for (int position = 0; position < positions_; ++position) {
        Sums sums[kFiltersAtOnce];
        multiply(&v_[static_cast<std::size_t>(position * terms_)], filter_.at(position, group), terms_, sums);
        for (int k = 0; k < kFiltersAtOnce; ++k) products[k][position] = product(sums[k]);
      }
      const std::int64_t k_begin = group * kFiltersAtOnce;
      for (std::int64_t k = k_begin; k < std::min(k_begin + kFiltersAtOnce, problem_.k); ++k)
        store(first, k, products[k - k_begin]);
    }
  }

 private:
  void load(std::int64_t first, std::int64_t term, const Lanes& least) {
    std::array<std::int64_t, kLanes> tiles;
    std::iota(tiles.begin(), tiles.end(), first);
    const std::int64_t count = std::min<std::int64_t>(kLanes, tiles_.count() - first);
    Uncertain v[kMostPositions];
    tiles_.transformed({tiles.data(), static_cast<std::size_t>(count)}, term, v);
    for (int position = 0; position < positions_; ++position) {
      InputElement& element = v_[static_cast<std::size_t>(position * terms_ + term)];
      element.value = v[position].value;
      element.variance = v[position].variance + (kept_.least * kept_.least + least) / 3;
      if (form_.stored == Precision::int8) quantise(quantisations_[static_cast<std::size_t>(position)], element);
    }
  }

  static void quantise(const Quantisation& quantisation, InputElement& element) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double beyond = std::max(0.0, std::abs(element.value[lane]) - quantisation.clipping);
      element.variance[lane] += quantisation.step * quantisation.step / 12 + beyond * beyond;
    }
  }

  /// M of a filter at a position.
  Uncertain product(const Sums& sums) const {
    Uncertain m{sums.value, sums.variance, {}};
    const double terms = static_cast<double>(terms_);
    for (int lane = 0; lane < kLanes; ++lane) {
      const double magnitude = std::abs(m.value[lane]), square = magnitude * magnitude, squares = sums.squares[lane];
      // V is rounded; and of two halves the product of the low ones is left out, which is as small.
      const int losses = form_.split_channels != 0 ? 2 : 1;
      double variance = m.variance[lane] + losses * kept_.unit * kept_.unit / 3 * squares + kToFloat.variance(square);
      // The mean square of partial sums: half of `squares` where the products are independent, a third of the whole
      // sum's where they are alike.
      variance += terms * sum_unit_ * sum_unit_ / 3 * (squares + square) / 2;
      if (form_.half_products) variance += kToHalf.variance(square);
      const double partial = std::min(kDeviations, std::sqrt(terms)) * std::sqrt(squares);
      const double most = magnitude + kDeviations * std::sqrt(variance);
      const bool fits = magnitude + partial < kFloatOverflow && (!form_.half_products || most < kHalfOverflow);
      m.magnitude[lane] = most;
      m.variance[lane] = fits ? variance : kInfinity;
    }
    return m;
  }

  /// Along the height alone, the first and the last of M are added onto sums of the others, a term at a time. On the
  /// way partial sums go from such a sum to y: their mean square is at most half of both squares together.
  void add_in_place(const Uncertain* products, int count, Uncertain* outputs) const {
    Lanes squares{};  // of all sums of two that begin a row
    for (int i = 1; i + 1 < positions_; i += 2) {
      const Lanes sum = products[i].value + products[i + 1].value, rest = products[i].value - products[i + 1].value;
      squares += sum * sum + rest * rest;
    }
    for (int i = 0; i < count; ++i) {
      const Lanes square = outputs[i].value * outputs[i].value;
      outputs[i].variance += static_cast<double>(terms_) * sum_unit_ * sum_unit_ / 3 * (squares + square) / 2;
    }
  }

  void store(std::int64_t first, std::int64_t k, const Uncertain* products) {
    const Matrix &down = matrices_down(form_).output, &across = matrices_across(form_).output;
    Uncertain outputs[kMostPositions];
    transform(down, across, kToFloat, products, outputs);
    if (form_.along_height) add_in_place(products, down.rows, outputs);
    for (int i = 0; i < down.rows * across.rows; ++i) add_overflow(outputs[i], kToFloat.overflow);
    const std::int64_t p = problem_.p(), q = problem_.q();
    for (int lane = 0; lane < std::min<std::int64_t>(kLanes, tiles_.count() - first); ++lane) {
      const Tiles::Place at = tiles_.place(first + lane);
      for (std::int64_t i = 0; i < std::min<std::int64_t>(down.rows, p - at.row); ++i) {
        float* row = bounds_.data() + ((at.n * problem_.k + k) * p + at.row + i) * q + at.column;
        for (std::int64_t j = 0; j < std::min<std::int64_t>(across.rows, q - at.column); ++j) {
          const double variance = outputs[i * across.rows + j].variance[lane];
          row[j] = static_cast<float>(std::isfinite(variance) ? kDeviations * std::sqrt(variance) : kInfinity);
        }
      }
    }
  }

  const ConvProblem& problem_;
  const WinogradForm& form_;
  const Tiles& tiles_;
  const TransformedFilter& filter_;
  const std::array<Quantisation, kMostPositions>& quantisations_;  ///< of int8
  std::vector<float>& bounds_;
  const int positions_;
  const std::int64_t terms_;     ///< of a sum
  const Rounding& kept_;         ///< of V
  const double sum_unit_;        ///< of the sum over the channels
  const double least_of_all_;    ///< half the spacing of V's numbers where the whole input has one scale
  std::vector<InputElement> v_;  ///< (position, term)
};

}  // namespace

OutputBounds winograd_bounds(const ConvProblem& problem, const WinogradForm& form, const HostTensors& tensors) {
  if (problem.r != kWinogradTaps || problem.s != kWinogradTaps || problem.stride_h != 1 || problem.stride_w != 1 ||
      problem.dilation_h != 1 || problem.dilation_w != 1 || problem.groups != 1)
    throw std::logic_error("Winograd's algorithm does not compute this problem");
  const TransformedFilter filter(problem, form, tensors.filter);
  const Tiles tiles(problem, form, tensors.input);
  std::array<Quantisation, kMostPositions> quantisations{};
  if (form.stored == Precision::int8) quantisations = calibrate(tiles, problem.c);

  OutputBounds result;
  result.kept = form.stored == Precision::int8 ? Precision::fp16 : form.stored;
  result.infinities_arrive = form.stored != Precision::int8;
  result.bounds.resize(static_cast<std::size_t>(problem.output_size()));
  const std::int64_t count = tiles.count();
#ifdef _OPENMP
#pragma omp parallel
#endif
  {
    Bounds bounds(problem, form, tiles, filter, quantisations, result.bounds);
#ifdef _OPENMP
#pragma omp for schedule(dynamic)
#endif
    for (std::int64_t first = 0; first < count; first += kLanes) bounds.compute(first);
  }
  return result;
}

}  // namespace convladder

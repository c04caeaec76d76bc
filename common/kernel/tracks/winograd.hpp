/// @file
/// Winograd's minimal filtering F(m, 3), nested to F(m x m', 3 x 3): its matrices, made at compile time from the
/// points, the transforms as kernels use them, and how an output is cut into tiles. Follows Winograd's construction as
/// in Lavin and Gray (CVPR 2016): Y = A^T [(G g) . (B^T d)] along each dimension.
#pragma once
#include "common/kernel/border.hpp"
#include "common/kernel/divisor.hpp"
#include "common/kernel/grid.hpp"

namespace convladder {

// ---- Exact arithmetic, at compile time ------------------------------------------------------------------------------

/// A ratio of two integers in lowest terms, its denominator positive. The matrices below stay far from overflow.
struct Ratio {
  std::int64_t over = 0, under = 1;

  /// 0
  constexpr Ratio() = default;
  /// over / under
  constexpr Ratio(std::int64_t over_, std::int64_t under_ = 1) : over(over_), under(under_) {
    std::int64_t a = over < 0 ? -over : over, b = under < 0 ? -under : under;
    while (b != 0) {
      const std::int64_t rest = a % b;
      a = b;
      b = rest;
    }
    const std::int64_t divisor = under < 0 ? -a : a;
    over /= divisor;
    under /= divisor;
  }
  /// The nearest double.
  constexpr double value() const { return static_cast<double>(over) / static_cast<double>(under); }
};
/// Exact.
constexpr Ratio operator+(Ratio a, Ratio b) { return {a.over * b.under + b.over * a.under, a.under * b.under}; }
/// Exact.
constexpr Ratio operator*(Ratio a, Ratio b) { return {a.over * b.over, a.under * b.under}; }
/// Exact. @param b not 0
constexpr Ratio operator/(Ratio a, Ratio b) { return {a.over * b.under, a.under * b.over}; }
/// Exact.
constexpr Ratio operator-(Ratio a, Ratio b) { return a + Ratio(-1) * b; }
/// Whether they are the same number.
constexpr bool operator==(Ratio a, Ratio b) { return a.over == b.over && a.under == b.under; }

// ---- The points -----------------------------------------------------------------------------------------------------

/// F(2 x 2, 3 x 3): points 0, 1, -1 and infinity.
struct F2 {
  static constexpr int kPairs = 1;           ///< points that come with their negative
  static constexpr bool kInfinity = true;    ///< whether infinity is a point
  static constexpr Ratio kPoints[] = {{1}};  ///< the positive ones; 0 is always there
};
/// F(4 x 4, 3 x 3): points 0, 1, -1, 2, -2 and infinity, as Lavin and Gray have them.
struct F4 {
  static constexpr int kPairs = 2;
  static constexpr bool kInfinity = true;
  static constexpr Ratio kPoints[] = {{1}, {2}};
};
/// F(4 x 4, 3 x 3) with the points 3/4 and 3/2: every coefficient of B and A is exact in fp16, and rounding errors are
/// about half those of F4.
struct F4Fractions {
  static constexpr int kPairs = 2;
  static constexpr bool kInfinity = true;
  static constexpr Ratio kPoints[] = {{3, 4}, {3, 2}};
};
/// F(6 x 6, 3 x 3): points 0, 1, -1, 2, -2, 1/2, -1/2 and infinity.
struct F6 {
  static constexpr int kPairs = 3;
  static constexpr bool kInfinity = true;
  static constexpr Ratio kPoints[] = {{1}, {2}, {1, 2}};
};
/// F(7 x 7, 3 x 3): points 0, 1/2, 1, 3/2, 3 and their negatives. An odd tile does without infinity.
struct F7 {
  static constexpr int kPairs = 4;
  static constexpr bool kInfinity = false;
  static constexpr Ratio kPoints[] = {{1, 2}, {1}, {3, 2}, {3}};
};

/// Taps of a filter along a side.
inline constexpr int kWinogradTaps = 3;
/// Elements of a tile of the input along a side: m + 2. Positions 0 (point 0), then p and -p for each pair, infinity
/// last.
template <class Form>
inline constexpr int kTileSize = 2 * Form::kPairs + (Form::kInfinity ? 2 : 1);
/// Outputs of a tile along a side.
template <class Form>
inline constexpr int kTileOutputs = kTileSize<Form> - kWinogradTaps + 1;

/// Coefficients from which all three matrices follow. With Q(x) = product of (x^2 - p^2) over all pairs, and R_i the
/// same without pair i:
///   B^T: row 0 is sign * Q(x), rows p and -p are (x^2 +- p x) R(x), infinity's is x Q(x);
///   G: row 0 is 1 / |Q(0)|, rows p and -p are scale * (1, +-p, p^2), infinity's is (0, 0, 1);
///   A^T: row j has 0^j, p^j, (-p)^j, and the last infinity's 1.
template <class Form>
struct WinogradCoefficients {
  static constexpr int kPairs = Form::kPairs;
  Ratio q[kPairs + 1]{};      ///< of Q, by powers of x^2; the last is 1
  Ratio r[kPairs][kPairs]{};  ///< of R_i, likewise
  Ratio scale[kPairs]{};      ///< 1 / (2 p^2 R(p))
  Ratio sign;                 ///< such that row 0 of G is positive

  constexpr WinogradCoefficients() {
    multiply_out(q, -1);
    for (int i = 0; i < kPairs; ++i) {
      multiply_out(r[i], i);
      const Ratio square = Form::kPoints[i] * Form::kPoints[i];
      Ratio at_point = 0;
      for (int j = kPairs - 1; j >= 0; --j) at_point = at_point * square + r[i][j];
      scale[i] = Ratio(1) / (Ratio(2) * square * at_point);
    }
    sign = q[0].over < 0 ? -1 : 1;
  }

 private:
  /// The coefficients of the product of (y - p^2) over all pairs but one.
  static constexpr void multiply_out(Ratio* result, int without) {
    int degree = 0;
    result[0] = 1;
    for (int i = 0; i < kPairs; ++i) {
      if (i == without) continue;
      const Ratio square = Form::kPoints[i] * Form::kPoints[i];
      result[degree + 1] = result[degree];
      for (int j = degree; j > 0; --j) result[j] = result[j - 1] - square * result[j];
      result[0] = Ratio(-1) * square * result[0];
      ++degree;
    }
  }
};

/// The three matrices, exactly. Computing with them is what the transforms below do in fewer operations.
template <class Form>
struct WinogradMatrices {
  static constexpr int kSize = kTileSize<Form>, kOutputs = kTileOutputs<Form>;
  Ratio input[kSize][kSize]{};           ///< B^T
  Ratio filter[kSize][kWinogradTaps]{};  ///< G
  Ratio output[kOutputs][kSize]{};       ///< A^T

  constexpr WinogradMatrices() {
    const WinogradCoefficients<Form> c;
    for (int i = 0; i <= Form::kPairs; ++i) {
      input[0][2 * i] = c.sign * c.q[i];
      if (Form::kInfinity) input[kSize - 1][2 * i + 1] = c.q[i];
    }
    filter[0][0] = c.sign / c.q[0];
    if (Form::kInfinity) filter[kSize - 1][kWinogradTaps - 1] = 1;
    for (Ratio(&row)[kSize] : output)
      for (Ratio& element : row) element = 0;  // g++ 12 loses some of the elements that nothing is assigned to
    output[0][0] = 1;
    if (Form::kInfinity) output[kOutputs - 1][kSize - 1] = 1;
    for (int i = 0; i < Form::kPairs; ++i) {
      for (int negative = 0; negative < 2; ++negative) {
        const Ratio point = Ratio(negative ? -1 : 1) * Form::kPoints[i];
        const int row = 1 + 2 * i + negative;
        for (int j = 0; j < Form::kPairs; ++j) {
          input[row][2 * j + 1] = point * c.r[i][j];
          input[row][2 * j + 2] = c.r[i][j];
        }
        Ratio power = 1;
        constexpr int kPowers = kOutputs < kWinogradTaps ? kWinogradTaps : kOutputs;
        for (int j = 0; j < kPowers; ++j, power = power * point) {
          if (j < kWinogradTaps) filter[row][j] = c.scale[i] * power;
          if (j < kOutputs) output[j][row] = power;
        }
      }
    }
  }
};

/// By how much F(m, 3) amplifies rounding errors: the mean variance of an output with an independent error on each of
/// its products, of the product's own size, over that of a direct sum of 3 products. Of nested forms the amplifications
/// multiply.
template <class Form>
constexpr double winograd_amplification() {
  const WinogradMatrices<Form> matrices;
  double sum = 0;
  for (int i = 0; i < kTileSize<Form>; ++i) {
    double input = 0, filter = 0, output = 0;
    for (const Ratio element : matrices.input[i]) input += element.value() * element.value();
    for (const Ratio element : matrices.filter[i]) filter += element.value() * element.value();
    for (const auto& row : matrices.output) output += row[i].value() * row[i].value();
    sum += input * filter * output;
  }
  return sum / (kTileOutputs<Form> * kWinogradTaps);
}

/// @cond
template <class Form>
inline constexpr WinogradCoefficients<Form> kWinograd{};
// What the transforms multiply by. Kernels may use the value of a constant, but call no function of the host's.
template <class Form, int I>
inline constexpr float kPoint = static_cast<float>(Form::kPoints[I].value());
template <class Form, int J>
inline constexpr float kQ = static_cast<float>(kWinograd<Form>.q[J].value());
template <class Form, int J>
inline constexpr float kSignedQ = static_cast<float>((kWinograd<Form>.sign * kWinograd<Form>.q[J]).value());
template <class Form, int I, int J>
inline constexpr float kEven = static_cast<float>(kWinograd<Form>.r[I][J].value());
template <class Form, int I, int J>
inline constexpr float kOdd = static_cast<float>((Form::kPoints[I] * kWinograd<Form>.r[I][J]).value());
template <class Form, class T>
inline constexpr T kFirstScale = static_cast<T>((kWinograd<Form>.sign / kWinograd<Form>.q[0]).value());
template <class Form, int I, int Power, class T>
inline constexpr T kScale = static_cast<T>((kWinograd<Form>.scale[I] * (Power > 0 ? Form::kPoints[I] : Ratio(1)) *
                                            (Power > 1 ? Form::kPoints[I] : Ratio(1)))
                                               .value());
template <class Form, int I, int Power>
inline constexpr float kPower = kPower<Form, I, Power - 1>* kPoint<Form, I>;
template <class Form, int I>
inline constexpr float kPower<Form, I, 0> = 1.0f;
/// @endcond

// ---- The transforms, in registers -----------------------------------------------------------------------------------

/// The arithmetic of the input transform, for float; winograd_half.hpp has it for half2, two channels at a time.
template <class T>
struct WinogradArithmetic {
  /// factor * x
  static __device__ __forceinline__ T multiply(float factor, T x) { return factor * x; }
  /// factor * x + sum
  static __device__ __forceinline__ T multiply_add(float factor, T x, T sum) { return factor * x + sum; }
  static __device__ __forceinline__ T add(T x, T y) { return x + y; }       ///< x + y
  static __device__ __forceinline__ T subtract(T x, T y) { return x - y; }  ///< x - y
};

/// @cond
// Sums of products with constants, without a multiplication where the factor is 1 or -1.
template <class T>
__device__ __forceinline__ T winograd_term(float factor, T x) {
  return factor == 1.0f ? x : WinogradArithmetic<T>::multiply(factor, x);
}
template <class T>
__device__ __forceinline__ T winograd_term(float factor, T x, T sum) {
  using Arithmetic = WinogradArithmetic<T>;
  if (factor == 1.0f) return Arithmetic::add(sum, x);
  if (factor == -1.0f) return Arithmetic::subtract(sum, x);
  return Arithmetic::multiply_add(factor, x, sum);
}

template <class Form, int J = Form::kPairs, class T>
__device__ __forceinline__ T first_row(const T* x) {
  if constexpr (J == 0)
    return winograd_term(kSignedQ<Form, 0>, x[0]);
  else
    return winograd_term(kSignedQ<Form, J>, x[2 * J], first_row<Form, J - 1>(x));
}
template <class Form, int J = Form::kPairs, class T>
__device__ __forceinline__ T last_row(const T* x) {
  if constexpr (J == 0)
    return winograd_term(kQ<Form, 0>, x[1]);
  else
    return winograd_term(kQ<Form, J>, x[2 * J + 1], last_row<Form, J - 1>(x));
}
template <class Form, int I, int J = Form::kPairs - 1, class T>
__device__ __forceinline__ T even_part(const T* x) {
  if constexpr (J == 0)
    return winograd_term(kEven<Form, I, 0>, x[2]);
  else
    return winograd_term(kEven<Form, I, J>, x[2 * J + 2], even_part<Form, I, J - 1>(x));
}
template <class Form, int I, int J = Form::kPairs - 1, class T>
__device__ __forceinline__ T odd_part(const T* x) {
  if constexpr (J == 0)
    return winograd_term(kOdd<Form, I, 0>, x[1]);
  else
    return winograd_term(kOdd<Form, I, J>, x[2 * J + 1], odd_part<Form, I, J - 1>(x));
}
template <class Form, int I = 0, class T>
__device__ __forceinline__ void paired_rows(const T* x, T* v) {
  const T even = even_part<Form, I>(x), odd = odd_part<Form, I>(x);
  v[2 * I + 1] = WinogradArithmetic<T>::add(even, odd);
  v[2 * I + 2] = WinogradArithmetic<T>::subtract(even, odd);
  if constexpr (I + 1 < Form::kPairs) paired_rows<Form, I + 1>(x, v);
}
template <class Form, int I = 0, class T>
__device__ __forceinline__ void paired_taps(const T* g, T* u) {
  const T even = kScale<Form, I, 0, T> * g[0] + kScale<Form, I, 2, T> * g[2], odd = kScale<Form, I, 1, T> * g[1];
  u[2 * I + 1] = even + odd;
  u[2 * I + 2] = even - odd;
  if constexpr (I + 1 < Form::kPairs) paired_taps<Form, I + 1>(g, u);
}
template <class Form, int Power, int I = Form::kPairs - 1>
__device__ __forceinline__ float paired_outputs(const float* m) {
  const float both = Power % 2 ? m[2 * I + 1] - m[2 * I + 2] : m[2 * I + 1] + m[2 * I + 2];
  if constexpr (I == 0)
    return winograd_term(kPower<Form, 0, Power>, both);
  else
    return winograd_term(kPower<Form, I, Power>, both, paired_outputs<Form, Power, I - 1>(m));
}
template <class Form, int J = 0>
__device__ __forceinline__ void output_line(const float* m, float* y) {
  constexpr int kLast = kTileOutputs<Form> - 1;
  y[J] = paired_outputs<Form, J>(m);
  if constexpr (J == 0) y[J] += m[0];
  if constexpr (J == kLast && Form::kInfinity) y[J] += m[kTileSize<Form> - 1];
  if constexpr (J < kLast) output_line<Form, J + 1>(m, y);
}
/// @endcond

/// v = B^T x, one line of a tile. @param x kTileSize values  @param v as many
template <class Form, class T>
__device__ __forceinline__ void transform_input_line(const T* x, T* v) {
  v[0] = first_row<Form>(x);
  paired_rows<Form>(x, v);
  if constexpr (Form::kInfinity) v[kTileSize<Form> - 1] = last_row<Form>(x);
}

/// u = G g, one line of a filter, in float or double. @param g 3 taps  @param u kTileSize values
template <class Form, class T>
__device__ __forceinline__ void transform_filter_line(const T* g, T* u) {
  u[0] = kFirstScale<Form, T> * g[0];
  paired_taps<Form>(g, u);
  if constexpr (Form::kInfinity) u[kTileSize<Form> - 1] = g[2];
}

/// y = A^T m, one line of a tile. @param m kTileSize values  @param y kTileOutputs values
template <class Form>
__device__ __forceinline__ void transform_output_line(const float* m, float* y) {
  output_line<Form>(m, y);
}

/// B^T d B, in place. @param tile [row][column]
template <class Form, class T>
__device__ __forceinline__ void transform_input(T (&tile)[kTileSize<Form>][kTileSize<Form>]) {
  constexpr int kSize = kTileSize<Form>;
  UNROLL
  for (int j = 0; j < kSize; ++j) {
    T x[kSize], v[kSize];
    UNROLL
    for (int i = 0; i < kSize; ++i) x[i] = tile[i][j];
    transform_input_line<Form>(x, v);
    UNROLL
    for (int i = 0; i < kSize; ++i) tile[i][j] = v[i];
  }
  UNROLL
  for (int i = 0; i < kSize; ++i) {
    T v[kSize];
    transform_input_line<Form>(tile[i], v);
    UNROLL
    for (int j = 0; j < kSize; ++j) tile[i][j] = v[j];
  }
}

/// G g G^T. @param taps [r][s]  @param tile [row][column]
template <class Form>
__device__ __forceinline__ void transform_filter(const float (&taps)[kWinogradTaps][kWinogradTaps],
                                                 float (&tile)[kTileSize<Form>][kTileSize<Form>]) {
  constexpr int kSize = kTileSize<Form>;
  float rows[kWinogradTaps][kSize];  // g G^T
  UNROLL
  for (int r = 0; r < kWinogradTaps; ++r) transform_filter_line<Form>(taps[r], rows[r]);
  UNROLL
  for (int j = 0; j < kSize; ++j) {
    float u[kSize];
    const float column[kWinogradTaps] = {rows[0][j], rows[1][j], rows[2][j]};
    transform_filter_line<Form>(column, u);
    UNROLL
    for (int i = 0; i < kSize; ++i) tile[i][j] = u[i];
  }
}

/// A^T m A. @param tile [row][column]  @param outputs [row][column]
template <class Form>
__device__ __forceinline__ void transform_output(const float (&tile)[kTileSize<Form>][kTileSize<Form>],
                                                 float (&outputs)[kTileOutputs<Form>][kTileOutputs<Form>]) {
  constexpr int kSize = kTileSize<Form>, kOutputs = kTileOutputs<Form>;
  float rows[kSize][kOutputs];  // m A
  UNROLL
  for (int i = 0; i < kSize; ++i) transform_output_line<Form>(tile[i], rows[i]);
  UNROLL
  for (int j = 0; j < kOutputs; ++j) {
    float m[kSize], y[kOutputs];
    UNROLL
    for (int i = 0; i < kSize; ++i) m[i] = rows[i][j];
    transform_output_line<Form>(m, y);
    UNROLL
    for (int i = 0; i < kOutputs; ++i) outputs[i][j] = y[i];
  }
}

// ---- Tiles ----------------------------------------------------------------------------------------------------------

/// A batch of images convolved with 3 x 3 filters over all channels at stride 1, its outputs cut into tiles of
/// m x m_across. Passed to kernels by value. Tile t of the batch is row t / tiles_across % tiles_down of image
/// t / (tiles_down * tiles_across), from the top left; its input begins at (m row - pad_y, m_across column - pad_x).
/// The last tiles of a row or column may reach past the outputs.
struct Winograd {
  int batch, channels, filters;
  int height, width;          ///< of an input plane
  int out_height, out_width;  ///< of an output plane
  int pad_y, pad_x;
  Padding padding;
  int m, m_across;               ///< rows and columns of a tile's outputs; the same but in stage 35
  int tiles_down, tiles_across;  ///< of an image
  int tiles;                     ///< of the batch
  Divisor by_down, by_across;    ///< for division by tiles_down and tiles_across
};

/// Where a tile lies.
struct TilePlace {
  int image, row, column;  ///< row and column of its first output
};

#if !defined(__CUDACC_RTC__)
/// Accepts 3 x 3 filters at stride 1 and dilation 1 with groups = 1 and any padding, with sides that 32 bits index.
Verdict check_winograd_form(const ConvProblem& problem);
/// What check_winograd_form() accepts, as long as the tensors and their transforms, whose elements the kernels index
/// with 32 bits, are small enough.
/// @param m outputs of a tile along a side
/// @param padded the transforms' channels, filters and tiles are rounded up to multiples of it
Verdict check_winograd(const ConvProblem& problem, int m, int padded = 1);
/// The same for tiles of m x m_across outputs.
Verdict check_winograd(const ConvProblem& problem, int m, int m_across, int padded);
/// The relative RMS error that fp32 stays below on normal inputs and filters, filters transformed in double. Of C
/// partial sums the squares grow from one part in C to the whole, so their roundings are as many as C / 2 of the whole
/// sum; those of the transforms are worth 8 more. A rounding of x has a variance between 1/12 and 1/3 of (2^-24 x)^2,
/// 0.18 on average; 1/4 leaves room. The squares of errors of a tile and filter spread about as widely as their mean:
/// with few of them twice their standard deviation is added.
/// @param amplification of both dimensions: the product of their winograd_amplification()
/// @param sums tiles times filters
double winograd_error(double amplification, std::int64_t channels, double sums);
/// Elements of the input that the tiles of all channels read: what their outputs need and is inside.
std::int64_t tile_reads(const Winograd& w);
/// The problem as these kernels take it. @param m outputs of a tile along a side
Winograd winograd_of(const ConvProblem& problem, int m);
/// The same for tiles of m x m_across outputs.
Winograd winograd_of(const ConvProblem& problem, int m, int m_across);
#endif

/// The place of tile `tile`, from 0 to w.tiles - 1.
__device__ __forceinline__ TilePlace place_of(const Winograd& w, int tile) {
  const unsigned t = static_cast<unsigned>(tile), row = t / w.by_across;
  return {static_cast<int>(row / w.by_down), static_cast<int>(row % w.by_down) * w.m,
          static_cast<int>(t % w.by_across) * w.m_across};
}

/// The input index that position `i` of the padded input reads along one dimension, or -1 where it reads zero: beyond
/// the padding too, where the last tiles reach, but no output needs it.
__device__ __forceinline__ int tile_index(int i, int size, int pad, Padding padding) {
  return i >= size + pad ? -1 : border_index(i, size, padding);
}

}  // namespace convladder

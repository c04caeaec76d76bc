#include "common/harness/commands/cost_model.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace convladder {
namespace {

constexpr int kTrees = 80;
constexpr int kDepth = 4;          // splits from a root to a leaf, at most
constexpr double kStep = 0.15;     // of what a tree says, how much counts
constexpr std::size_t kLeast = 2;  // rows of a leaf

double sum_of(const std::vector<double>& values, const std::vector<int>& which) {
  return std::accumulate(which.begin(), which.end(), 0.0,
                         [&](double sum, int i) { return sum + values[static_cast<std::size_t>(i)]; });
}

/// The best place to part some rows.
struct Split {
  int feature = -1;
  double threshold = 0;
  double gain = 1e-12;  // of squared errors; less is rounding
};

Split best_split(const std::vector<Features>& rows, const std::vector<double>& residuals, std::vector<int> of_node) {
  const std::size_t count = of_node.size();
  const double all = sum_of(residuals, of_node), before = all * all / static_cast<double>(count);
  Split best;
  for (std::size_t f = 0; f < rows.front().size(); ++f) {
    const auto value = [&](std::size_t place) { return rows[static_cast<std::size_t>(of_node[place])][f]; };
    std::sort(of_node.begin(), of_node.end(), [&](int a, int b) {
      return std::pair(rows[static_cast<std::size_t>(a)][f], a) < std::pair(rows[static_cast<std::size_t>(b)][f], b);
    });
    double left = 0;
    for (std::size_t i = 1; i < count; ++i) {
      left += residuals[static_cast<std::size_t>(of_node[i - 1])];
      if (i < kLeast || count - i < kLeast || value(i - 1) == value(i)) continue;
      const double right = all - left;
      const double gain =
          left * left / static_cast<double>(i) + right * right / static_cast<double>(count - i) - before;
      if (gain > best.gain) best = {static_cast<int>(f), (value(i - 1) + value(i)) / 2, gain};
    }
  }
  return best;
}

}  // namespace

int CostModel::grow(Tree& tree, const std::vector<Features>& rows, const std::vector<double>& residuals,
                    std::vector<int> of_node, int depth) {
  const auto place = static_cast<std::size_t>(tree.size());
  tree.emplace_back();
  tree[place].value = kStep * sum_of(residuals, of_node) / static_cast<double>(of_node.size());
  if (depth == kDepth || of_node.size() < 2 * kLeast) return static_cast<int>(place);
  const Split split = best_split(rows, residuals, of_node);
  if (split.feature < 0) return static_cast<int>(place);
  const auto middle = std::stable_partition(of_node.begin(), of_node.end(), [&](int i) {
    return rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(split.feature)] < split.threshold;
  });
  const int left = grow(tree, rows, residuals, {of_node.begin(), middle}, depth + 1);
  const int right = grow(tree, rows, residuals, {middle, of_node.end()}, depth + 1);
  tree[place] = {split.feature, split.threshold, left, right, 0};
  return static_cast<int>(place);
}

double CostModel::leaf_of(const Tree& tree, const Features& row) {
  const CostNode* node = tree.data();
  while (node->feature >= 0) {
    const bool goes_left = row[static_cast<std::size_t>(node->feature)] < node->threshold;
    node = &tree[static_cast<std::size_t>(goes_left ? node->left : node->right)];
  }
  return node->value;
}

void CostModel::fit(const std::vector<Features>& rows, const std::vector<double>& targets) {
  trees_.clear();
  mean_ = std::accumulate(targets.begin(), targets.end(), 0.0) / static_cast<double>(targets.size());
  std::vector<double> residuals;
  for (const double target : targets) residuals.push_back(target - mean_);
  std::vector<int> all(rows.size());
  std::iota(all.begin(), all.end(), 0);
  for (int t = 0; t < kTrees; ++t) {
    Tree& tree = trees_.emplace_back();
    grow(tree, rows, residuals, all, 0);
    for (std::size_t i = 0; i < rows.size(); ++i) residuals[i] -= leaf_of(tree, rows[i]);
  }
}

double CostModel::predict(const Features& row) const {
  return std::accumulate(trees_.begin(), trees_.end(), mean_,
                         [&](double sum, const Tree& tree) { return sum + leaf_of(tree, row); });
}

}  // namespace convladder

/// @file
/// What the search `model` learns: the cost of a configuration, from those that were tried.
#pragma once
#include <vector>

namespace convladder {

/// What a configuration is told by, in a fixed order.
using Features = std::vector<double>;

/// A node of a tree of costs: a split, or a leaf where `feature` is -1.
struct CostNode {
  int feature = -1;
  double threshold = 0;       ///< smaller ones go to the left
  int left = -1, right = -1;  ///< nodes of the same tree
  double value = 0;           ///< of a leaf
};

/// A regression by gradient-boosted trees (Friedman, 2001), with squared errors: a tree splits the rows by a feature's
/// size, and says for each part how far the trees before it are off, on average. Their scale and order decide nothing
/// but the order of equal splits, so numbers and words may stand side by side.
class CostModel {
 public:
  /// Learns anew. @param rows one for each target, all of one length; at least one
  void fit(const std::vector<Features>& rows, const std::vector<double>& targets);
  /// What it expects; 0 before fit().
  double predict(const Features& row) const;

 private:
  using Tree = std::vector<CostNode>;  // the first is the root

  static int grow(Tree& tree, const std::vector<Features>& rows, const std::vector<double>& residuals,
                  std::vector<int> of_node, int depth);
  static double leaf_of(const Tree& tree, const Features& row);

  double mean_ = 0;
  std::vector<Tree> trees_;
};

}  // namespace convladder

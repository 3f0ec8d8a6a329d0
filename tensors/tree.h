#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensors/param_view.h"

namespace tutti {

// A tree of named tensors: a batch, or the inputs and outputs of a layer. A single tensor is a leaf; a pair
// has the children "0" and "1"; the children of a dict have names. Copies share the tensors.
class TensorTree {
 public:
  using Children = std::vector<std::pair<std::string, TensorTree>>;  // in the order given
  using LeafFunction = std::function<at::Tensor(const at::Tensor&)>;

  TensorTree() = default;                                            // no tensors
  TensorTree(at::Tensor leaf) : leaf_(std::move(leaf)) {}            // NOLINT: a tensor is a tree
  TensorTree(Children children) : children_(std::move(children)) {}  // NOLINT
  static TensorTree list(std::vector<TensorTree> items);             // children "0", "1", ...

  bool is_leaf() const { return leaf_.defined(); }
  bool empty() const { return !is_leaf() && children_.empty(); }
  const at::Tensor& tensor() const;  // throws UserError with their names if there are several
  const Children& children() const { return children_; }

  // A child by name or dotted path. If absent, `at` throws UserError with the existing names, `find` returns
  // null.
  const TensorTree& at(std::string_view path) const;
  const TensorTree* find(std::string_view path) const;
  const at::Tensor& operator[](std::string_view path) const { return at(path).tensor(); }
  void set(const std::string& name, TensorTree child);  // replaces or appends

  // Replaces every leaf by function(leaf).
  TensorTree map(const LeafFunction& function) const;
  // All leaves with their dotted paths, depth first.
  std::vector<std::pair<std::string, at::Tensor>> leaves() const;

  // Number of samples: dim 0 of the first leaf; 0 for an empty tree.
  int64_t samples() const;
  // Samples [first, first + count) of every leaf, as views.
  TensorTree narrow(int64_t first, int64_t count) const;

 private:
  at::Tensor leaf_;
  Children children_;
};

using Batch = TensorTree;
using Outputs = TensorTree;

// Throws UserError: the samples lack an array; `names`: the arrays of the samples.
[[noreturn]] void fail_without_array(const std::string& array, const std::vector<std::string>& names);

// A fact about each array of a sample, by name. If absent, `at` throws UserError with the existing names.
template <class Fact>
class FactsOfArrays : public std::map<std::string, Fact> {
 public:
  using std::map<std::string, Fact>::map;
  const Fact& at(const std::string& array) const {
    if (const auto fact = this->find(array); fact != this->end()) return fact->second;
    std::vector<std::string> names;
    for (const auto& [name, fact] : *this) names.push_back(name);
    fail_without_array(array, names);
  }
};

// The layout of a dataset's samples; a model is built to fit the layout.
struct SampleSpec {
  // Per array, without the sample dimension: "input" -> {1, 8, 8}. -1: of a size that differs among samples.
  FactsOfArrays<Shape> shapes = {};
  int64_t classes = 0;                        // integer targets and tokens are below; 0 = unknown
  FactsOfArrays<at::ScalarType> dtypes = {};  // per array; unknown if missing
  std::vector<std::string> boxes = {};        // arrays of boxes [n, 4] in an image's pixels: x1, y1, x2, y2

  // "uint8 [28, 28]", "int64 number"; the array must exist.
  std::string describe(const std::string& array) const;
};

// "[1, 8, 8]"
std::string shape_text(at::IntArrayRef shape);

// For the error that samples lack `array`: "; it has ...", and how a recipe would give the arrays of an HDF5
// file the names that models read. Of two arrays, the array with a number a sample is the target.
std::string naming_hint(const SampleSpec& samples, const std::string& array);

}  // namespace tutti

#pragma once

#include <torch/csrc/jit/frontend/tree.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace tutti::script {

// Counts the items of tuples that stand in others. libtorch writes their types out, and compares the
// constants among them, as it loads code: in a few lines of `t = (t, t)` for hours.
class NestedTuples {
 public:
  static constexpr int64_t kMost = 10'000;

  // The expression of a function or a class with which there are more than kMost, or null.
  torch::jit::TreeRef excess_in(const torch::jit::TreeRef& code);

 private:
  struct Tuple;
  using TuplePtr = std::shared_ptr<const Tuple>;
  struct Tuple {
    int64_t items = 0;            // with those of its parts
    std::vector<TuplePtr> parts;  // null: no tuple
  };
  static int64_t items_of(const TuplePtr& tuple) { return tuple ? tuple->items : 0; }
  TuplePtr value_of(const torch::jit::TreeRef& tree);
  TuplePtr made(const torch::jit::TreeRef& literal);
  TuplePtr part(const torch::jit::TreeRef& subscript);
  TuplePtr largest_below(const torch::jit::TreeRef& tree);
  void assign(const torch::jit::TreeRef& to, const TuplePtr& value);

  std::unordered_map<std::string, TuplePtr> variables_;
  int blocks_ = 0;  // of `if` and loops, within each other
  int64_t nested_ = 0;
  torch::jit::TreeRef excess_;
};

}  // namespace tutti::script

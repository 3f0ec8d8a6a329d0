#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace tutti {

// The balanced sum of a power of two of values that come one after the other, for each of some tensors: of
// four ((0 + 1) + (2 + 3)). An aligned run of values so has the sum that it has as a subtree of any larger
// sum, as ranks add (collectives/group.h). An undefined value changes no bit.
//
// Holds a partial sum for each power of two below the number of values.
class TreeSum {
 public:
  explicit TreeSum(std::size_t tensors) : partial_(tensors) {}

  // Takes value `index` of a tensor, and may write its memory. Returns the whole sum if it is the `last`,
  // else an undefined tensor. A last value that is undefined may give an undefined sum.
  at::Tensor add(std::size_t tensor, int64_t index, at::Tensor value, bool last);

  // Forgets all values.
  void clear();

  double bytes() const;  // of the partial sums

 private:
  std::vector<std::vector<at::Tensor>> partial_;  // of each tensor, by the power of two
};

// Fills with -0.0, which changes no bit of any number to which it is added; with 0.0 some would change.
void fill_with_nothing(const at::Tensor& tensor);

}  // namespace tutti

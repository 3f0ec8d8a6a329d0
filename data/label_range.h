#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tutti {

// A larger label is damaged, unless the recipe or the data say how many classes there are.
inline constexpr int64_t kMaxInferredClasses = int64_t{1} << 24;

// Labels of data that are classes, and no tokens.
struct LabelRange {
  int64_t smallest = 0, largest = -1;  // -1: not known
  int64_t sample = 0;                  // the first one with the largest
  int64_t present = 0;                 // different labels; 0: the data say how many classes there are
};

// Looks at single labels, which are at least 0.
class LabelCounter {
 public:
  void add(int64_t label, int64_t sample) {
    range_.smallest = range_.largest < 0 ? label : std::min(range_.smallest, label);
    if (label > range_.largest) range_.largest = label, range_.sample = sample;
    if (label < kMaxInferredClasses) count(static_cast<std::size_t>(label));
  }
  const LabelRange& range() const { return range_; }

 private:
  void count(std::size_t label) {
    if (label >= is_present_.size()) is_present_.resize(label + 1);
    if (!is_present_[label]) ++range_.present;
    is_present_[label] = true;
  }

  LabelRange range_;
  std::vector<bool> is_present_;
};

}  // namespace tutti

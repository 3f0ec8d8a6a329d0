#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tutti {

// Labels beyond are damaged, unless somebody says how many classes there are.
inline constexpr int64_t kMaxInferredClasses = int64_t{1} << 24;

// Labels that are classes, and no tokens, as data have them.
struct LabelRange {
  int64_t smallest = 0, largest = -1;  // -1: not known
  int64_t sample = 0;                  // the first one with the largest
  int64_t present = 0;                 // different labels; 0: the data say how many classes there are
};

// Looks at labels one by one, which are at least 0.
class LabelCounter {
 public:
  void add(int64_t label, int64_t sample) {
    const auto place = static_cast<std::size_t>(label);
    if (place >= is_present_.size()) is_present_.resize(place + 1);
    if (is_present_[place]) return;
    is_present_[place] = true;
    range_.smallest = range_.present++ == 0 ? label : std::min(range_.smallest, label);
    if (label > range_.largest) range_.largest = label, range_.sample = sample;
  }
  const LabelRange& range() const { return range_; }

 private:
  LabelRange range_;
  std::vector<bool> is_present_;
};

}  // namespace tutti

#include "data/texts/first_fit.h"

#include <algorithm>

namespace tutti {

FirstFit::Place FirstFit::place(int64_t length) {
  auto sample = std::ranges::find_if(used_, [&](int64_t used) { return length_ - used >= length; });
  if (sample == used_.end()) {
    if (used_.size() == most_open_) {
      used_.pop_front();
      ++first_;
    }
    used_.push_back(0);
    sample = used_.end() - 1;
  }
  const Place place{first_ + (sample - used_.begin()), *sample};
  *sample += length;
  return place;
}

bool FirstFit::is_complete(int64_t sample) const {
  return sample < first_ || used_[static_cast<std::size_t>(sample - first_)] == length_;
}

}  // namespace tutti

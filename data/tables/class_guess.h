#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti {

// Whether the numbers of a column are classes: whole numbers from 0 on without a gap. Free of libtorch.
class ClassGuess {
 public:
  static constexpr int64_t kMostClasses = 1000;

  void add(double number) {
    if (!may_be_ || !(number >= 0 && number < kMostClasses) || number != std::floor(number)) {
      may_be_ = false;
      return;
    }
    const auto place = static_cast<std::size_t>(number);
    if (place >= seen_.size()) seen_.resize(place + 1);
    seen_[place] = true;
  }

  // False once a number is no class.
  bool may_be() const { return may_be_; }
  // 0: the numbers are values.
  int64_t classes() const { return may_be_ && seen_.size() > 1 && gaps() == 0 ? std::ssize(seen_) : 0; }
  // Of whole numbers from 1 on without a gap, which may be classes or values; else 0.
  int64_t classes_from_1() const {
    return may_be_ && seen_.size() > 2 && !seen_[0] && gaps() == 1 ? std::ssize(seen_) - 1 : 0;
  }

 private:
  int64_t gaps() const { return std::ranges::count(seen_, false); }

  bool may_be_ = true;
  std::vector<bool> seen_;
};

}  // namespace tutti

#pragma once

#include <cstddef>
#include <string>

namespace tutti {

// The use of the matches at which a text is split: dropped, kept alone, joined to the part before or behind,
// or joined to each other, as in `tokenizers`.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// A part of a text.
struct TextSpan {
  std::size_t begin = 0, end = 0;
};

// Makes parts of a text out of its matches, which are added from left to right, and calls emit(TextSpan) for
// each part that is not empty.
template <class Emit>
class Splitting {
 public:
  Splitting(SplitBehavior behavior, bool invert, Emit emit)
      : behavior_(behavior), invert_(invert), emit_(std::move(emit)) {}

  void add_match(TextSpan match) {
    if (match.begin != end_) add({end_, match.begin}, false);
    add(match, true);
    end_ = match.end;
  }

  void finish(std::size_t text_bytes) {
    if (end_ != text_bytes) add({end_, text_bytes}, false);
    flush();
  }

 private:
  void add(TextSpan part, bool is_match) {
    if (invert_) is_match = !is_match;
    switch (behavior_) {
      case SplitBehavior::kRemoved:
        if (!is_match) emit(part);
        return;
      case SplitBehavior::kIsolated:
        return emit(part);
      default:
        if (pending_ && joins(is_match)) {
          last_.end = part.end;
        } else {
          flush();
          last_ = part;
          pending_ = true;
        }
        last_is_match_ = is_match;
    }
  }

  // True if the next part joins the last part.
  bool joins(bool is_match) const {
    if (behavior_ == SplitBehavior::kContiguous) return is_match == last_is_match_;
    if (behavior_ == SplitBehavior::kMergedWithPrevious) return is_match && !last_is_match_;
    return last_is_match_ && !is_match;
  }

  void flush() {
    if (pending_) emit(last_);
    pending_ = false;
  }

  void emit(TextSpan part) {
    if (part.begin != part.end) emit_(part);
  }

  SplitBehavior behavior_;
  bool invert_;
  Emit emit_;
  std::size_t end_ = 0;  // of the last match
  TextSpan last_;
  bool pending_ = false, last_is_match_ = false;
};

}  // namespace tutti

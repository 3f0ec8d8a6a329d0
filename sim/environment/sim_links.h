#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/clock.h"

namespace tutti {

// The directed links between ranks, which carry control messages and the data of collectives. A link loses
// nothing and keeps the order; faults make a link slow or hold it. Not thread-safe: used by the holder of the
// run token.
class SimLinks {
 public:
  // The fault of this label affected a message, whose way lasts until then; kNever: the message stays held.
  using OnEffect = std::function<void(const std::string& label, TimePoint until)>;

  explicit SimLinks(OnEffect on_effect) : on_effect_(std::move(on_effect)) {}

  // Messages that leave in [begin, end) leave at `end`; kNever: never. The sender or the receiver may be
  // kAnyRank.
  static constexpr int kAnyRank = -1;
  struct Hold {
    int from = kAnyRank, to = kAnyRank;
    TimePoint begin, end;
    std::string label;  // of the fault
  };
  void hold(const Hold& hold) { holds_.push_back(hold); }
  // The next `count` messages of the link take `more` longer.
  struct Slowness {
    int from = 0, to = 0;
    Nanoseconds more{0};
    int64_t count = 0;
    std::string label;  // of the fault
  };
  void slow(const Slowness& slowness) { slow_.push_back(slowness); }

  // When a message that is sent at `sent` has passed the link. At most the current time if no fault affects
  // the message.
  TimePoint pass(int from, int to, TimePoint sent);
  // True if no link has had a fault so far.
  bool calm() const { return holds_.empty() && slow_.empty(); }

 private:
  OnEffect on_effect_;
  std::vector<Hold> holds_;
  std::vector<Slowness> slow_;
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collectives/device/groups.h"
#include "collectives/mesh.h"
#include "runtime/actor/actor.h"

namespace tutti {

// The groups of a rank, and the collectives that are under way on them.
class GroupWork {
 public:
  using Then = std::function<void(Context&)>;
  static constexpr Nanoseconds kYieldFor = std::chrono::microseconds(200);
  static constexpr Nanoseconds kShortestPoll = std::chrono::microseconds(20);
  static constexpr Nanoseconds kLongestPoll = std::chrono::milliseconds(2);

  void join(Groups groups, TimePoint now);
  bool joined() const { return groups_.front() != nullptr; }
  bool ready() const { return tutti::ready(groups_); }
  Group& group(GroupRole role) const { return *groups_[static_cast<std::size_t>(role)]; }
  void check() const;  // Group::check

  // `then`, which may be empty, is called when the work is done.
  void post(TimePoint now, GroupRole role, WorkPtr work, Then then);
  // Calls `then` of finished work, in the order of posting within a group, each as it comes. True if any work
  // has finished. `done`: whether a work is.
  bool drive(Context& context, const std::function<bool(Work& work)>& done);

  // Something has moved: waiting begins anew.
  void note_progress(TimePoint now) { progress_ = now; }
  int64_t moves() const;  // Group::moves of all groups
  // `busy`: with the groups themselves. `waits`: Compute does.
  TimePoint next_poll(TimePoint now, bool busy, bool waits) const;

 private:
  struct Outstanding {
    GroupRole group;
    WorkPtr work;
    Then then;
    bool over = false;
  };

  Groups groups_;  // none before join
  std::vector<Outstanding> outstanding_;
  TimePoint progress_;  // when a collective was last posted or finished
};

}  // namespace tutti

#include "actors/group_work.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "runtime/error.h"

namespace tutti {

void GroupWork::join(Groups groups, TimePoint now) {
  TUTTI_ASSERT(!joined(), "a second Join");
  progress_ = now;
  groups_ = std::move(groups);
}

void GroupWork::check() const {
  for (const auto& group : groups_)
    if (group) group->check();
}

int64_t GroupWork::moves() const {
  int64_t moves = 0;
  for (const auto& group : groups_)
    if (group) moves += group->moves();
  return moves;
}

void GroupWork::post(TimePoint now, GroupRole role, WorkPtr work, Then then) {
  outstanding_.push_back({role, std::move(work), std::move(then)});
  progress_ = now;
}

bool GroupWork::drive(Context& context, const std::function<bool(Work& work)>& done) {
  std::array<bool, kGroupRoles> waits{};
  for (auto& collective : outstanding_) {
    bool& behind = waits[static_cast<std::size_t>(collective.group)];
    behind = !done(*collective.work) || behind;
    collective.over = !behind;
  }
  const auto first =
      std::ranges::stable_partition(outstanding_, std::logical_not(), &Outstanding::over).begin();
  if (first == outstanding_.end()) return false;
  const std::vector<Outstanding> over(std::make_move_iterator(first),
                                      std::make_move_iterator(outstanding_.end()));
  outstanding_.erase(first, outstanding_.end());
  for (const auto& collective : over)
    if (collective.then) collective.then(context);
  return true;
}

TimePoint GroupWork::next_poll(TimePoint now, bool busy, bool waits) const {
  if (outstanding_.empty() && !busy) return now + kLongestPoll;
  const Nanoseconds waited = now - progress_;
  if (waits && waited < kYieldFor) return now;
  return now + std::clamp<Nanoseconds>(waited / 16, kShortestPoll, kLongestPoll);
}

}  // namespace tutti

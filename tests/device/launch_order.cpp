#include "tests/device/launch_order.h"

#include <iterator>

namespace tutti::test_device {

namespace {

std::string named(const Rendezvous::Rank& rank) { return "rank " + std::to_string(rank.world_rank); }

}  // namespace

LaunchOrder& launch_order() {
  static auto& order = *new LaunchOrder;
  return order;
}

int LaunchOrder::add_communicator(int world_rank) {
  const std::lock_guard lock(mutex_);
  return communicators_[world_rank]++;
}

uint64_t LaunchOrder::add(int world_rank, const std::string& text) {
  const std::lock_guard lock(mutex_);
  calls_[world_rank].push_back(text);
  return ++next_[world_rank];
}

std::map<int, std::vector<std::string>> LaunchOrder::take_calls() {
  const std::lock_guard lock(mutex_);
  communicators_.clear();
  return std::exchange(calls_, {});
}

std::string LaunchOrder::compare(const Rendezvous::Rank& own, const Call& mine, const Rendezvous::Rank& other,
                                 const Call& theirs) {
  if (!mine.matches(theirs))
    return "ranks launched different collectives: " + named(own) + " " + mine.text() + ", " + named(other) +
           " " + theirs.text();
  const std::lock_guard lock(mutex_);
  auto& common = common_[{own.world_rank, other.process, other.world_rank}];
  const auto [here, is_new] = common.insert({mine.place, {theirs.place, mine.text()}});
  const auto crossed = [&](const auto& before, const auto& after) {
    return "ranks launched collectives in different orders: " + named(own) + " " + before.text + " before " +
           after.text + ", " + named(other) + " " + after.text + " before " + before.text;
  };
  if (here != common.begin() && std::prev(here)->second.theirs > theirs.place)
    return crossed(std::prev(here)->second, here->second);
  if (std::next(here) != common.end() && std::next(here)->second.theirs < theirs.place)
    return crossed(here->second, std::next(here)->second);
  if (common.size() > kKept) common.erase(common.begin());
  return "";
}

}  // namespace tutti::test_device

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "collectives/local/group.h"
#include "runtime/random.h"
#include "sim/environment/sim_scheduler.h"

namespace tutti {

// The collectives of a simulated world: those of LocalFabric, seen to end at times of their own on each rank,
// and with what goes wrong under MPI: a collective that waits for a rank whose process has ended fails half a
// second after it began, and one may hang.
class SimFabric {
 public:
  static constexpr Nanoseconds kPatience = std::chrono::milliseconds(500);

  // `gone`: whether a rank's process has ended. `check` may throw when the rank that calls is no more.
  struct Hooks {
    std::function<bool(int rank)> gone;
    std::function<void(int rank)> check;
  };
  SimFabric(SimScheduler& scheduler, int size, const RandomKey& draw, Hooks hooks);

  // One rank's endpoint; must not outlive this.
  std::unique_ptr<Group> group(int rank);
  // Who drives the rank's collectives, and is woken when one ends.
  void set_reader(int rank, ActorId reader);

  // The next collective that anybody posts does not end before then. `hung`: it has been posted by all.
  void hang_next(TimePoint until, std::function<void()> hung);

 private:
  class SimGroup;
  class SimWork;
  struct Hang {
    TimePoint until;
    std::function<void()> begins;
  };
  void posted(uint64_t sequence);
  void complete(uint64_t sequence);
  TimePoint seen_at(uint64_t sequence, int rank) const;  // kNever: it is under way

  SimScheduler& scheduler_;
  RandomKey draw_;
  Hooks hooks_;
  std::shared_ptr<LocalFabric> fabric_;
  std::vector<std::optional<ActorId>> readers_;
  std::map<uint64_t, TimePoint> ended_;  // by sequence
  std::map<uint64_t, Hang> hung_;        // likewise
  uint64_t next_ = 0;                    // sequence that nobody has posted yet
};

}  // namespace tutti

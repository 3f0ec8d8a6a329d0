#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "collectives/local/group.h"
#include "runtime/random.h"
#include "sim/environment/sim_scheduler.h"

namespace tutti {

// Simulated collectives: LocalFabric, with a drawn time of completion on each rank and the failures of MPI. A
// collective that waits for a rank whose process has ended throws LostRankError kLostRankTimeout after it was
// posted, and a collective may hang.
class SimFabric {
 public:
  static constexpr Nanoseconds kLostRankTimeout = std::chrono::milliseconds(500);

  // `gone`: true if the rank's process has ended. `check` may throw if the calling rank's has.
  struct Hooks {
    std::function<bool(int rank)> gone;
    std::function<void(int rank)> check;
  };
  SimFabric(SimScheduler& scheduler, int size, const RandomKey& draw, Hooks hooks);

  // One rank's endpoint; must not outlive this.
  std::unique_ptr<Group> group(int rank);
  // The actor that polls the rank's collectives; it is woken when one completes.
  void set_reader(int rank, ActorId reader);

  // The next new collective does not complete before `until`. Calls `on_hang` once all ranks have posted it.
  void hang_next(TimePoint until, std::function<void()> on_hang);

 private:
  class SimGroup;
  class SimWork;
  struct Hang {
    TimePoint until;
    std::function<void()> on_hang;
  };
  void posted(uint64_t sequence);
  void complete(uint64_t sequence);
  TimePoint completed_at(uint64_t sequence, int rank) const;  // as the rank sees it; kNever: in progress

  SimScheduler& scheduler_;
  RandomKey draw_;
  Hooks hooks_;
  std::shared_ptr<LocalFabric> fabric_;
  std::vector<std::optional<ActorId>> readers_;
  std::map<uint64_t, TimePoint> completed_;  // by sequence number
  std::map<uint64_t, Hang> hangs_;           // likewise
  uint64_t next_ = 0;                        // the first sequence number not posted yet
};

}  // namespace tutti

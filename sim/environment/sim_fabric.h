#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/local/world.h"
#include "runtime/actor/token_scheduler.h"
#include "runtime/random.h"

namespace tutti {

// Simulated collectives: LocalFabrics, with a drawn time of completion on each rank and the failures of MPI.
// The ranks of a group meet before it is ready, and for its memory. A collective or meeting that waits while
// the process of any rank has ended throws LostRankError kLostRankTimeout after its post, and a collective
// may hang.
class SimFabric {
 public:
  static constexpr Nanoseconds kLostRankTimeout = std::chrono::milliseconds(500);

  // A collective of all ranks that does not complete before `until`.
  struct Hang {
    TimePoint until;
    std::string label;  // of the fault
  };

  // The processes of the ranks.
  class Processes {
   public:
    virtual ~Processes() = default;
    // True if the rank's process has ended, other than in MPI_Finalize, where all wait for each other.
    virtual bool gone(int rank) const = 0;
    // Throws Aborted if the process of the calling rank was killed.
    virtual void check_alive(int rank) const = 0;
    // Called once all ranks have posted a collective that hangs.
    virtual void on_hang(const Hang& hang) = 0;
    // When the data that all these ranks send at `sent` have reached rank `to`; kNever: never.
    virtual TimePoint arrival(const std::vector<int>& /*from*/, int /*to*/, TimePoint sent) { return sent; }
  };
  // `processes` must outlive this.
  SimFabric(TokenScheduler& scheduler, int size, const RandomKey& draw, Processes& processes);

  // Makes one rank's groups, which must not outlive the fabric.
  std::unique_ptr<GroupFactory> factory(int rank);
  // The actor that polls the rank's collectives, woken when a collective completes.
  void set_reader(int rank, ActorId reader);

  // The next new collective of all ranks hangs.
  void hang_next(const Hang& hang);

 private:
  class SimFactory;
  class SimGroup;
  class SimWork;
  class SimAllocation;
  // The shared state of a group's members.
  struct Channel {
    std::vector<int> ranks;  // of the world
    std::shared_ptr<LocalFabric> fabric;
    RandomKey draw;
    std::map<uint64_t, std::vector<TimePoint>> completed = {};  // by sequence number and member
    std::map<uint64_t, Hang> hangs = {};                        // by sequence number
    uint64_t next = 0;                                          // the first sequence number not posted yet
    std::map<int, TimePoint> came = {};                         // members that have come to meet
  };
  Channel& channel(const std::vector<int>& ranks, std::size_t index);
  bool meet(Channel& channel, int member);
  void throw_if_peer_lost(const CollectiveHeader& waited) const;
  void complete(Channel& channel, uint64_t sequence);
  TimePoint skewed(const Channel& channel, uint64_t sequence, int member, TimePoint completed) const;
  // As a member sees it; kNever: in progress.
  static TimePoint completed_at(const Channel& channel, uint64_t sequence, int member);

  TokenScheduler& scheduler_;
  RandomKey draw_;
  Processes& processes_;
  std::shared_ptr<LocalWorld> world_;
  std::vector<std::optional<ActorId>> readers_;
  std::map<std::pair<std::vector<int>, std::size_t>, Channel> channels_;  // by ranks and number
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "collectives/group.h"

namespace tutti {

// The shared state of a group with all ranks in this process (simulator, tests, single rank). The last rank
// to post a collective runs the collective for all ranks. With one rank, sums and broadcasts copy no data.
// Thread-safe.
class LocalFabric : public std::enable_shared_from_this<LocalFabric> {
 public:
  // `ranks`: the global numbers of the group's ranks, for errors.
  static std::shared_ptr<LocalFabric> make(std::vector<int> ranks);
  static std::shared_ptr<LocalFabric> make(int size);  // ranks 0 ... size - 1

  // Makes the group for rank `rank`, once per rank. The group keeps the fabric alive.
  std::unique_ptr<Group> group(int rank);

  int size() const { return static_cast<int>(ranks_.size()); }
  int world_rank(int rank) const { return ranks_[rank]; }

 private:
  friend class LocalGroup;
  class Round;
  explicit LocalFabric(std::vector<int> ranks) : ranks_(std::move(ranks)) {}
  std::shared_ptr<Round> post(int rank, CollectiveJob job);

  std::vector<int> ranks_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Round>> open_;  // not yet posted by all ranks; by sequence
};

}  // namespace tutti

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "collectives/group.h"

namespace tutti {

// What the ranks of one group have in common when they all live in this process: in the simulator, in tests,
// or because there is only one. Whoever posts a collective last carries it out for all; with one rank that is
// at once, and sums and broadcasts copy nothing. Thread-safe.
class LocalFabric : public std::enable_shared_from_this<LocalFabric> {
 public:
  // `ranks`: the world's names of the group's ranks, for errors.
  static std::shared_ptr<LocalFabric> make(std::vector<int> ranks);
  static std::shared_ptr<LocalFabric> make(int size);  // ranks 0 ... size - 1

  // The endpoint of the group's rank `rank`; each is taken once and keeps the fabric alive.
  std::unique_ptr<Group> group(int rank);

  int size() const { return static_cast<int>(ranks_.size()); }

 private:
  friend class LocalGroup;
  class Round;
  explicit LocalFabric(std::vector<int> ranks) : ranks_(std::move(ranks)) {}
  std::shared_ptr<Round> post(int rank, CollectiveJob job);

  std::vector<int> ranks_;
  std::mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Round>> open_;  // by sequence: not yet posted by all
};

}  // namespace tutti

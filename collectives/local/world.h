#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "collectives/group.h"
#include "collectives/local/group.h"

namespace tutti {

// Several ranks in one process, and their groups. Thread-safe.
class LocalWorld : public std::enable_shared_from_this<LocalWorld> {
 public:
  static std::shared_ptr<LocalWorld> make(int size) {
    return std::shared_ptr<LocalWorld>(new LocalWorld(size));
  }

  // Makes one rank's backend, which keeps the world alive.
  std::unique_ptr<GroupFactory> factory(int rank);

  int size() const { return size_; }

  // The fabric of the `index`-th group that is made of `ranks`.
  std::shared_ptr<LocalFabric> fabric(const std::vector<int>& ranks, std::size_t index);

 private:
  explicit LocalWorld(int size) : size_(size) {}

  int size_;
  std::mutex mutex_;
  std::map<std::vector<int>, std::vector<std::shared_ptr<LocalFabric>>> fabrics_;
};

}  // namespace tutti

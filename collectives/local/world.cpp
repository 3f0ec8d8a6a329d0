#include "collectives/local/world.h"

#include <algorithm>

#include "runtime/error.h"

namespace tutti {
namespace {

class LocalFactory final : public GroupFactory {
 public:
  LocalFactory(std::shared_ptr<LocalWorld> world, int rank) : world_(std::move(world)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return world_->size(); }

  std::unique_ptr<Group> make(const std::vector<int>& ranks) override {
    const auto self = std::find(ranks.begin(), ranks.end(), rank_);
    TUTTI_ASSERT(self != ranks.end(), "a rank may only make groups that include it");
    return world_->fabric(ranks, made_[ranks]++)->group(static_cast<int>(self - ranks.begin()));
  }

 private:
  std::shared_ptr<LocalWorld> world_;
  int rank_;
  std::map<std::vector<int>, std::size_t> made_;
};

}  // namespace

std::unique_ptr<GroupFactory> LocalWorld::factory(int rank) {
  return std::make_unique<LocalFactory>(shared_from_this(), rank);
}

std::shared_ptr<LocalFabric> LocalWorld::fabric(const std::vector<int>& ranks, std::size_t index) {
  const std::lock_guard lock(mutex_);
  auto& made = fabrics_[ranks];
  while (made.size() <= index) made.push_back(LocalFabric::make(ranks));
  return made[index];
}

}  // namespace tutti

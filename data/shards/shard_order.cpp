#include "data/shards/shard_order.h"

#include <algorithm>
#include <numeric>

#include "runtime/error.h"
#include "runtime/random.h"

namespace tutti {
namespace {

constexpr std::size_t kPlans = 4;  // an epoch's end, the next one's begin, and evaluations

// The last of the sorted places that is not above `position`.
std::size_t place_of(const std::vector<int64_t>& firsts, int64_t position) {
  return static_cast<std::size_t>(std::ranges::upper_bound(firsts, position) - firsts.begin()) - 1;
}

}  // namespace

struct ShardOrder::Plan {
  uint64_t seed;
  int64_t epoch;
  RandomKey key;
  std::vector<std::size_t> shards;  // in the epoch's order
  std::vector<int64_t> firsts;      // the first position of each of them
  std::vector<int64_t> windows;     // the first position of each window, and the number of samples
};

ShardOrder::ShardOrder(std::vector<int64_t> samples_of_shards, int64_t block)
    : samples_(std::move(samples_of_shards)), firsts_(samples_.size()), block_(block) {
  TUTTI_ASSERT(block > 0 && !samples_.empty(), "an empty order");
  std::exclusive_scan(samples_.begin(), samples_.end(), firsts_.begin(), int64_t{0});
  const int64_t all = firsts_.back() + samples_.back();
  most_samples_ = std::min(all, std::max(block, *std::ranges::max_element(samples_)));
}

std::shared_ptr<const ShardOrder::Plan> ShardOrder::plan(uint64_t seed, int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  for (const auto& plan : plans_)
    if (plan->seed == seed && plan->epoch == epoch) return plan;
  const RandomKey key = RandomKey(seed, "shard order").fold_in(static_cast<uint64_t>(epoch));
  Plan made{seed, epoch, key, {}, {}, {}};
  const Permutation permutation(samples_.size(), key);
  int64_t position = 0;
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const auto shard = static_cast<std::size_t>(permutation(i));
    if (made.windows.empty() || position + samples_[shard] - made.windows.back() > block_)
      made.windows.push_back(position);
    made.shards.push_back(shard);
    made.firsts.push_back(position);
    position += samples_[shard];
  }
  made.windows.push_back(position);
  if (plans_.size() == kPlans) plans_.erase(plans_.begin());
  plans_.push_back(std::make_shared<const Plan>(std::move(made)));
  return plans_.back();
}

int64_t ShardOrder::sample(uint64_t seed, int64_t epoch, int64_t position) const {
  const auto plan = this->plan(seed, epoch);
  TUTTI_ASSERT(position >= 0 && position < plan->windows.back(), "position " + std::to_string(position));
  const std::size_t window = place_of(plan->windows, position);
  const int64_t first = plan->windows[window], size = plan->windows[window + 1] - first;
  const Permutation within(static_cast<uint64_t>(size), plan->key.fold_in(window));
  const int64_t shuffled = first + static_cast<int64_t>(within(static_cast<uint64_t>(position - first)));
  const std::size_t place = place_of(plan->firsts, shuffled);
  return firsts_[plan->shards[place]] + shuffled - plan->firsts[place];
}

}  // namespace tutti

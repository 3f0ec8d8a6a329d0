#include "sim/environment/sim_fabric.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr uint64_t kMaxSkewUs = 100;
constexpr uint64_t kMeeting = UINT64_MAX;  // the sequence number of the meeting before all collectives

}  // namespace

class SimFabric::SimWork final : public Work {
 public:
  SimWork(SimFabric& fabric, Channel& channel, int member, WorkPtr work)
      : fabric_(fabric),
        channel_(channel),
        member_(member),
        work_(std::move(work)),
        posted_(fabric.scheduler_.now()) {}

  bool done() override {
    fabric_.processes_.check_alive(channel_.ranks[member_]);
    const TimePoint now = fabric_.scheduler_.now();
    const bool all_posted = work_->done();
    if (all_posted && completed_at(channel_, header().sequence, member_) <= now) return true;
    if (!all_posted && now - posted_ >= kLostRankTimeout) fabric_.throw_if_peer_lost(header());
    return false;
  }
  const CollectiveHeader& header() const override { return work_->header(); }
  bool finite() const override { return work_->finite(); }

 private:
  SimFabric& fabric_;
  Channel& channel_;
  int member_;
  WorkPtr work_;
  TimePoint posted_;
};

// The ranks wait for each other, as in shared memory.
class SimFabric::SimAllocation final : public Allocation {
 public:
  SimAllocation(WorkPtr met, at::Tensor memory) : met_(std::move(met)), memory_(std::move(memory)) {}
  bool done() override { return met_->done(); }
  const CollectiveHeader& header() const override { return met_->header(); }
  at::Tensor memory() const override { return memory_; }

 private:
  WorkPtr met_;
  at::Tensor memory_;
};

class SimFabric::SimGroup final : public Group {
 public:
  SimGroup(SimFabric& fabric, Channel& channel, int member)
      : fabric_(fabric), channel_(channel), group_(channel.fabric->group(member)) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  int world_rank(int rank) const override { return group_->world_rank(rank); }
  bool ready() override { return fabric_.meet(channel_, rank()); }
  AllocationPtr allocate(int64_t bytes) override {
    return std::make_unique<SimAllocation>(barrier("memory"), group_->allocate(bytes)->memory());
  }

  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    return post([&] { return group_->all_reduce(std::move(inout), label); });
  }
  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    return post(
        [&] { return group_->reduce_scatter(std::move(input), std::move(out), std::move(cut), label); });
  }
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    return post([&] { return group_->all_gather(std::move(input), std::move(out), std::move(cut), label); });
  }
  WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) override {
    return post([&] { return group_->broadcast(std::move(inout), root, label); });
  }
  WorkPtr barrier(const std::string& label) override {
    return post([&] { return group_->barrier(label); });
  }
  std::vector<CollectiveHeader> posted(int count) const override { return group_->posted(count); }

 private:
  template <class Post>
  WorkPtr post(Post start) {
    fabric_.processes_.check_alive(channel_.ranks[rank()]);
    WorkPtr work = start();
    const uint64_t sequence = work->header().sequence;
    channel_.next = std::max(channel_.next, sequence + 1);
    if (work->done()) fabric_.complete(channel_, sequence);
    return std::make_unique<SimWork>(fabric_, channel_, rank(), std::move(work));
  }

  SimFabric& fabric_;
  Channel& channel_;
  std::unique_ptr<Group> group_;
};

class SimFabric::SimFactory final : public GroupFactory {
 public:
  SimFactory(SimFabric& fabric, int rank) : fabric_(fabric), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return fabric_.world_->size(); }
  std::unique_ptr<Group> make(const std::vector<int>& ranks) override {
    const auto self = std::ranges::find(ranks, rank_);
    TUTTI_ASSERT(self != ranks.end(), "a rank may only make groups that include it");
    Channel& channel = fabric_.channel(ranks, made_[ranks]++);
    return std::make_unique<SimGroup>(fabric_, channel, static_cast<int>(self - ranks.begin()));
  }

 private:
  SimFabric& fabric_;
  int rank_;
  std::map<std::vector<int>, std::size_t> made_;
};

SimFabric::SimFabric(TokenScheduler& scheduler, int size, const RandomKey& draw, Processes& processes)
    : scheduler_(scheduler),
      draw_(draw),
      processes_(processes),
      world_(LocalWorld::make(size)),
      readers_(size) {}

std::unique_ptr<GroupFactory> SimFabric::factory(int rank) {
  return std::make_unique<SimFactory>(*this, rank);
}

// The first group of all ranks draws by the fabric's own key.
SimFabric::Channel& SimFabric::channel(const std::vector<int>& ranks, std::size_t index) {
  const auto known = channels_.find({ranks, index});
  if (known != channels_.end()) return known->second;
  RandomKey draw = draw_;
  if (index > 0 || std::ssize(ranks) < world_->size()) {
    draw = draw.fold_in(index);
    for (const int rank : ranks) draw = draw.fold_in(static_cast<uint64_t>(rank));
  }
  return channels_.emplace(std::pair{ranks, index}, Channel{ranks, world_->fabric(ranks, index), draw})
      .first->second;
}

void SimFabric::set_reader(int rank, ActorId reader) { readers_.at(rank) = reader; }

void SimFabric::hang_next(const Hang& hang) {
  std::vector<int> all(static_cast<std::size_t>(world_->size()));
  std::iota(all.begin(), all.end(), 0);
  Channel& world_channel = channel(all, 0);
  world_channel.hangs[world_channel.next] = hang;
}

bool SimFabric::meet(Channel& channel, int member) {
  processes_.check_alive(channel.ranks[static_cast<std::size_t>(member)]);
  const TimePoint now = scheduler_.now();
  const bool is_last =
      channel.came.try_emplace(member, now).second && channel.came.size() == channel.ranks.size();
  if (is_last) complete(channel, kMeeting);
  if (completed_at(channel, kMeeting, member) <= now) return true;
  if (channel.came.size() < channel.ranks.size() && now - channel.came.at(member) >= kLostRankTimeout)
    throw_if_peer_lost({.label = "the ranks of a group meet"});
  return false;
}

void SimFabric::throw_if_peer_lost(const CollectiveHeader& waited) const {
  for (int rank = 0; rank < world_->size(); ++rank)
    if (processes_.gone(rank)) throw LostRankError(rank, waited);
}

void SimFabric::complete(Channel& channel, uint64_t sequence) {
  const auto hang = channel.hangs.find(sequence);
  TimePoint all = scheduler_.now();
  if (hang != channel.hangs.end() && hang->second.until > all) {
    all = hang->second.until;
    processes_.on_hang(hang->second);
  }
  std::vector<TimePoint>& completed = channel.completed[sequence];
  for (std::size_t member = 0; member < channel.ranks.size(); ++member) {
    const TimePoint when = skewed(channel, sequence, static_cast<int>(member), all);
    completed.push_back(when);
    const auto& reader = readers_[static_cast<std::size_t>(channel.ranks[member])];
    if (reader && when != kNever) scheduler_.wake_at(*reader, when);
  }
}

TimePoint SimFabric::completed_at(const Channel& channel, uint64_t sequence, int member) {
  const auto completed = channel.completed.find(sequence);
  if (completed == channel.completed.end()) return kNever;
  return completed->second[static_cast<std::size_t>(member)];
}

TimePoint SimFabric::skewed(const Channel& channel, uint64_t sequence, int member,
                            TimePoint completed) const {
  if (completed == kNever) return kNever;
  const auto skew = channel.draw.fold_in(sequence).below(kMaxSkewUs, static_cast<uint64_t>(member));
  return processes_.arrival(channel.ranks, channel.ranks[static_cast<std::size_t>(member)],
                            completed + std::chrono::microseconds(skew));
}

}  // namespace tutti

#include "sim/environment/sim_fabric.h"

#include <algorithm>
#include <utility>

namespace tutti {
namespace {

constexpr uint64_t kMaxSkewUs = 100;

}  // namespace

class SimFabric::SimWork final : public Work {
 public:
  SimWork(SimFabric& fabric, int rank, WorkPtr work)
      : fabric_(fabric), rank_(rank), work_(std::move(work)), posted_(fabric.scheduler_.now()) {}

  bool done() override {
    fabric_.hooks_.check(rank_);
    const TimePoint now = fabric_.scheduler_.now();
    const bool all_posted = work_->done();
    if (all_posted && fabric_.completed_at(header().sequence, rank_) <= now) return true;
    if (!all_posted && now - posted_ >= kLostRankTimeout) throw_if_peer_lost();
    return false;
  }
  const CollectiveHeader& header() const override { return work_->header(); }
  bool finite() const override { return work_->finite(); }

 private:
  void throw_if_peer_lost() const {
    for (int rank = 0; rank < fabric_.fabric_->size(); ++rank)
      if (fabric_.hooks_.gone(rank)) throw LostRankError(rank, header());
  }

  SimFabric& fabric_;
  int rank_;
  WorkPtr work_;
  TimePoint posted_;
};

class SimFabric::SimGroup final : public Group {
 public:
  SimGroup(SimFabric& fabric, int rank) : fabric_(fabric), group_(fabric.fabric_->group(rank)) {}
  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  int world_rank(int rank) const override { return group_->world_rank(rank); }
  at::Tensor allocate(int64_t bytes) override { return group_->allocate(bytes); }

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
    fabric_.hooks_.check(rank());
    WorkPtr work = start();
    const uint64_t sequence = work->header().sequence;
    fabric_.posted(sequence);
    if (work->done()) fabric_.complete(sequence);
    return std::make_unique<SimWork>(fabric_, rank(), std::move(work));
  }

  SimFabric& fabric_;
  std::unique_ptr<Group> group_;
};

SimFabric::SimFabric(SimScheduler& scheduler, int size, const RandomKey& draw, Hooks hooks)
    : scheduler_(scheduler),
      draw_(draw),
      hooks_(std::move(hooks)),
      fabric_(LocalFabric::make(size)),
      readers_(size) {}

std::unique_ptr<Group> SimFabric::group(int rank) { return std::make_unique<SimGroup>(*this, rank); }

void SimFabric::set_reader(int rank, ActorId reader) { readers_.at(rank) = reader; }

void SimFabric::hang_next(TimePoint until, std::function<void()> on_hang) {
  hangs_[next_] = {until, std::move(on_hang)};
}

void SimFabric::posted(uint64_t sequence) { next_ = std::max(next_, sequence + 1); }

void SimFabric::complete(uint64_t sequence) {
  const auto hang = hangs_.find(sequence);
  completed_[sequence] = scheduler_.now();
  if (hang != hangs_.end() && hang->second.until > scheduler_.now()) {
    completed_[sequence] = hang->second.until;
    hang->second.on_hang();
  }
  for (int rank = 0; rank < fabric_->size(); ++rank) {
    const TimePoint when = completed_at(sequence, rank);
    if (readers_[rank] && when != kNever) scheduler_.wake_at(*readers_[rank], when);
  }
}

TimePoint SimFabric::completed_at(uint64_t sequence, int rank) const {
  const auto completed = completed_.find(sequence);
  if (completed == completed_.end() || completed->second == kNever) return kNever;
  return completed->second + std::chrono::microseconds(draw_.fold_in(sequence).below(kMaxSkewUs, rank));
}

}  // namespace tutti

#include "collectives/local/group.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <atomic>
#include <cstring>
#include <numeric>

#include "collectives/group.h"
#include "collectives/header_log.h"
#include "collectives/ordered_sum.h"
#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "tensors/finite.h"

namespace tutti {
namespace {

using Jobs = std::vector<CollectiveJob>;  // one a rank

// Copies raw bytes on the CPU, so that autograd's version counters do not change.
void copy_flat(const at::Tensor& from, const at::Tensor& to) {
  if (from.data_ptr() == to.data_ptr() || from.numel() == 0) return;
  if (from.is_cpu() && to.is_cpu()) {
    std::memcpy(to.data_ptr(), from.data_ptr(), from.nbytes());
    return;
  }
  const at::NoGradGuard no_grad;
  to.copy_(from);
}

bool sum(const std::vector<at::Tensor>& inputs, const std::vector<at::Tensor>& outputs) {
  if (inputs.size() == 1) {
    copy_flat(inputs.front(), outputs.front());
    return all_finite(outputs.front());
  }
  std::vector<Summand> summands;
  for (int rank = 0; rank < static_cast<int>(inputs.size()); ++rank) {
    TUTTI_ASSERT(inputs[rank].is_cpu(), "ranks of one process reduce on the CPU");
    summands.push_back({{rank, rank + 1}, inputs[rank].data_ptr()});
  }
  std::vector<void*> to;
  for (const at::Tensor& output : outputs) to.push_back(output.data_ptr());
  return ordered_sum(inputs.front().scalar_type(), summands, to, inputs.front().numel());
}

at::Tensor in_whole(const CollectiveJob& job, const CutRun& run) {
  return job.whole.narrow(0, run.whole, run.count);
}

at::Tensor in_part(const CollectiveJob& job, const CutRun& run) {
  return job.in_place() ? in_whole(job, run) : job.part.narrow(0, run.part, run.count);
}

bool reduce(const Jobs& jobs) {
  std::vector<at::Tensor> tensors;
  for (const CollectiveJob& job : jobs) tensors.push_back(job.whole);
  return sum(tensors, tensors);
}

bool scatter_to(int rank, const Jobs& jobs) {
  const CollectiveJob& to = jobs[rank];
  bool finite = true;
  if (to.cut->runs(rank).empty()) TUTTI_PROBE("collectives: a rank has no part of a reduce-scatter");
  if (to.cut->runs(rank).size() > 1) TUTTI_PROBE("collectives: a rank's part lies in several places");
  for (const CutRun& run : to.cut->runs(rank)) {
    if (!to.part.defined()) break;
    std::vector<at::Tensor> inputs;
    for (const CollectiveJob& job : jobs) inputs.push_back(in_whole(job, run));
    finite = sum(inputs, {in_part(to, run)}) && finite;
  }
  return finite;
}

// Without a view for each pair of ranks, of which many ranks have many.
void copy_run(const at::Tensor& part, const CutRun& run, const CollectiveJob& to) {
  if (!part.is_cpu() || !to.whole.is_cpu()) return copy_flat(part, in_whole(to, run));
  char* const bytes = static_cast<char*>(to.whole.data_ptr()) + run.whole * to.whole.element_size();
  if (bytes != part.data_ptr() && run.count > 0) std::memcpy(bytes, part.data_ptr(), part.nbytes());
}

void gather(const Jobs& jobs) {
  const Cut& cut = *jobs.front().cut;
  for (int rank = 0; rank < cut.ranks(); ++rank)
    for (const CutRun& run : cut.runs(rank)) {
      const at::Tensor part = in_part(jobs[rank], run);
      for (const CollectiveJob& to : jobs)
        if (to.whole.defined()) copy_run(part, run, to);
    }
}

void broadcast(const Jobs& jobs) {
  for (const CollectiveJob& to : jobs) copy_flat(jobs[to.root].whole, to.whole);
}

// Runs the collective. By rank: Work::finite.
std::vector<bool> run(const Jobs& jobs) {
  std::vector<bool> finite(jobs.size(), true);
  switch (jobs.front().header.kind) {
    case CollectiveKind::kAllReduce:
      finite.assign(jobs.size(), reduce(jobs));
      break;
    case CollectiveKind::kReduceScatter:
      for (int rank = 0; rank < std::ssize(jobs); ++rank) finite[rank] = scatter_to(rank, jobs);
      break;
    case CollectiveKind::kAllGather:
      gather(jobs);
      break;
    case CollectiveKind::kBroadcast:
      broadcast(jobs);
      break;
    case CollectiveKind::kBarrier:
      break;
  }
  return finite;
}

}  // namespace

// One collective of all ranks. `post` is called under the fabric's lock.
class LocalFabric::Round {
 public:
  explicit Round(std::size_t ranks) : jobs_(ranks) {}

  // The last rank to post runs the collective.
  void post(int rank, CollectiveJob job, const std::vector<int>& names) {
    if (!posted_.empty()) compare(rank, job.header, names);
    posted_.push_back(rank);
    jobs_[rank] = std::move(job);
    if (!full() || failed_.load()) return;
    finite_ = run(jobs_);
    jobs_.clear();
    done_.store(true, std::memory_order_release);
  }

  bool finite(int rank) const { return finite_[rank]; }  // valid once done
  bool full() const { return posted_.size() == jobs_.size() || done_.load(); }

  bool done() const {
    if (failed_.load(std::memory_order_acquire)) throw CollectiveError(failure_);
    return done_.load(std::memory_order_acquire);
  }

 private:
  void compare(int rank, const CollectiveHeader& header, const std::vector<int>& names) {
    const int other = posted_.front();
    if (failed_.load() || matches(jobs_[other].header, header)) return;
    failure_ = mismatch_text(names[other], jobs_[other].header, names[rank], header);
    failed_.store(true, std::memory_order_release);
  }

  Jobs jobs_;
  std::vector<int> posted_;  // in the order of posting
  std::string failure_;
  std::vector<bool> finite_;  // by rank; written before `done_`
  std::atomic<bool> failed_{false};
  std::atomic<bool> done_{false};
};

std::shared_ptr<LocalFabric> LocalFabric::make(std::vector<int> ranks) {
  return std::shared_ptr<LocalFabric>(new LocalFabric(std::move(ranks)));
}

std::shared_ptr<LocalFabric> LocalFabric::make(int size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return make(std::move(ranks));
}

std::shared_ptr<LocalFabric::Round> LocalFabric::post(int rank, CollectiveJob job) {
  const std::lock_guard lock(mutex_);
  const uint64_t sequence = job.header.sequence;
  std::shared_ptr<Round>& entry = open_[sequence];
  if (!entry) entry = std::make_shared<Round>(ranks_.size());
  const std::shared_ptr<Round> round = entry;
  round->post(rank, std::move(job), ranks_);
  if (round->full()) open_.erase(sequence);
  return round;
}

class LocalGroup final : public Group {
 public:
  LocalGroup(std::shared_ptr<LocalFabric> fabric, int rank) : fabric_(std::move(fabric)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return fabric_->size(); }
  int world_rank(int rank) const override { return fabric_->world_rank(rank); }
  AllocationPtr allocate(int64_t bytes) override { return allocated(at::zeros({bytes}, at::kByte)); }

  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    check_summable(inout);
    return post(CollectiveKind::kAllReduce, {.whole = inout}, label);
  }

  WorkPtr reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    check_reduce_scatter(*this, input, out, *cut);
    return post(CollectiveKind::kReduceScatter, {.whole = input, .part = out, .cut = cut}, label);
  }

  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    check_all_gather(*this, input, out, *cut);
    return post(CollectiveKind::kAllGather, {.whole = out, .part = input, .cut = cut}, label);
  }

  WorkPtr broadcast(at::Tensor inout, int root, const std::string& label) override {
    check_flat(inout);
    TUTTI_ASSERT(root >= 0 && root < size(), "broadcast from a rank that is not in the group");
    return post(CollectiveKind::kBroadcast, {.whole = inout, .root = root}, label);
  }

  WorkPtr barrier(const std::string& label) override { return post(CollectiveKind::kBarrier, {}, label); }

  std::vector<CollectiveHeader> posted(int count) const override { return log_.last(count); }

 private:
  class LocalWork final : public Work {
   public:
    LocalWork(std::shared_ptr<LocalFabric::Round> round, const CollectiveHeader& header, int rank)
        : round_(std::move(round)), header_(header), rank_(rank) {}
    bool done() override { return round_->done(); }
    const CollectiveHeader& header() const override { return header_; }
    bool finite() const override { return round_->finite(rank_); }

   private:
    std::shared_ptr<LocalFabric::Round> round_;
    CollectiveHeader header_;
    int rank_;
  };

  WorkPtr post(CollectiveKind kind, CollectiveJob job, const std::string& label) {
    const CollectiveHeader header = job.header = log_.next(kind, job, label);
    return std::make_unique<LocalWork>(fabric_->post(rank_, std::move(job)), header, rank_);
  }

  std::shared_ptr<LocalFabric> fabric_;
  int rank_;
  HeaderLog log_;
};

std::unique_ptr<Group> LocalFabric::group(int rank) {
  TUTTI_ASSERT(rank >= 0 && rank < size(), "no such rank in the group");
  return std::make_unique<LocalGroup>(shared_from_this(), rank);
}

}  // namespace tutti

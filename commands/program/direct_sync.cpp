#include "commands/program/direct_sync.h"

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

class DirectSync final : public SyncClient {
 public:
  explicit DirectSync(Groups groups) : groups_(std::move(groups)) {
    for (const auto& with_role : groups_)
      if (with_role) wait_until_ready(*with_role);
  }

  std::vector<at::Tensor> allocate(GroupRole role, std::vector<int64_t> bytes) override {
    std::vector<at::Tensor> memory;
    for (const int64_t size : bytes) memory.push_back(wait_for_memory(group(role), size));
    return memory;
  }

  void set_plan(std::vector<PlanEntry> entries) override {
    TUTTI_ASSERT(std::ranges::none_of(entries_, &Entry::ready), "a new plan within a pass");
    entries_.clear();
    queues_.fill({});
    for (PlanEntry& entry : entries) {
      queues_[static_cast<std::size_t>(entry.group)].entries.push_back(entries_.size());
      entries_.push_back({.plan = std::move(entry)});
    }
    for (Entry& entry : entries_) entry.whole = entry.plan.whole;
  }

  void run(int index, const at::Tensor& whole) override {
    Entry& entry = entries_.at(static_cast<std::size_t>(index));
    TUTTI_ASSERT(!entry.ready, entry.plan.label + " twice in a pass");
    entry.ready = true;
    if (whole.defined()) entry.whole = whole;
    advance();
  }

  bool wait(int index) override {
    const Entry& entry = entries_.at(static_cast<std::size_t>(index));
    TUTTI_ASSERT(entry.ready, entry.plan.label + " cannot be waited for");
    while (!entry.done) advance_or_yield();
    return entry.finite;
  }

  bool finish_pass() override {
    for (Entry& entry : entries_) entry.ready = true;
    while (!std::ranges::all_of(entries_, &Entry::done)) advance_or_yield();
    bool finite = true;
    for (Entry& entry : entries_) {
      finite = finite && entry.finite;
      entry.ready = entry.done = false;
      entry.finite = true;
    }
    for (Queue& queue : queues_) queue.next = 0;
    return finite;
  }

  at::Tensor sum(const at::Tensor& values, GroupRole role) override {
    const WorkPtr work = group(role).all_reduce(values, "sum over ranks");
    while (!work->done()) std::this_thread::yield();
    return values;
  }

  void record(TraceKind, int64_t) override {}

 private:
  struct Entry {
    PlanEntry plan;
    bool ready = false, done = false, finite = true;  // in this pass
    at::Tensor whole = {};                            // of this pass
    WorkPtr work = {};                                // while in progress
  };
  // The entries of a group, which are posted in their order, the same on all ranks.
  struct Queue {
    std::vector<std::size_t> entries;
    std::size_t next = 0;
  };

  Group& group(GroupRole role) const { return *groups_[static_cast<std::size_t>(role)]; }

  void advance_or_yield() {
    if (!advance()) std::this_thread::yield();
  }

  // True if a collective has ended.
  bool advance() {
    post_ready();
    bool any = false;
    for (Entry& entry : entries_)
      if (entry.work && entry.work->done()) {
        any = true;
        entry.finite = entry.work->finite();
        end(entry);
      }
    if (any) post_ready();
    return any;
  }

  void end(Entry& entry) {
    entry.work.reset();
    entry.done = true;
    entry.whole = entry.plan.whole;
  }

  void post_ready() {
    for (Queue& queue : queues_)
      for (; queue.next < queue.entries.size(); ++queue.next) {
        Entry& entry = entries_[queue.entries[queue.next]];
        if (!may_begin(entry)) break;
        if (is_left_out(entry))
          end(entry);
        else
          entry.work = post(entry);
      }
  }

  bool may_begin(const Entry& entry) const {
    return entry.ready && (entry.plan.after < 0 || entries_[static_cast<std::size_t>(entry.plan.after)].done);
  }

  bool is_left_out(const Entry& entry) const {
    return entry.plan.if_any &&
           entries_[static_cast<std::size_t>(entry.plan.after)].plan.whole.item<double>() == 0;
  }

  WorkPtr post(const Entry& entry) {
    const PlanEntry& plan = entry.plan;
    Group& ranks = group(plan.group);
    if (plan.kind == CollectiveKind::kAllReduce) return ranks.all_reduce(entry.whole, plan.label);
    if (plan.kind == CollectiveKind::kAllGather)
      return plan.cut ? ranks.all_gather(plan.part, entry.whole, plan.cut, plan.label)
                      : ranks.all_gather(plan.part, entry.whole, plan.label);
    TUTTI_ASSERT(plan.kind == CollectiveKind::kReduceScatter, plan.label + " cannot be in a plan");
    return plan.cut ? ranks.reduce_scatter(entry.whole, plan.part, plan.cut, plan.label)
                    : ranks.reduce_scatter(entry.whole, plan.part, plan.label);
  }

  Groups groups_;
  std::vector<Entry> entries_;
  std::array<Queue, kGroupRoles> queues_;
};

}  // namespace

std::unique_ptr<SyncClient> make_direct_sync(Groups groups) {
  return std::make_unique<DirectSync>(std::move(groups));
}

}  // namespace tutti

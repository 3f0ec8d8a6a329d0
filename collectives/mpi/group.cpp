#include "collectives/mpi/group.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include "collectives/group.h"
#include "collectives/local/group.h"
#include "collectives/mpi/copy_operation.h"
#include "collectives/mpi/operation.h"
#include "collectives/mpi/reduce_operation.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr Nanoseconds kPollInterval = std::chrono::milliseconds(10);

class MpiWork final : public Work {
 public:
  MpiWork(MpiGroup& group, std::shared_ptr<Operation> operation)
      : group_(group), operation_(std::move(operation)) {}

  bool done() override {
    if (!operation_->finished()) group_.progress();
    return operation_->finished();
  }
  const CollectiveHeader& header() const override { return operation_->header(); }
  bool finite() const override { return operation_->finite(); }

 private:
  MpiGroup& group_;
  std::shared_ptr<Operation> operation_;
};

}  // namespace

MpiGroup::MpiGroup(const MpiWorld& world, const Clock& clock, const std::vector<int>& ranks,
                   Reduction reduction)
    : world_(world), clock_(clock), reduction_(reduction), ranks_(ranks), endpoint_(world, ranks) {
  const bool slots_show_all = reduction == Reduction::kOrdered && endpoint_.layout().hosts() == 1;
  if (!slots_show_all) exchange_.emplace(endpoint_.comm(), ranks_);
}

MpiGroup::~MpiGroup() = default;

at::Tensor MpiGroup::allocate(int64_t bytes) {
  auto window = std::make_shared<SharedWindow>(endpoint_.host_comm(), bytes);
  endpoint_.add_window(window);
  return at::from_blob(
      window->own(), {bytes}, [window](void*) {}, at::TensorOptions().dtype(at::kByte));
}

WorkPtr MpiGroup::all_reduce(at::Tensor inout, const std::string& label) {
  check_summable(inout);
  return post(CollectiveKind::kAllReduce, {.whole = inout}, label);
}

WorkPtr MpiGroup::reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_reduce_scatter(*this, input, out, *cut);
  return post(CollectiveKind::kReduceScatter, {.whole = input, .part = out, .cut = cut}, label);
}

WorkPtr MpiGroup::all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_all_gather(*this, input, out, *cut);
  return post(CollectiveKind::kAllGather, {.whole = out, .part = input, .cut = cut}, label);
}

WorkPtr MpiGroup::broadcast(at::Tensor inout, int root, const std::string& label) {
  check_flat(inout);
  TUTTI_ASSERT(root >= 0 && root < size(), "broadcast from a rank that is not in the group");
  return post(CollectiveKind::kBroadcast, {.whole = inout, .root = root}, label);
}

WorkPtr MpiGroup::barrier(const std::string& label) { return post(CollectiveKind::kBarrier, {}, label); }

WorkPtr MpiGroup::post(CollectiveKind kind, CollectiveJob job, const std::string& label) {
  job.header = log_.next(kind, job, label);
  const auto operation = make_operation(std::move(job));
  active_.push_back({operation, clock_.now()});
  progress();
  return std::make_unique<MpiWork>(*this, operation);
}

std::shared_ptr<Operation> MpiGroup::make_operation(CollectiveJob job) {
  if (reduction_ == Reduction::kNative)
    return std::make_shared<NativeOperation>(endpoint_, native_sums_, std::move(job));
  const CollectiveKind kind = job.header.kind;
  const bool is_small = job.header.bytes <= static_cast<uint64_t>(ControlSlot::kInlineBytes);
  if (is_small && endpoint_.layout().hosts() == 1)
    return std::make_shared<InlineOperation>(endpoint_, std::move(job));
  if (kind == CollectiveKind::kBarrier) job.whole = at::zeros({1}, at::kInt);
  if (kind == CollectiveKind::kAllGather || kind == CollectiveKind::kBroadcast) {
    return std::make_shared<CopyOperation>(endpoint_, std::move(job));
  }
  return std::make_shared<ReduceOperation>(endpoint_, std::move(job));
}

void MpiGroup::progress() {
  if (!failure_.empty()) throw CollectiveError(failure_);
  try {
    advance_operations();
    watch();
  } catch (const CollectiveError& error) {
    failure_ = error.what();
    if (exchange_) exchange_->send_alarm(failure_);
    throw;
  }
}

// Advances a few operations per call, the oldest first on every rank.
void MpiGroup::advance_operations() {
  constexpr int kMostAtOnce = 2;
  int moved = 0;
  for (auto item = active_.begin(); item != active_.end() && moved < kMostAtOnce;) {
    moved += item->operation->advance();
    item = item->operation->finished() ? active_.erase(item) : std::next(item);
  }
  moves_ += moved;
}

void MpiGroup::watch() {
  const TimePoint now = clock_.now();
  if (now < next_check_) return;
  next_check_ = now + kPollInterval;
  if (exchange_) exchange_->check_received(log_);
  if (active_.empty() || now - active_.front().since < kTimeout) return;
  check_for_lost_peer();
  if (!exchange_ || active_.front().reported) return;
  active_.front().reported = true;
  exchange_->send_headers(log_);
}

std::vector<int> MpiGroup::late() const {
  return active_.empty() ? std::vector<int>() : active_.front().operation->late();
}

// Ranks that wait for a dead process end too. So a member of this group may wait, or end, because of a rank
// outside the group.
void MpiGroup::check_for_lost_peer() const {
  if (const auto lost = world_.lost_peer()) throw LostRankError(*lost, active_.front().operation->header());
}

std::unique_ptr<Group> MpiGroupFactory::make(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return LocalFabric::make(ranks)->group(0);
  return std::make_unique<MpiGroup>(world_, clock_, ranks, reduction_);
}

}  // namespace tutti

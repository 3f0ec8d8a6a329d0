#include "collectives/device/group.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/device/header_check.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr auto kAll = [](int) { return true; };

auto only(int rank) {
  return [rank](int one) { return one == rank; };
}

auto all_but(int rank) {
  return [rank](int one) { return one != rank; };
}

void copy_into(const at::Tensor& to, const at::Tensor& from) {
  const at::NoGradGuard no_grad;
  to.copy_(from, /*non_blocking=*/true);
}

}  // namespace

class DeviceGroup::DeviceWork final : public Work {
 public:
  DeviceWork(DeviceGroup& group, const CollectiveHeader& header)
      : group_(group), header_(header), place_(group.launched_->add(group.ranks_)), results_(group.last_) {
    compare();
  }

  bool done() override {
    if (matched_) return true;
    if (!compare() || !all_launched()) return false;
    matched_ = true;
    group_.launched_->remove(place_);
    ++group_.matched_;
    --group_.unmatched_;
    return true;
  }
  StreamOrder results() const override { return results_; }
  const CollectiveHeader& header() const override { return header_; }
  bool finite() const override { return true; }

 private:
  // Begins to compare headers, once no device has to wait for a host before this collective.
  bool compare() {
    if (!check_ && !group_.launched_->waits_for_others(place_)) check_.emplace(*group_.control_, header_);
    return check_.has_value();
  }
  bool all_launched() try { return check_->done(); } catch (const CollectiveError&) {
    group_.abort();
    throw;
  }

  DeviceGroup& group_;
  CollectiveHeader header_;
  Launched::Place place_;
  std::optional<HeaderCheck> check_;
  StreamOrder results_;
  bool matched_ = false;
};

DeviceGroup::DeviceGroup(std::shared_ptr<Group> control, const Device& device,
                         std::shared_ptr<const DeviceLibrary> library, std::shared_ptr<Launched> launched)
    : control_(std::move(control)),
      device_(device),
      library_(std::move(library)),
      launched_(std::move(launched)) {
  for (int member = 0; member < size(); ++member) ranks_.push_back(world_rank(member));
}

DeviceGroup::~DeviceGroup() { abandon(); }

bool DeviceGroup::ready() {
  if (connected_ || aborted_) return connected_;
  if (!control_->ready()) return false;
  if (!communicator_) {
    if (!sharing_) share_id();
    if (!sharing_->done()) return false;
    connect();
  }
  connected_ = communicator_->ready();
  return connected_;
}

void DeviceGroup::share_id() {
  CommunicatorId id;
  if (rank() == 0) id = library_->make_id();
  id_ = at::empty({sizeof id.bytes}, at::kByte);
  std::memcpy(id_.mutable_data_ptr(), id.bytes, sizeof id.bytes);
  sharing_ = control_->broadcast(id_, 0, "id of a communicator");
}

void DeviceGroup::connect() {
  CommunicatorId id;
  std::memcpy(id.bytes, id_.const_data_ptr(), sizeof id.bytes);
  sharing_.reset();
  communicator_ = library_->connect(id, device_, rank(), ranks_);
}

void DeviceGroup::check() {
  if (!connected_) return;
  if (const std::string failure = communicator_->failure(); !failure.empty()) {
    abort();
    throw CollectiveError(failure);
  }
  const auto lost = control_->lost_rank();
  if (!lost || last_.over()) return;
  abort();
  throw LostRankError(*lost, log_.last(1).back());
}

void DeviceGroup::abandon() {
  if (connected_ && (unmatched_ > 0 || !last_.over())) abort();
}

void DeviceGroup::abort() noexcept {
  connected_ = false;
  aborted_ = true;
  if (communicator_) communicator_->abort();
}

void DeviceGroup::reserve(const Cut& cut, std::size_t item) {
  const int64_t bytes = EqualParts(cut, item).size() * static_cast<int64_t>(item);
  if (memory_.defined() && memory_.numel() >= bytes) return;
  memory_.reset();
  memory_ = at::empty({bytes}, device_.options(at::kByte));
}

// Used by one collective after the other on one stream.
at::Tensor DeviceGroup::memory(const EqualParts& parts, const at::Tensor& like) {
  const auto bytes = static_cast<int64_t>(like.element_size()) * parts.size();
  TUTTI_ASSERT(memory_.defined() && memory_.numel() >= bytes, "a collective without reserved memory");
  return memory_.narrow(0, 0, bytes).view(like.scalar_type());
}

template <class Launch>
WorkPtr DeviceGroup::post(CollectiveKind kind, CollectiveJob job, const std::string& label, Launch launch) {
  if (!connected_) throw CollectiveError(label + ": the ranks' devices are not connected, or not any more");
  job.header = log_.next(kind, job, label);
  launch(job);
  last_ = StreamOrder::record(device_);
  ++unmatched_;
  return std::make_unique<DeviceWork>(*this, job.header);
}

AllocationPtr DeviceGroup::allocate(int64_t bytes) {
  return allocated(at::zeros({bytes}, device_.options(at::kByte)));
}

WorkPtr DeviceGroup::all_reduce(at::Tensor inout, const std::string& label) {
  check_summable(inout);
  if (inout.is_cpu()) return control_->all_reduce(inout, label);
  return post(CollectiveKind::kAllReduce, {.whole = inout}, label,
              [&](const CollectiveJob& job) { communicator_->all_reduce(job.whole); });
}

WorkPtr DeviceGroup::reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_reduce_scatter(*this, input, out, *cut);
  if (input.is_cpu()) return control_->reduce_scatter(input, out, cut, label);
  return post(CollectiveKind::kReduceScatter, {.whole = input, .part = out, .cut = cut}, label,
              [&](const CollectiveJob& job) { scatter(job); });
}

WorkPtr DeviceGroup::all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_all_gather(*this, input, out, *cut);
  if (input.is_cpu()) return control_->all_gather(input, out, cut, label);
  return post(CollectiveKind::kAllGather, {.whole = out, .part = input, .cut = cut}, label,
              [&](const CollectiveJob& job) { gather(job); });
}

WorkPtr DeviceGroup::broadcast(at::Tensor inout, int root, const std::string& label) {
  check_flat(inout);
  TUTTI_ASSERT(root >= 0 && root < size(), "broadcast from a rank that is not in the group");
  if (inout.is_cpu()) return control_->broadcast(inout, root, label);
  return post(CollectiveKind::kBroadcast, {.whole = inout, .root = root}, label,
              [&](const CollectiveJob& job) { communicator_->broadcast(job.whole, job.root); });
}

WorkPtr DeviceGroup::barrier(const std::string& label) { return control_->barrier(label); }

void DeviceGroup::scatter(const CollectiveJob& job) {
  const Cut& cut = *job.cut;
  if (cut.is_even() && job.part.defined()) {
    const at::Tensor own = job.whole.narrow(0, cut.packed_begin(rank()), cut.part_size(rank()));
    return communicator_->reduce_scatter(job.whole.narrow(0, 0, cut.size()), job.in_place() ? own : job.part);
  }
  const EqualParts parts(cut, job.whole.element_size());
  const at::Tensor equal = memory(parts, job.whole), own = parts.part(equal, rank());
  parts.take(job.whole, kAll, equal);
  communicator_->reduce_scatter(equal, own);
  if (job.in_place())
    parts.put(equal, only(rank()), job.whole);
  else if (job.part.defined())
    copy_into(job.part, own.narrow(0, 0, job.part.numel()));
}

void DeviceGroup::gather(const CollectiveJob& job) {
  const Cut& cut = *job.cut;
  if (cut.is_even() && job.whole.defined()) {
    const at::Tensor own = job.whole.narrow(0, cut.packed_begin(rank()), cut.part_size(rank()));
    return communicator_->all_gather(job.in_place() ? own : job.part, job.whole.narrow(0, 0, cut.size()));
  }
  const EqualParts parts(cut, job.part.element_size());
  const at::Tensor equal = memory(parts, job.part), own = parts.part(equal, rank());
  if (job.in_place())
    parts.take(job.part, only(rank()), equal);
  else
    copy_into(own.narrow(0, 0, job.part.numel()), job.part);
  communicator_->all_gather(own, equal);
  if (!job.whole.defined()) return;
  if (job.in_place())
    parts.put(equal, all_but(rank()), job.whole);
  else
    parts.put(equal, kAll, job.whole);
}

}  // namespace tutti

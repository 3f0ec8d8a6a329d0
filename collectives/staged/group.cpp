#include "collectives/staged/group.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace tutti {
namespace {

// A tensor of a collective, and the same in the memory of the host.
struct Pair {
  at::Tensor device, host;

  Pair() = default;
  explicit Pair(at::Tensor tensor)
      : device(std::move(tensor)),
        host(is_staged() ? staging_memory(device.sizes(), device.scalar_type(), Device{device.device()})
                         : device) {}

  bool is_staged() const { return device.defined() && !device.is_cpu(); }
  void to_host() {
    if (is_staged()) host.copy_(device, /*non_blocking=*/true);
  }
  void to_device(const std::vector<ElementRange>& parts) {
    if (!is_staged()) return;
    for (const auto& [begin, end] : parts)
      device.slice(0, begin, end).copy_(host.slice(0, begin, end), /*non_blocking=*/true);
  }
};

std::vector<ElementRange> all_of(const at::Tensor& flat) {
  return flat.defined() ? std::vector<ElementRange>{{0, flat.numel()}} : std::vector<ElementRange>();
}

// What a gather in place changes: all but this rank's part, which others may read meanwhile.
std::vector<ElementRange> parts_of_others(const at::Tensor& whole, const Cut& cut, int rank) {
  std::vector<ElementRange> parts;
  int64_t begin = 0;
  std::vector<CutRun> own(cut.runs(rank).begin(), cut.runs(rank).end());
  std::ranges::sort(own, {}, &CutRun::whole);
  own.push_back({.whole = whole.numel()});
  for (const CutRun& run : own) {
    if (run.whole > begin) parts.push_back({begin, run.whole});
    begin = run.whole + run.count;
  }
  return parts;
}

}  // namespace

// A collective between its two copies.
class StagedGroup::Staged {
 public:
  using Post = std::function<WorkPtr(const at::Tensor& input, const at::Tensor& out)>;

  // `out`: the input itself if the collective works in place. `changed`: parts of `out`.
  Staged(const Device& device, const at::Tensor& input, const at::Tensor& out,
         std::vector<ElementRange> changed, Post post)
      : device_(device),
        input_(input),
        changed_(std::move(changed)),
        post_(std::move(post)),
        in_place_(input.is_same(out)) {
    if (!in_place_) out_ = Pair(out);
    input_.to_host();
    copied_ = StreamOrder::record(device);
  }

  bool is_copied() const { return copied_.over(); }
  void post() { work_ = post_(input_.host, in_place_ ? input_.host : out_.host); }
  bool done() {
    if (!work_ || !work_->done()) return false;
    if (finished_) return true;
    (in_place_ ? input_ : out_).to_device(changed_);
    finished_ = StreamOrder::record(device_);
    return true;
  }
  StreamOrder results() const { return *finished_; }
  bool finite() const { return work_->finite(); }
  const CollectiveHeader& header() const { return work_ ? work_->header() : unposted_; }

 private:
  Device device_;
  Pair input_, out_;
  std::vector<ElementRange> changed_;
  Post post_;
  bool in_place_;
  StreamOrder copied_;
  WorkPtr work_;  // of the host group, once posted
  std::optional<StreamOrder> finished_;
  CollectiveHeader unposted_;
};

StagedGroup::StagedGroup(std::shared_ptr<Group> host, const Device& device)
    : host_(std::move(host)), device_(device) {}

void StagedGroup::post_copied() {
  for (; !waiting_.empty() && waiting_.front()->is_copied(); waiting_.pop_front(), ++moves_)
    waiting_.front()->post();
}

WorkPtr StagedGroup::stage(std::shared_ptr<Staged> work) {
  class StagedWork final : public Work {
   public:
    StagedWork(StagedGroup& group, std::shared_ptr<Staged> work) : group_(group), work_(std::move(work)) {}
    bool done() override {
      group_.post_copied();
      return work_->done();
    }
    StreamOrder results() const override { return work_->results(); }
    const CollectiveHeader& header() const override { return work_->header(); }
    bool finite() const override { return work_->finite(); }

   private:
    StagedGroup& group_;
    std::shared_ptr<Staged> work_;
  };
  waiting_.push_back(work);
  post_copied();
  return std::make_unique<StagedWork>(*this, std::move(work));
}

AllocationPtr StagedGroup::allocate(int64_t bytes) {
  return allocated(at::zeros({bytes}, device_.options(at::kByte)));
}

WorkPtr StagedGroup::all_reduce(at::Tensor inout, const std::string& label) {
  check_summable(inout);
  return stage(std::make_shared<Staged>(device_, inout, inout, all_of(inout),
                                        [host = host_, label](const at::Tensor& input, const at::Tensor&) {
                                          return host->all_reduce(input, label);
                                        }));
}

WorkPtr StagedGroup::reduce_scatter(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_reduce_scatter(*this, input, out, *cut);
  return stage(
      std::make_shared<Staged>(device_, input, out, all_of(out),
                               [host = host_, cut, label](const at::Tensor& from, const at::Tensor& to) {
                                 return host->reduce_scatter(from, to, cut, label);
                               }));
}

WorkPtr StagedGroup::all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) {
  check_all_gather(*this, input, out, *cut);
  auto changed = input.is_same(out) ? parts_of_others(out, *cut, rank()) : all_of(out);
  return stage(
      std::make_shared<Staged>(device_, input, out, std::move(changed),
                               [host = host_, cut, label](const at::Tensor& from, const at::Tensor& to) {
                                 return host->all_gather(from, to, cut, label);
                               }));
}

WorkPtr StagedGroup::broadcast(at::Tensor inout, int root, const std::string& label) {
  check_flat(inout);
  return stage(
      std::make_shared<Staged>(device_, inout, inout, all_of(inout),
                               [host = host_, root, label](const at::Tensor& input, const at::Tensor&) {
                                 return host->broadcast(input, root, label);
                               }));
}

WorkPtr StagedGroup::barrier(const std::string& label) {
  return stage(std::make_shared<Staged>(
      device_, at::Tensor(), at::Tensor(), std::vector<ElementRange>(),
      [host = host_, label](const at::Tensor&, const at::Tensor&) { return host->barrier(label); }));
}

}  // namespace tutti

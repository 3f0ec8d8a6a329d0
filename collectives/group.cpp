#include "collectives/group.h"

#include <thread>

#include "collectives/ordered_sum.h"
#include "runtime/error.h"

namespace tutti {

const char* name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

std::string CollectiveHeader::text() const {
  const std::string amount = " of " + std::to_string(bytes) + " bytes";
  return "#" + std::to_string(sequence) + " " + name(kind) + amount + " (" + label + ")";
}

LostRankError::LostRankError(int rank, const CollectiveHeader& waited)
    : CollectiveError(
          "rank " + std::to_string(rank) + " is gone: its process ended while " + waited.text() + " waited",
          EndKind::kLostRank),
      rank_(rank) {}

namespace {

class Allocated final : public Allocation {
 public:
  explicit Allocated(at::Tensor memory) : memory_(std::move(memory)) {}
  bool done() override { return true; }
  const CollectiveHeader& header() const override { return header_; }
  at::Tensor memory() const override { return memory_; }

 private:
  at::Tensor memory_;
  CollectiveHeader header_;
};

}  // namespace

AllocationPtr allocated(at::Tensor memory) { return std::make_unique<Allocated>(std::move(memory)); }

void wait_until_ready(Group& group) {
  while (!group.ready()) std::this_thread::yield();
}

at::Tensor wait_for_memory(Group& group, int64_t bytes) {
  const AllocationPtr allocation = group.allocate(bytes);
  while (!allocation->done()) std::this_thread::yield();
  return allocation->memory();
}

void check_flat(const at::Tensor& tensor) {
  TUTTI_ASSERT(tensor.defined() && tensor.dim() == 1 && tensor.is_contiguous(),
               "collectives take flat tensors");
}

void check_summable(const at::Tensor& tensor) {
  check_flat(tensor);
  TUTTI_ASSERT(can_sum(tensor.scalar_type()),
               std::string("no sums of ") + c10::toString(tensor.scalar_type()));
}

namespace {

void check_sizes(const Group& group, const at::Tensor& part, const at::Tensor& whole, const Cut& cut) {
  TUTTI_ASSERT(cut.ranks() == group.size(), "a cut for a group of another size");
  if (part.defined() && !part.is_same(whole)) {
    check_flat(part);
    TUTTI_ASSERT(part.numel() == cut.part_size(group.rank()), "the part is not as large as its cut says");
  }
  if (whole.defined()) {
    check_flat(whole);
    TUTTI_ASSERT(whole.numel() >= cut.extent(), "the cut reaches beyond the whole");
  }
  if (!part.defined() || !whole.defined()) return;
  TUTTI_ASSERT(part.scalar_type() == whole.scalar_type(), "part and whole differ in dtype");
}

}  // namespace

void check_reduce_scatter(const Group& group, const at::Tensor& input, const at::Tensor& out,
                          const Cut& cut) {
  check_summable(input);
  check_sizes(group, out, input, cut);
}

void check_all_gather(const Group& group, const at::Tensor& input, const at::Tensor& out, const Cut& cut) {
  check_flat(input);
  check_sizes(group, input, out, cut);
}

WorkPtr Group::reduce_scatter(at::Tensor input, at::Tensor out, const std::string& label) {
  check_flat(out);
  TUTTI_ASSERT(input.numel() == out.numel() * size(), "the whole must be as large as all parts together");
  CutPtr cut = Cut::even(size(), out.numel());
  return reduce_scatter(std::move(input), std::move(out), std::move(cut), label);
}

WorkPtr Group::all_gather(at::Tensor input, at::Tensor out, const std::string& label) {
  check_flat(out);
  TUTTI_ASSERT(out.numel() == input.numel() * size(), "the whole must be as large as all parts together");
  CutPtr cut = Cut::even(size(), input.numel());
  return all_gather(std::move(input), std::move(out), std::move(cut), label);
}

uint64_t CollectiveJob::bytes() const {
  if (!cut) return whole.defined() ? whole.nbytes() : 0;
  const at::Tensor& either = whole.defined() ? whole : part;
  return cut->size() * either.element_size();
}

}  // namespace tutti

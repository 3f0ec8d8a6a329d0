#include "sharding/shard_plan.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "runtime/error.h"
#include "runtime/probe/probe.h"

namespace tutti {
namespace {

// A parameter's rows in a rank's part.
struct PartOfParameter {
  Shape sizes;
  ElementRange elements;  // of the parameter's memory
};

PartOfParameter part_of(const at::Tensor& parameter, const ParamView& view, const Share& share) {
  TUTTI_ASSERT(view.placement == row_placement(parameter.sizes()),
               view.name + ": flat memory is cut by rows of dim 0 alone");
  TUTTI_ASSERT(can_cut(parameter), view.name + ": its rows are not outermost in memory");
  if (parameter.dim() == 0) return {{}, {0, share.index == 0 ? 1 : 0}};
  TensorRegion region = region_of(parameter.sizes(), view.placement, share);
  const int64_t row = parameter.size(0) > 0 ? parameter.numel() / parameter.size(0) : 0;
  const int64_t begin = region.offset[0] * row, count = region.extent[0] * row;
  return {std::move(region.extent), {begin, begin + count}};
}

}  // namespace

bool can_cut(const at::Tensor& tensor) {
  if (tensor.dim() == 0 || tensor.numel() == 0 || tensor.size(0) == 1) return true;
  return tensor.is_non_overlapping_and_dense() && tensor.stride(0) == tensor.numel() / tensor.size(0);
}

CutPtr cut_by_rows(const Bucket& bucket, const std::vector<at::Tensor>& parameters,
                   const std::vector<ParamView>& views, int pieces) {
  std::vector<std::vector<ElementRange>> parts(static_cast<std::size_t>(pieces));
  for (int rank = 0; rank < pieces; ++rank)
    for (const BucketSlot& slot : bucket.slots) {
      const at::Tensor& parameter = parameters[slot.parameter];
      const ElementRange own = part_of(parameter, views[slot.parameter], {pieces, rank}).elements;
      if (own.begin == own.end && parameter.numel() > 0)
        TUTTI_PROBE("sharding: a parameter has fewer rows than ranks");
      if (own.begin < own.end)
        parts[static_cast<std::size_t>(rank)].push_back({slot.offset + own.begin, slot.offset + own.end});
    }
  return std::make_shared<const Cut>(parts);
}

RowsOfRank::RowsOfRank(const Bucket& bucket, const std::vector<at::Tensor>& parameters,
                       const std::vector<ParamView>& views, const Share& share, In in)
    : item_(bucket.item()), first_(share.index == 0) {
  int64_t end = 0;
  for (const BucketSlot& slot : bucket.slots) {
    const at::Tensor& parameter = parameters[slot.parameter];
    auto [sizes, own] = part_of(parameter, views[slot.parameter], share);
    const int64_t begin = in == In::kWhole ? slot.offset + own.begin : end;
    end = begin + own.end - own.begin;
    slots_.push_back(
        {slot.parameter, parameter.scalar_type(), std::move(sizes), parameter.strides().vec(), {begin, end}});
  }
}

std::vector<at::Tensor> RowsOfRank::rows(const at::Tensor& memory) const {
  std::vector<at::Tensor> rows;
  for (const Slot& slot : slots_) {
    const bool others_scalar = slot.sizes.empty() && !first_;
    rows.push_back(others_scalar ? at::zeros({}, memory.options())
                                 : memory.as_strided(slot.sizes, slot.strides, slot.place.begin));
  }
  return rows;
}

void RowsOfRank::take(const at::Tensor& memory, std::vector<at::Tensor>& gradients) const {
  const auto rows = this->rows(memory);
  for (std::size_t s = 0; s < rows.size(); ++s) gradients[slots_[s].parameter] = rows[s].to(slots_[s].dtype);
}

std::vector<DigestPart> RowsOfRank::parts(const std::vector<std::string>& names) const {
  std::vector<DigestPart> parts;
  for (const Slot& slot : slots_)
    if (slot.place.begin < slot.place.end)
      parts.push_back({names[slot.parameter], slot.place.begin * item_, slot.place.end * item_});
  return parts;
}

}  // namespace tutti

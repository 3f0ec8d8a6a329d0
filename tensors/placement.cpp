#include "tensors/placement.h"

#include <algorithm>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

using enum AxisPlacement::Kind;

constexpr std::array<Axis, kAxes> kAllAxes = {Axis::kReplicate, Axis::kShard};

}  // namespace

TensorRegion whole_region(at::IntArrayRef shape) { return {Shape(shape.size(), 0), shape.vec()}; }

TensorRegion split(TensorRegion region, int64_t dim, const AxisRank& rank) {
  const auto d = static_cast<std::size_t>(dim);
  TUTTI_ASSERT(d < region.extent.size(), "a tensor is split at a dimension that it does not have");
  const int64_t all = region.extent[d], each = (all + rank.size - 1) / rank.size;
  const int64_t begin = std::min(all, rank.index * each);
  region.offset[d] += begin;
  region.extent[d] = std::min(all - begin, each);
  return region;
}

at::Tensor narrowed(const at::Tensor& whole, const TensorRegion& region) {
  TUTTI_ASSERT(whole.dim() == std::ssize(region.extent), "a region of a tensor with other dimensions");
  at::Tensor part = whole;
  for (int64_t d = 0; d < whole.dim(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    TUTTI_ASSERT(region.offset[i] >= 0 && region.offset[i] + region.extent[i] <= whole.size(d),
                 "a region beyond the tensor");
    if (region.extent[i] != whole.size(d)) part = part.narrow(d, region.offset[i], region.extent[i]);
  }
  return part;
}

bool Placement::has_whole_rows() const {
  return std::ranges::all_of(axes, [](const auto& axis) {
    return axis.kind == kReplicated || (axis.kind == kSplit && axis.dim == 0);
  });
}

Placement Placement::mean_over(int64_t dim) const {
  Placement mean = *this;
  for (AxisPlacement& axis : mean.axes)
    if (axis.kind == kSplit && axis.dim == dim) axis = {};
  return mean;
}

Placement row_placement(at::IntArrayRef shape) {
  Placement placement;
  if (!shape.empty()) placement.axes[static_cast<std::size_t>(Axis::kShard)] = {kSplit, 0};
  return placement;
}

TensorRegion region_of(at::IntArrayRef shape, const Placement& placement, const Share& share) {
  TensorRegion region = whole_region(shape);
  for (const Axis axis : kAllAxes)
    if (const AxisPlacement& here = placement.on(axis); here.kind == kSplit)
      region = split(std::move(region), here.dim, share.on(axis));
  return region;
}

AxisRank copy_of(const Placement& placement, const Share& share) {
  AxisRank copy;
  for (const Axis axis : kAllAxes) {
    const AxisPlacement& here = placement.on(axis);
    TUTTI_ASSERT(here.kind != kPartialSum, "ranks have different summands of a partial sum");
    if (here.kind != kReplicated) continue;
    const AxisRank rank = share.on(axis);
    copy = {copy.size * rank.size, copy.index * rank.size + rank.index};
  }
  return copy;
}

}  // namespace tutti

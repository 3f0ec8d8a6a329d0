#include "tensors/param_view.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "runtime/error.h"

namespace tutti {

bool ParamView::counts_in_sums() const {
  TUTTI_ASSERT(placement.has_whole_rows(), name + ": sums over ranks are of whole rows");
  return owned;
}

at::Tensor ParamView::part_of_sum(const at::Tensor& numbers) const {
  return counts_in_sums() ? numbers : at::Tensor();
}

ParamView whole_view(std::string name, at::Tensor tensor) {
  ParamView view;
  view.name = std::move(name);
  view.shape = tensor.sizes().vec();
  view.region = whole_region(view.shape);
  view.placement = row_placement(view.shape);
  view.tensor = std::move(tensor);
  return view;
}

ParamView shared_view(std::string name, const at::Tensor& tensor, const Share& share) {
  ParamView view = whole_view(std::move(name), tensor);
  if (share.pieces == 1) return view;
  const at::NoGradGuard no_grad;
  view.region = region_of(view.shape, view.placement, share);
  view.owned = view.placement.on(Axis::kShard).kind == AxisPlacement::Kind::kSplit || share.index == 0;
  view.tensor = narrowed(tensor, view.region).detach().clone(at::MemoryFormat::Preserve);
  view.tensor.set_requires_grad(tensor.requires_grad());
  return view;
}

}  // namespace tutti

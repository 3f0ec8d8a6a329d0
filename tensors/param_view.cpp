#include "tensors/param_view.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

namespace tutti {

ParamView whole_view(std::string name, at::Tensor tensor) {
  ParamView view;
  view.name = std::move(name);
  view.shape = tensor.sizes().vec();
  view.offset.assign(view.shape.size(), 0);
  view.extent = view.shape;
  view.tensor = std::move(tensor);
  return view;
}

Rows rows_of_piece(int64_t rows, int pieces, int index) {
  const int64_t each = (rows + pieces - 1) / pieces;
  const int64_t begin = std::min(rows, index * each);
  return {begin, std::min(rows, begin + each)};
}

Rows rows_of_piece(const at::Tensor& tensor, int pieces, int index) {
  return rows_of_piece(tensor.dim() == 0 ? 1 : tensor.size(0), pieces, index);
}

ParamView shared_view(std::string name, const at::Tensor& tensor, const Share& share) {
  ParamView view = whole_view(std::move(name), tensor);
  if (share.pieces == 1) return view;
  const at::NoGradGuard no_grad;
  if (tensor.dim() > 0) {
    const Rows rows = rows_of_piece(tensor, share.pieces, share.index);
    view.offset[0] = rows.begin;
    view.extent[0] = rows.count();
    view.tensor = tensor.narrow(0, rows.begin, rows.count());
  }
  view.owned = tensor.dim() > 0 || share.index == 0;
  view.tensor = view.tensor.detach().clone(at::MemoryFormat::Preserve);
  view.tensor.set_requires_grad(tensor.requires_grad());
  return view;
}

}  // namespace tutti

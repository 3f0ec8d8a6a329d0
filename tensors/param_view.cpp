#include "tensors/param_view.h"

#include <algorithm>

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

}  // namespace tutti

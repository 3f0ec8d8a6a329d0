#include "data/transforms/picked_pixels.h"

#include <ATen/ops/gather.h>

#include "data/transforms/transform.h"
#include "tensors/device.h"

namespace tutti {

// Whole rows are copied first. gather is the kernel that is fast along the last dimension.
at::Tensor pixels_at(const at::Tensor& images, const at::Tensor& rows, const at::Tensor& columns) {
  const at::Tensor kept = images.index_select(-2, copy_to_device(rows, images.device()));
  auto shape = kept.sizes().vec();
  shape.back() = columns.size(0);
  return at::gather(kept, -1, copy_to_device(columns, images.device()).expand(shape));
}

at::Tensor on_planes(const at::Tensor& image,
                     const std::function<at::Tensor(const at::Tensor& planes)>& function) {
  if (height_dim(image) == image.dim() - 2) return function(image);
  return function(image.movedim(-1, 0)).movedim(0, -1);
}

}  // namespace tutti

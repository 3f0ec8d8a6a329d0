#include "data/transforms/pixels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <sstream>
#include <string>
#include <vector>

#include "runtime/error.h"

namespace tutti {
namespace {

[[noreturn]] void refuse_image(const std::string& expected, const at::Tensor& image) {
  std::ostringstream message;
  message << "expected " << expected << ", found " << image.toString() << " " << image.sizes();
  throw UserError(message.str());
}

}  // namespace

at::Tensor require_pixels(const at::Tensor& image) {
  const bool pixels = image.scalar_type() == at::kByte && image.dim() == 3 && image.is_cpu();
  if (!pixels || (image.size(2) != 3 && image.size(2) != 1) || image.numel() == 0)
    refuse_image("an image: uint8 [height, width, 3 or 1] on the CPU", image);
  return image.contiguous();
}

at::Tensor to_pixels(const at::Tensor& image) {
  return image.permute({1, 2, 0}).mul(255).to(at::kByte).contiguous();
}

at::Tensor from_pixels(const at::Tensor& pixels) {
  return pixels.permute({2, 0, 1}).to(at::kFloat).contiguous().div_(255);
}

at::Tensor map_pixels(const at::Tensor& images, const PixelFunction& function) {
  if (!images.is_floating_point()) return function(require_pixels(images));
  if (images.dim() == 3) return from_pixels(function(require_pixels(to_pixels(images))));
  if (images.dim() != 4)
    refuse_image("uint8 [H, W, C], or floats in [0, 1] of [C, H, W] or [N, C, H, W]", images);
  if (images.size(0) == 0) return at::empty(images.sizes(), images.options().dtype(at::kFloat));
  std::vector<at::Tensor> mapped;
  for (const at::Tensor& image : images.unbind()) mapped.push_back(map_pixels(image, function));
  return at::stack(mapped);
}

}  // namespace tutti

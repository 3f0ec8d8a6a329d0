#include "data/transforms/pixels.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/error.h"

namespace tutti {
namespace {

[[noreturn]] void refuse_image(const std::string& expected, const at::Tensor& image) {
  std::ostringstream message;
  message << "expected " << expected << ", found " << image.toString() << " " << image.sizes();
  throw UserError(message.str());
}

void require_unit_range(const at::Tensor& image) {
  const auto [low, high] = at::aminmax(image);
  const double least = low.item<double>(), most = high.item<double>();
  if (least >= 0 && most <= 1) return;
  throw UserError("expected images of bytes, or of numbers in [0, 1]; found numbers from " +
                  std::to_string(least) + " to " + std::to_string(most));
}

using DrawingFunction = std::function<at::Tensor(const at::Tensor& pixels, Draws& draws)>;

class OnPixels final : public ImageTransform {
 public:
  OnPixels(DrawingFunction function, bool moves_pixels)
      : function_(std::move(function)), moves_pixels_(moves_pixels) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws& draws) const override {
    const auto changed = [&](const at::Tensor& pixels) { return function_(pixels, draws); };
    if (image.dim() == 2) return map_pixels(image.unsqueeze(2), changed).squeeze(2);
    if (image.is_floating_point()) require_unit_range(image);
    return map_pixels(image, changed).to(image.scalar_type());
  }
  bool moves_pixels() const override { return moves_pixels_; }

 private:
  DrawingFunction function_;
  bool moves_pixels_;
};

// OnPixels, of images in color or gray.
class PixelTransform final : public Transform {
 public:
  PixelTransform(DrawingFunction function, bool moves_pixels) : images_(std::move(function), moves_pixels) {}

  SampleSpec spec(const SampleSpec& before) const override {
    SampleSpec after = images_.spec(before);
    const auto [shape, dtype] = input_of(before, at::kFloat);
    const int64_t channels = shape.size() == 2 ? 1 : dtype == at::kByte ? shape[2] : shape[0];
    if (channels == 3 || channels == 1) return after;
    throw TransformError("kind", "expected images of 3 channels or 1; here 'input' is " +
                                     before.describe(kInputArray) + " a sample");
  }
  void apply(Batch& batch, const RowDraws& draws) const override { images_.apply(batch, draws); }

 private:
  OnPixels images_;
};

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

TransformPtr pixel_transform(std::function<at::Tensor(const at::Tensor& pixels, Draws& draws)> function,
                             bool moves_pixels) {
  return std::make_shared<PixelTransform>(std::move(function), moves_pixels);
}

}  // namespace tutti

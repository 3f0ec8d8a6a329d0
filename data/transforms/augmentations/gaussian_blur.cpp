#include "data/transforms/augmentations/gaussian_blur.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/reflection_pad2d.h>

#include "data/transforms/picked_pixels.h"

namespace tutti {
namespace {

at::Tensor kernel_of(int64_t size, double sigma, at::ScalarType dtype) {
  const double half = static_cast<double>(size - 1) / 2;
  const at::Tensor bell = at::linspace(-half, half, size, dtype).div_(sigma).square_().mul_(-0.5).exp_();
  return bell.div(bell.sum());
}

void require_large(const ImageSize& image, const ImageSize& kernel) {
  if (image.height > kernel.height / 2 && image.width > kernel.width / 2) return;
  throw TransformError("kernel_size", "the images are " + shape_text({image.height, image.width}) +
                                          "; expected a kernel of less than twice that");
}

// Images [C, H, W], each channel by itself.
at::Tensor blurred(const at::Tensor& planes, const ImageSize& size, double sigma) {
  const at::ScalarType dtype = planes.is_floating_point() ? planes.scalar_type() : at::kFloat;
  const at::Tensor padded = at::reflection_pad2d(
      planes.unsqueeze(1).to(dtype), {size.width / 2, size.width / 2, size.height / 2, size.height / 2});
  const at::Tensor rows = at::conv2d(padded, kernel_of(size.height, sigma, dtype).view({1, 1, -1, 1}));
  const at::Tensor both =
      at::conv2d(rows, kernel_of(size.width, sigma, dtype).view({1, 1, 1, -1})).squeeze(1);
  return planes.is_floating_point() ? both : both.round_().clamp_(0, 255).to(planes.scalar_type());
}

class GaussianBlur final : public ImageTransform {
 public:
  GaussianBlur(const ImageSize& size, const std::vector<double>& sigma) : size_(size), sigma_(sigma) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws& draws) const override {
    return gaussian_blur(image, size_, draws.uniform(sigma_[0], sigma_[1]));
  }
  ImageSize size(const ImageSize& before) const override {
    require_large(before, size_);
    return before;
  }
  bool moves_pixels() const override { return false; }

 private:
  ImageSize size_;
  std::vector<double> sigma_;
};

}  // namespace

at::Tensor gaussian_blur(const at::Tensor& image, const ImageSize& size, double sigma) {
  require_large(image_size(image), size);
  if (image.dim() == 2) return blurred(image.unsqueeze(0), size, sigma).squeeze(0);
  return on_planes(image, [&](const at::Tensor& planes) { return blurred(planes, size, sigma); });
}

TransformPtr gaussian_blur_transform(const ImageSize& size, const std::vector<double>& sigma) {
  return std::make_shared<GaussianBlur>(size, sigma);
}

TransformPtr GaussianBlurOptions::make(const Setting& section, const SampleSpec&) const {
  if (kernel_size.height % 2 == 0 || kernel_size.width % 2 == 0)
    section.at("kernel_size").fail("expected odd numbers: the kernel has a middle");
  const std::vector<double> range{sigma.front(), sigma.back()};
  if (sigma.size() > 2 || range[0] > range[1])
    section.at("sigma").fail("expected a number, or [lowest, highest]");
  return gaussian_blur_transform(kernel_size, range);
}

}  // namespace tutti

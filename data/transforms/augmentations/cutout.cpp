#include "data/transforms/augmentations/cutout.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <ranges>
#include <vector>

#include "data/transforms/picked_pixels.h"

namespace tutti {
namespace {

class CutOutTransform final : public ImageTransform {
 public:
  explicit CutOutTransform(const CutOutOptions& options) : options_(options) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws& draws) const override {
    return on_planes(image, [&](const at::Tensor& planes) { return cutout_batch(planes, draws, options_); });
  }
  bool moves_pixels() const override { return false; }

 private:
  CutOutOptions options_;
};

class RandomErasing final : public ImageTransform {
 public:
  explicit RandomErasing(const RandomErasingOptions& options) : options_(options) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws& draws) const override {
    return random_erasing(image, options_, draws);
  }
  bool moves_pixels() const override { return false; }

 private:
  RandomErasingOptions options_;
};

}  // namespace

at::Tensor random_erasing(const at::Tensor& image, const RandomErasingOptions& options, Draws& draws) {
  if (!draws.bernoulli(options.p)) return image;
  const ImageSize size = image_size(image), most{size.height - 1, size.width - 1};
  const auto drawn =
      draw_rectangle(size, most, options.scale, {1 / options.ratio[1], 1 / options.ratio[0]}, draws);
  if (!drawn) return image;
  at::Tensor erased = image.clone();
  const int64_t height = height_dim(erased);
  const at::Tensor value = at::tensor(options.value, image.scalar_type());
  erased.narrow(height, drawn->top, drawn->size.height)
      .narrow(height + 1, drawn->left, drawn->size.width)
      .copy_(height > 0 ? value.view({-1, 1, 1}) : value);
  return erased;
}

TransformPtr random_erasing_transform(const RandomErasingOptions& options) {
  return std::make_shared<RandomErasing>(options);
}

TransformPtr RandomErasingOptions::make(const Setting& section, const SampleSpec& samples) const {
  for (const auto& [key, range] : {std::pair("scale", scale), std::pair("ratio", ratio)})
    if (range.size() != 2 || range[0] > range[1]) section.at(key).fail("expected [lowest, highest]");
  const auto [shape, dtype] = input_of(samples, at::kFloat);
  const int64_t channels = shape.size() < 3 ? 1 : dtype == at::kByte ? shape[2] : shape[0];
  if (value.size() != 1 && std::ssize(value) != channels)
    section.at("value").fail("the images have " + std::to_string(channels) +
                             " channels; expected a number for each, or one for all");
  const auto is_byte = [](double number) {
    return number >= 0 && number <= 255 && number == std::trunc(number);
  };
  if (dtype == at::kByte && !std::ranges::all_of(value, is_byte))
    section.at("value").fail("the images are uint8; expected integers in [0, 255]");
  return random_erasing_transform(*this);
}

at::Tensor cutout_batch(const at::Tensor& input, std::span<const Box> holes) {
  at::Tensor output = input.clone();
  for (const Box& hole : holes) hole.of(output).zero_();
  return output;
}

at::Tensor cutout_batch(const at::Tensor& input, Draws& draws, const CutOutOptions& options) {
  const auto shorter = static_cast<double>(std::min(input.size(-2), input.size(-1)));
  const auto side = static_cast<int64_t>(shorter * options.length);
  std::vector<Box> holes(static_cast<std::size_t>(options.num_holes));
  for (Box& hole : holes) hole = draw_box(input, side, side, options.uniform_sampling, draws);
  return cutout_batch(input, holes);
}

TransformPtr cutout_transform(const CutOutOptions& options) {
  return std::make_shared<CutOutTransform>(options);
}

TransformPtr CutOutOptions::make(const Setting&, const SampleSpec&) const { return cutout_transform(*this); }

}  // namespace tutti

#include "data/transforms/stored_images.h"

#include <ATen/ops/tensor.h>

namespace tutti {
namespace {

constexpr double kByteRange = 255;
constexpr int64_t kMostColors = 4;
constexpr std::size_t kImageDims = 3;

Shape permuted(const Shape& shape, bool to_channels_last) {
  return to_channels_last ? Shape{shape[1], shape[2], shape[0]} : Shape{shape[2], shape[0], shape[1]};
}

class Layout final : public Transform {
 public:
  explicit Layout(ImageLayout layout) : layout_(layout) {}

  SampleSpec spec(const SampleSpec& before) const override {
    const auto [shape, dtype] = input_of(before, at::kFloat);
    if (shape.size() != kImageDims)
      throw TransformError("layout", "expected images with channels; here 'input' is " +
                                         before.describe(kInputArray) + " a sample");
    if (layout_ == ImageLayout::kNCHW && dtype == at::kByte && shape[0] > kMostColors)
      throw TransformError("layout", "'input' is " + before.describe(kInputArray) +
                                         " a sample, which is not [channels, height, width] with at most 4 "
                                         "channels; [height, width, channels] needs no layout");
    SampleSpec samples = before;
    if (moves(dtype)) samples.shapes[kInputArray] = permuted(shape, dtype == at::kByte);
    return samples;
  }
  void apply(Batch& batch, const RowDraws&) const override {
    const at::Tensor images = batch[kInputArray];
    if (!moves(images.scalar_type())) return;
    const bool bytes = images.scalar_type() == at::kByte;
    batch.set(kInputArray, (bytes ? images.movedim(1, -1) : images.movedim(-1, 1)).contiguous());
  }

 private:
  bool moves(at::ScalarType dtype) const { return (layout_ == ImageLayout::kNHWC) != (dtype == at::kByte); }

  ImageLayout layout_;
};

bool is_byte_image(at::ScalarType dtype, std::size_t dims) {
  return dtype == at::kByte && (dims == kImageDims || dims == kImageDims - 1);
}

class PixelsToFloats final : public Transform {
 public:
  explicit PixelsToFloats(PixelNumbers numbers) : numbers_(std::move(numbers)) {}

  SampleSpec spec(const SampleSpec& before) const override {
    auto [shape, dtype] = input_of(before, at::kFloat);
    const bool is_bytes = is_byte_image(dtype, shape.size());
    if (is_bytes && shape.size() == kImageDims && shape[2] > kMostColors)
      throw TransformError("layout", "'input' is " + before.describe(kInputArray) +
                                         " a sample, which is not [height, width, channels] with at most 4 "
                                         "channels; for [channels, height, width] say layout = \"NCHW\"");
    if (is_bytes) shape = shape.size() == kImageDims ? permuted(shape, false) : Shape{1, shape[0], shape[1]};
    require_channels("scale", numbers_.scale, shape);
    require_channels("mean", numbers_.mean, shape);
    require_channels("std", numbers_.std, shape);
    SampleSpec samples = before;
    samples.shapes[kInputArray] = shape;
    samples.dtypes[kInputArray] = at::kFloat;
    return samples;
  }
  void apply(Batch& batch, const RowDraws&) const override {
    const at::Tensor images = batch[kInputArray];
    batch.set(kInputArray, pixels_to_floats(images, images.dim() - 1, numbers_));
  }
  bool makes_tensors() const override { return true; }

 private:
  static void require_channels(const char* key, const std::vector<double>& numbers, const Shape& shape) {
    const auto count = std::ssize(numbers);
    if (count < 2) return;
    if (shape.size() == kImageDims && count == shape[0]) return;
    throw TransformError(key, shape.size() == kImageDims
                                  ? "the images have " + std::to_string(shape[0]) +
                                        " channels; expected a number for each, or one for all"
                                  : "expected one number: 'input' has no channels");
  }

  PixelNumbers numbers_;
};

}  // namespace

at::Tensor pixels_to_floats(const at::Tensor& images, int64_t dims, const PixelNumbers& numbers) {
  const bool bytes = images.scalar_type() == at::kByte;
  at::Tensor planes = images;
  if (is_byte_image(images.scalar_type(), static_cast<std::size_t>(dims))) {
    const int64_t stacked = images.dim() - dims;
    planes = dims == 2 ? images.unsqueeze(stacked) : images.movedim(-1, stacked);
  }
  const auto of_channels = [&](const std::vector<double>& one) {
    const at::Tensor values = at::tensor(one, at::kFloat);
    return one.size() == 1 ? values : values.view({-1, 1, 1});
  };
  at::Tensor floats =
      planes.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
  if (!numbers.scale.empty())
    floats.mul_(of_channels(numbers.scale));
  else if (bytes)
    floats.div_(kByteRange);
  if (!numbers.mean.empty()) floats.sub_(of_channels(numbers.mean));
  if (!numbers.std.empty()) floats.div_(of_channels(numbers.std));
  return floats;
}

TransformPtr layout_transform(ImageLayout layout) { return std::make_shared<Layout>(layout); }

TransformPtr pixels_to_floats_transform(const PixelNumbers& numbers) {
  return std::make_shared<PixelsToFloats>(numbers);
}

}  // namespace tutti

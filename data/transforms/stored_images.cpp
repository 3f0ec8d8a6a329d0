#include "data/transforms/stored_images.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
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

// (values * scale - mean) / std in place, for floats [..., channels, height, width], or any with one number.
void scale_floats(at::Tensor& floats, const PixelNumbers& numbers, bool are_bytes) {
  const auto channel_tensor = [&](const std::vector<double>& numbers) {
    const at::Tensor values = at::tensor(numbers, floats.scalar_type());
    return numbers.size() == 1 ? values : values.view({-1, 1, 1});
  };
  if (!numbers.scale.empty())
    floats.mul_(channel_tensor(numbers.scale));
  else if (are_bytes)
    floats.div_(kByteRange);
  if (!numbers.mean.empty()) floats.sub_(channel_tensor(numbers.mean));
  if (!numbers.std.empty()) floats.div_(channel_tensor(numbers.std));
}

// The float of each byte in each channel: [channels, 256].
at::Tensor floats_of_bytes(int64_t channels, const PixelNumbers& numbers) {
  at::Tensor floats = at::arange(256, at::kFloat).expand({channels, 1, 256}).contiguous();
  scale_floats(floats, numbers, true);
  return floats.squeeze(1);
}

// Bytes [n, pixels, channels] to floats [n, channels, pixels] by their tables.
void look_up(const uint8_t* bytes, const Shape& sizes, const float* tables, float* floats) {
  const int64_t images = sizes[0], pixels = sizes[1], channels = sizes[2];
  for (int64_t i = 0; i < images; ++i, bytes += pixels * channels)
    for (int64_t c = 0; c < channels; ++c) {
      const float* const table = tables + 256 * c;
      for (int64_t p = 0; p < pixels; ++p) *floats++ = table[bytes[p * channels + c]];
    }
}

// uint8 images [n, height, width, channels].
at::Tensor planes_of_bytes(const at::Tensor& images, const PixelNumbers& numbers) {
  const at::Tensor bytes = images.contiguous();
  const int64_t channels = bytes.size(3);
  const at::Tensor tables = floats_of_bytes(channels, numbers);
  const at::Tensor planes = at::empty({bytes.size(0), channels, bytes.size(1), bytes.size(2)}, at::kFloat);
  look_up(bytes.const_data_ptr<uint8_t>(), {bytes.size(0), bytes.size(1) * bytes.size(2), channels},
          tables.const_data_ptr<float>(), planes.mutable_data_ptr<float>());
  return planes;
}

}  // namespace

at::Tensor pixels_to_floats(const at::Tensor& images, int64_t dims, const PixelNumbers& numbers) {
  if (is_byte_image(images.scalar_type(), static_cast<std::size_t>(dims))) {
    const at::Tensor with_channels = dims == 2 ? images.unsqueeze(-1) : images;
    const at::Tensor one_by_one = images.dim() == dims ? with_channels.unsqueeze(0) : with_channels;
    const at::Tensor planes = planes_of_bytes(one_by_one, numbers);
    return images.dim() == dims ? planes.squeeze(0) : planes;
  }
  const at::ScalarType stored = images.scalar_type();
  const bool fits_float = stored == at::kByte || (at::isFloatingType(stored) && stored != at::kDouble);
  at::Tensor floats = images.to(fits_float ? at::kFloat : at::kDouble, /*non_blocking=*/false, /*copy=*/true,
                                at::MemoryFormat::Contiguous);
  scale_floats(floats, numbers, stored == at::kByte);
  return floats.to(at::kFloat);
}

TransformPtr layout_transform(ImageLayout layout) { return std::make_shared<Layout>(layout); }

TransformPtr pixels_to_floats_transform(const PixelNumbers& numbers) {
  return std::make_shared<PixelsToFloats>(numbers);
}

}  // namespace tutti

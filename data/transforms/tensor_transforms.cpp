#include "data/transforms/tensor_transforms.h"

#include <ATen/ops/tensor.h>

#include "data/transforms/stored_images.h"

namespace tutti {
namespace {

class ToTensor final : public Transform {
 public:
  SampleSpec spec(const SampleSpec& before) const override {
    const auto [shape, dtype] = input_of(before, at::kByte);
    if (dtype != at::kByte || (shape.size() != 2 && shape.size() != 3))
      throw TransformError("kind", "expected images, uint8 [height, width, channels]; here 'input' is " +
                                       before.describe(kInputArray) + " a sample");
    SampleSpec samples = before;
    samples.shapes[kInputArray] =
        shape.size() == 2 ? Shape{1, shape[0], shape[1]} : Shape{shape[2], shape[0], shape[1]};
    samples.dtypes[kInputArray] = at::kFloat;
    return samples;
  }
  void apply(Batch& batch, const RowDraws&) const override {
    const at::Tensor images = batch[kInputArray];
    batch.set(kInputArray, pixels_to_floats(images, images.dim() - 1, {}));
  }
  bool makes_tensors() const override { return true; }
};

class Normalize final : public Transform {
 public:
  Normalize(const std::vector<double>& mean, const std::vector<double>& std) : mean_(mean), std_(std) {}

  SampleSpec spec(const SampleSpec& before) const override {
    const auto [shape, dtype] = input_of(before, at::kFloat);
    if (!at::isFloatingType(dtype) || shape.size() != 3)
      throw TransformError("kind", "expected float32 [channels, height, width]; here 'input' is " +
                                       before.describe(kInputArray) + " a sample" +
                                       (dtype == at::kByte ? ", which to_tensor turns into that" : ""));
    require_channels("mean", mean_, shape[0]);
    require_channels("std", std_, shape[0]);
    return before;
  }
  void apply(Batch& batch, const RowDraws&) const override {
    batch.set(kInputArray, normalize(batch[kInputArray], mean_, std_));
  }

 private:
  static void require_channels(const char* key, const std::vector<double>& numbers, int64_t channels) {
    if (std::ssize(numbers) == 1 || std::ssize(numbers) == channels) return;
    throw TransformError(key, "the images have " + std::to_string(channels) +
                                  " channels; expected a number for each, or one for all");
  }

  std::vector<double> mean_, std_;
};

}  // namespace

at::Tensor to_tensor(const at::Tensor& image) { return pixels_to_floats(image, image.dim(), {}); }

at::Tensor normalize(const at::Tensor& tensor, const std::vector<double>& mean,
                     const std::vector<double>& std) {
  const auto channel_tensor = [&](const std::vector<double>& numbers) {
    return at::tensor(numbers, tensor.scalar_type()).view({-1, 1, 1});
  };
  return tensor.sub(channel_tensor(mean)).div_(channel_tensor(std));
}

TransformPtr to_tensor_transform() { return std::make_shared<ToTensor>(); }

TransformPtr normalize_transform(const std::vector<double>& mean, const std::vector<double>& std) {
  return std::make_shared<Normalize>(mean, std);
}

TransformPtr ToTensorOptions::make(const Setting&, const SampleSpec&) const { return to_tensor_transform(); }

TransformPtr NormalizeOptions::make(const Setting&, const SampleSpec&) const {
  return normalize_transform(mean, std);
}

}  // namespace tutti

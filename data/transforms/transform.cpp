#include "data/transforms/transform.h"

#include <ATen/ops/stack.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_set>

#include "tensors/tree.h"

namespace tutti {
namespace {

constexpr int64_t kMostChannels = 4;

bool has_name(const Transforms& transforms, const std::string& name) {
  return std::ranges::any_of(transforms, [&](const NamedTransform& one) { return one.name == name; });
}

bool is_image(const Shape& shape, at::ScalarType dtype, bool needs_bytes) {
  const bool bytes = dtype == at::kByte;
  if (std::ranges::any_of(shape, [](int64_t size) { return size < 1 && size != kUnknownSize; })) return false;
  if (!bytes) return !needs_bytes && at::isFloatingType(dtype) && shape.size() == 3;
  return shape.size() == 2 || (shape.size() == 3 && shape[2] <= kMostChannels);
}

}  // namespace

void append(Transforms& transforms, const std::string& name, TransformPtr transform) {
  std::unordered_set<std::string_view> taken;
  for (const NamedTransform& transform : transforms) taken.insert(transform.name);
  std::string unique = name;
  for (int i = 1; taken.contains(unique); ++i) unique = name + "/" + std::to_string(i);
  transforms.push_back({unique, std::move(transform)});
}

void append_once(Transforms& transforms, const std::string& name, TransformPtr transform) {
  if (!has_name(transforms, name)) transforms.push_back({name, std::move(transform)});
}

Transforms merged(const Transforms& own, const Transforms& added) {
  Transforms all = own;
  const auto place =
      std::ranges::find_if(all, [](const NamedTransform& one) { return one.transform->makes_tensors(); });
  all.insert(place, added.begin(), added.end());
  return all;
}

SampleSpec spec_after(const Transforms& transforms, SampleSpec samples) {
  for (const auto& [name, transform] : transforms) {
    try {
      samples = transform->spec(samples);
    } catch (const TransformError& error) {
      throw UserError(name + ": " + error.what());
    }
  }
  return samples;
}

int64_t height_dim(at::ScalarType dtype, int64_t dims) { return dtype == at::kByte ? 0 : dims - 2; }

ImageSize image_size(const at::Tensor& image) {
  const int64_t height = height_dim(image);
  return {image.size(height), image.size(height + 1)};
}

bool is_of_pixels(at::IntArrayRef shape, const ImageSize& image) {
  const auto fits = [&image](int64_t height, int64_t width) {
    if (height == image.height && width == image.width) return true;
    if (std::min({height, width, image.height, image.width}) < 2) return false;
    const int64_t part = std::gcd(height, image.height);
    return height * image.width == width * image.height && std::min(height, image.height) <= 2 * part;
  };
  const std::size_t dims = shape.size();
  return dims > 1 && (fits(shape[0], shape[1]) || fits(shape[dims - 2], shape[dims - 1]));
}

std::pair<Shape, at::ScalarType> input_of(const SampleSpec& samples, at::ScalarType unknown) {
  const auto shape = samples.shapes.find(kInputArray);
  if (shape == samples.shapes.end())
    throw TransformError("kind", "the data has no array 'input'" + naming_hint(samples, kInputArray));
  const auto dtype = samples.dtypes.find(kInputArray);
  return {shape->second, dtype == samples.dtypes.end() ? unknown : dtype->second};
}

ImagesOfSamples image_of(const SampleSpec& samples, bool needs_bytes) {
  const auto [shape, dtype] = input_of(samples, needs_bytes ? at::kByte : at::kFloat);
  if (!is_image(shape, dtype, needs_bytes))
    throw TransformError("kind", std::string("expected images, uint8 [height, width, channels]") +
                                     (needs_bytes ? "" : " or float32 [channels, height, width]") +
                                     "; here 'input' is " + samples.describe(kInputArray) + " a sample");
  const auto height = static_cast<std::size_t>(height_dim(dtype, std::ssize(shape)));
  return {height, {shape[height], shape[height + 1]}};
}

void require_no_other_pixels(const SampleSpec& samples, const ImageSize& image) {
  const auto refuse = [&](const std::string& name) {
    throw TransformError("kind", "it moves the pixels of 'input' and not those of '" + name + "', which is " +
                                     samples.describe(name) +
                                     " a sample; store the data transformed, transform both in a dataset of "
                                     "your own, or leave out the transform or the array");
  };
  for (const auto& [name, shape] : samples.shapes)
    if (name != kInputArray && is_of_pixels(shape, image)) refuse(name);
  for (const std::string& name : samples.boxes) refuse(name);
}

SampleSpec ImageTransform::spec(const SampleSpec& before) const {
  const auto [height, image] = image_of(before, needs_bytes());
  const ImageSize after = image == kUnknownImageSize ? image : size(image);
  if (after != image || moves_pixels()) require_no_other_pixels(before, image);
  SampleSpec samples = before;
  samples.shapes[kInputArray][height] = after.height;
  samples.shapes[kInputArray][height + 1] = after.width;
  return samples;
}

void ImageTransform::apply(Batch& batch, const RowDraws& draws) const {
  const at::Tensor images = batch[kInputArray];
  std::vector<at::Tensor> changed;
  changed.reserve(static_cast<std::size_t>(images.size(0)));
  for (int64_t row = 0; row < images.size(0); ++row)
    changed.push_back(image(images.select(0, row), *draws(row)));
  batch.set(kInputArray, changed.size() == 1 ? changed[0].unsqueeze(0) : at::stack(changed));
}

}  // namespace tutti

#include "data/transforms/image_transforms.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/flip.h>

#include <algorithm>
#include <cmath>

namespace tutti {
namespace {

std::string size_text(const ImageSize& size) { return shape_text({size.height, size.width}); }

// The places of an edge of `size` pixels with `before` and `after` more around, from which numpy.pad would
// take values.
at::Tensor padded_places(int64_t size, int64_t before, int64_t after, const std::string& mode) {
  const at::Tensor places = at::empty({before + size + after}, at::kLong);
  auto* place = places.mutable_data_ptr<int64_t>();
  const int64_t mirrored = mode == "symmetric" ? 1 : 0;  // pixels at the edge are repeated
  for (int64_t i = -before; i < size + after; ++i) {
    int64_t from = i;
    if (mode != "edge" && i < 0) from = -i - mirrored;
    if (mode != "edge" && i >= size) from = 2 * (size - 1) - i + mirrored;
    *place++ = std::clamp<int64_t>(from, 0, size - 1);
  }
  return places;
}

using Padding = std::array<int64_t, 4>;  // left, top, right, bottom

at::Tensor padded(const at::Tensor& image, const Padding& padding, double fill, const std::string& mode) {
  const auto [left, top, right, bottom] = padding;
  const int64_t height = height_dim(image);
  if (mode != "constant") {
    const ImageSize size = image_size(image);
    return image.index_select(height, padded_places(size.height, top, bottom, mode))
        .index_select(height + 1, padded_places(size.width, left, right, mode));
  }
  std::vector<int64_t> sides{left, right, top, bottom};  // of the last dimensions first
  if (height + 2 < image.dim()) sides.insert(sides.begin(), {0, 0});
  return at::constant_pad_nd(image, sides, fill);
}

at::Tensor cropped(const at::Tensor& image, int64_t top, int64_t left, const ImageSize& size) {
  const int64_t height = height_dim(image);
  return image.narrow(height, top, size.height).narrow(height + 1, left, size.width);
}

// The padding of random_crop. Both sides get all missing pixels, as in torchvision.
std::vector<Padding> paddings(ImageSize image, const RandomCropOptions& options) {
  std::vector<Padding> all;
  if (options.padding) {
    all.push_back(*options.padding);
    image.width += all.back()[0] + all.back()[2];
    image.height += all.back()[1] + all.back()[3];
  }
  const int64_t columns = options.size.width - image.width, rows = options.size.height - image.height;
  if (options.pad_if_needed && columns > 0) all.push_back({columns, 0, columns, 0});
  if (options.pad_if_needed && rows > 0) all.push_back({0, rows, 0, rows});
  return all;
}

ImageSize added(ImageSize image, const Padding& padding) {
  return {image.height + padding[1] + padding[3], image.width + padding[0] + padding[2]};
}

// Mirrors cannot show more of an image than there is.
void require_mirror(const ImageSize& image, const Padding& padding, const std::string& mode) {
  const int64_t hidden = mode == "symmetric" ? 0 : 1;
  const bool fits = std::max(padding[0], padding[2]) <= image.width - hidden &&
                    std::max(padding[1], padding[3]) <= image.height - hidden;
  if (mode == "constant" || mode == "edge" || fits) return;
  throw TransformError("padding_mode", "it takes added pixels from the image, and " + size_text(image) +
                                           " has fewer than are added");
}

class RandomCrop final : public ImageTransform {
 public:
  explicit RandomCrop(const RandomCropOptions& options) : options_(options) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws& draws) const override {
    return random_crop(image, options_, draws);
  }
  ImageSize size(const ImageSize& before) const override {
    ImageSize all = before;
    for (const Padding& one : paddings(before, options_)) {
      require_mirror(all, one, options_.padding_mode);
      all = added(all, one);
    }
    if (all.height < options_.size.height || all.width < options_.size.width)
      throw TransformError("size", "the images are " + size_text(before) +
                                       (all == before ? "" : ", padded " + size_text(all)) +
                                       "; expected at most that, or pad_if_needed = true");
    return options_.size;
  }
  bool moves_pixels() const override { return options_.padding.has_value(); }

 private:
  RandomCropOptions options_;
};

class CenterCrop final : public ImageTransform {
 public:
  explicit CenterCrop(const ImageSize& size) : size_(size) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws&) const override { return center_crop(image, size_); }
  ImageSize size(const ImageSize& before) const override {
    if (before.height < size_.height || before.width < size_.width)
      throw TransformError("size", "the images are " + size_text(before) + "; expected at most that");
    return size_;
  }
  bool moves_pixels() const override { return false; }

 private:
  ImageSize size_;
};

class Flip final : public ImageTransform {
 public:
  explicit Flip(double p) : p_(p) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws& draws) const override { return flip(image, p_, draws); }

 private:
  double p_;
};

class Resize final : public ImageTransform {
 public:
  explicit Resize(const ResizeOptions& options) : options_(options) {}

 protected:
  at::Tensor image(const at::Tensor& image, Draws&) const override { return resize(image, options_); }
  ImageSize size(const ImageSize& before) const override {
    const ImageSize after = resized(before, options_);
    if (after.height > 0 && after.width > 0) return after;
    throw TransformError("max_size", "nothing is left of images of " + size_text(before));
  }
  bool moves_pixels() const override { return false; }

 private:
  ResizeOptions options_;
};

}  // namespace

at::Tensor random_crop(const at::Tensor& image, const RandomCropOptions& options, Draws& draws) {
  at::Tensor whole = image;
  for (const Padding& one : paddings(image_size(image), options))
    whole = padded(whole, one, options.fill, options.padding_mode);
  const ImageSize size = image_size(whole);
  if (size == options.size) return whole;
  TUTTI_ASSERT(size.height >= options.size.height && size.width >= options.size.width,
               "an image of " + size_text(size) + " has no crop of " + size_text(options.size));
  const int64_t top = draws.integer(0, size.height - options.size.height + 1);
  const int64_t left = draws.integer(0, size.width - options.size.width + 1);
  return cropped(whole, top, left, options.size);
}

at::Tensor center_crop(const at::Tensor& image, const ImageSize& size) {
  const auto missing = [](int64_t wanted, int64_t has) { return std::max<int64_t>(0, wanted - has); };
  const ImageSize has = image_size(image);
  const int64_t rows = missing(size.height, has.height), columns = missing(size.width, has.width);
  const at::Tensor whole =
      rows + columns == 0
          ? image
          : padded(image, {columns / 2, rows / 2, (columns + 1) / 2, (rows + 1) / 2}, 0, "constant");
  const ImageSize all = image_size(whole);
  const auto half = [](int64_t rest) {  // to even, as Python's round
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(rest) / 2));
  };
  return cropped(whole, half(all.height - size.height), half(all.width - size.width), size);
}

at::Tensor flip(const at::Tensor& image, double p, Draws& draws) {
  return draws.bernoulli(p) ? at::flip(image, {height_dim(image) + 1}) : image;
}

ImageSize resized(const ImageSize& image, const ResizeOptions& options) {
  if (options.size) return *options.size;
  const bool is_tall = image.width <= image.height;
  const int64_t smaller = std::min(image.height, image.width), larger = std::max(image.height, image.width);
  int64_t new_smaller = options.smaller_edge;
  auto new_larger = static_cast<int64_t>(static_cast<double>(new_smaller * larger) / smaller);
  if (options.max_size && new_larger > *options.max_size) {
    new_smaller = static_cast<int64_t>(static_cast<double>(*options.max_size * new_smaller) / new_larger);
    new_larger = *options.max_size;
  }
  return is_tall ? ImageSize{new_larger, new_smaller} : ImageSize{new_smaller, new_larger};
}

at::Tensor resize(const at::Tensor& image, const ResizeOptions& options) {
  const ImageSize size = resized(image_size(image), options);
  if (size == image_size(image)) return image;
  const bool bytes = image.scalar_type() == at::kByte;
  at::Tensor planes = bytes && image.dim() == 3 ? image.permute({2, 0, 1}) : image;
  if (planes.dim() == 2) planes = planes.unsqueeze(0);
  const at::Tensor made = at::_upsample_bilinear2d_aa(planes.unsqueeze(0), {size.height, size.width},
                                                      /*align_corners=*/false)
                              .squeeze(0);
  if (image.dim() == 2) return made.squeeze(0);
  return bytes ? made.permute({1, 2, 0}) : made;
}

TransformPtr random_crop_transform(const RandomCropOptions& options) {
  return std::make_shared<RandomCrop>(options);
}
TransformPtr center_crop_transform(const ImageSize& size) { return std::make_shared<CenterCrop>(size); }
TransformPtr flip_transform(double p) { return std::make_shared<Flip>(p); }
TransformPtr resize_transform(const ResizeOptions& options) { return std::make_shared<Resize>(options); }

TransformPtr RandomCropOptions::make(const Setting& section, const SampleSpec& samples) const {
  const bool is_byte = fill >= 0 && fill <= 255 && fill == std::trunc(fill);
  if (input_of(samples, at::kFloat).second == at::kByte && !is_byte)
    section.at("fill").fail("the images are uint8; expected an integer in [0, 255]");
  return random_crop_transform(*this);
}

TransformPtr CenterCropOptions::make(const Setting&, const SampleSpec&) const {
  return center_crop_transform(size);
}

TransformPtr FlipOptions::make(const Setting&, const SampleSpec&) const { return flip_transform(p); }

TransformPtr ResizeOptions::make(const Setting& section, const SampleSpec&) const {
  if (max_size && size) section.at("max_size").fail("it needs a size of one number");
  if (max_size && *max_size <= smaller_edge)
    section.at("max_size").fail("expected more than size, " + std::to_string(smaller_edge));
  return resize_transform(*this);
}

}  // namespace tutti

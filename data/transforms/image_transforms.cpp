#include "data/transforms/image_transforms.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "data/transforms/box.h"

namespace tutti {
namespace {

std::string size_text(const ImageSize& size) { return shape_text({size.height, size.width}); }

// The borders of random_crop. Both sides get all missing pixels, as in torchvision.
std::vector<Geometry::Border> borders(ImageSize image, const RandomCropOptions& options) {
  std::vector<Geometry::Border> all;
  const auto add = [&](const Padding& padding) {
    all.push_back({padding, options.fill, options.padding_mode});
  };
  if (options.padding) {
    add(*options.padding);
    image.width += (*options.padding)[0] + (*options.padding)[2];
    image.height += (*options.padding)[1] + (*options.padding)[3];
  }
  const int64_t columns = options.size.width - image.width, rows = options.size.height - image.height;
  if (options.pad_if_needed && columns > 0) add({columns, 0, columns, 0});
  if (options.pad_if_needed && rows > 0) add({0, rows, 0, rows});
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

// The size with all borders. Throws TransformError if it is less than that of the crop.
ImageSize size_to_crop(const ImageSize& image, const RandomCropOptions& options) {
  ImageSize all = image;
  for (const Geometry::Border& border : borders(image, options)) {
    require_mirror(all, border.padding, options.padding_mode);
    all = added(all, border.padding);
  }
  if (all.height < options.size.height || all.width < options.size.width)
    throw TransformError("size", "the images are " + size_text(image) +
                                     (all == image ? "" : ", padded " + size_text(all)) +
                                     "; expected at most that, or pad_if_needed = true");
  return all;
}

Geometry random_crop_of(const ImageSize& image, const RandomCropOptions& options, Draws& draws) {
  const ImageSize all = size_to_crop(image, options), size = options.size;
  Geometry crop{.borders = borders(image, options), .part = {0, 0, size}, .result = size};
  if (all == size) return crop;
  crop.part.top = draws.integer(0, all.height - size.height + 1);
  crop.part.left = draws.integer(0, all.width - size.width + 1);
  return crop;
}

Geometry center_crop_of(const ImageSize& image, const ImageSize& size) {
  Geometry crop{.part = {0, 0, size}, .result = size};
  const int64_t rows = std::max<int64_t>(0, size.height - image.height);
  const int64_t columns = std::max<int64_t>(0, size.width - image.width);
  const Padding padding{columns / 2, rows / 2, (columns + 1) / 2, (rows + 1) / 2};
  if (rows + columns > 0) crop.borders.push_back({padding});
  const ImageSize all = added(image, padding);
  const auto half = [](int64_t rest) {  // to even, as Python's round
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(rest) / 2));
  };
  crop.part.top = half(all.height - size.height);
  crop.part.left = half(all.width - size.width);
  return crop;
}

Geometry resize_of(const ImageSize& image, const ResizeOptions& options) {
  return {.part = {0, 0, image}, .result = resized(image, options), .interpolation = options.interpolation};
}

class RandomCrop final : public GeometricTransform {
 public:
  RandomCrop(const RandomCropOptions& options, PixelArrays arrays)
      : GeometricTransform(std::move(arrays)), options_(options) {}
  Geometry geometry(const ImageSize& before, Draws& draws) const override {
    return random_crop_of(before, options_, draws);
  }

 protected:
  ImageSize size(const ImageSize& before) const override {
    size_to_crop(before, options_);
    return options_.size;
  }
  ImageSize common_size() const override { return options_.size; }

 private:
  RandomCropOptions options_;
};

class CenterCrop final : public GeometricTransform {
 public:
  CenterCrop(const ImageSize& size, PixelArrays arrays)
      : GeometricTransform(std::move(arrays)), size_(size) {}
  Geometry geometry(const ImageSize& before, Draws&) const override { return center_crop_of(before, size_); }

 protected:
  ImageSize size(const ImageSize& before) const override {
    if (before.height < size_.height || before.width < size_.width)
      throw TransformError("size", "the images are " + size_text(before) + "; expected at most that");
    return size_;
  }
  ImageSize common_size() const override { return size_; }

 private:
  ImageSize size_;
};

class RandomResizedCrop final : public GeometricTransform {
 public:
  RandomResizedCrop(const RandomResizedCropOptions& options, PixelArrays arrays)
      : GeometricTransform(std::move(arrays)), options_(options) {}
  Geometry geometry(const ImageSize& before, Draws& draws) const override {
    return {.part = draw_part(before, options_.scale, options_.ratio, draws),
            .result = options_.size,
            .interpolation = options_.interpolation};
  }

 protected:
  ImageSize size(const ImageSize&) const override { return options_.size; }
  ImageSize common_size() const override { return options_.size; }

 private:
  RandomResizedCropOptions options_;
};

// Left to right, or upside down.
class Flip final : public GeometricTransform {
 public:
  Flip(double p, bool flips_rows, PixelArrays arrays)
      : GeometricTransform(std::move(arrays)), p_(p), flips_rows_(flips_rows) {}
  Geometry geometry(const ImageSize& before, Draws& draws) const override {
    Geometry same = Geometry::same(before);
    (flips_rows_ ? same.mirrors_rows : same.mirrors_columns) = draws.bernoulli(p_);
    return same;
  }

 protected:
  ImageSize size(const ImageSize& before) const override { return before; }

 private:
  double p_;
  bool flips_rows_;
};

class Resize final : public GeometricTransform {
 public:
  Resize(const ResizeOptions& options, PixelArrays arrays)
      : GeometricTransform(std::move(arrays)), options_(options) {}
  Geometry geometry(const ImageSize& before, Draws&) const override {
    size(before);
    return resize_of(before, options_);
  }

 protected:
  ImageSize size(const ImageSize& before) const override {
    const ImageSize after = resized(before, options_);
    if (after.height > 0 && after.width > 0) return after;
    throw TransformError("max_size", "nothing is left of images of " + size_text(before));
  }
  ImageSize common_size() const override { return options_.size.value_or(kUnknownImageSize); }

 private:
  ResizeOptions options_;
};

// The largest part in the middle whose ratio is within the range.
Region middle_part(const ImageSize& image, const std::vector<double>& ratio) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  ImageSize size = image;
  if (width / height < ratio[0]) size.height = static_cast<int64_t>(std::nearbyint(width / ratio[0]));
  if (width / height > ratio[1]) size.width = static_cast<int64_t>(std::nearbyint(height * ratio[1]));
  return {(image.height - size.height) / 2, (image.width - size.width) / 2, size};
}

void require_range(const Setting& section, const char* key, const std::vector<double>& range) {
  if (range.size() == 2 && range[0] <= range[1]) return;
  section.at(key).fail("expected [lowest, highest]");
}

}  // namespace

at::Tensor random_crop(const at::Tensor& image, const RandomCropOptions& options, Draws& draws) {
  return placed(image, random_crop_of(image_size(image), options, draws));
}

at::Tensor center_crop(const at::Tensor& image, const ImageSize& size) {
  return placed(image, center_crop_of(image_size(image), size));
}

at::Tensor flip(const at::Tensor& image, double p, Draws& draws) {
  Geometry same = Geometry::same(image_size(image));
  same.mirrors_columns = draws.bernoulli(p);
  return placed(image, same);
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
  return placed(image, resize_of(image_size(image), options));
}

Region draw_part(const ImageSize& image, const std::vector<double>& scale, const std::vector<double>& ratio,
                 Draws& draws) {
  if (const auto drawn = draw_rectangle(image, image, scale, ratio, draws)) return *drawn;
  return middle_part(image, ratio);
}

TransformPtr random_crop_transform(const RandomCropOptions& options, PixelArrays arrays) {
  return std::make_shared<RandomCrop>(options, std::move(arrays));
}
TransformPtr center_crop_transform(const ImageSize& size, PixelArrays arrays) {
  return std::make_shared<CenterCrop>(size, std::move(arrays));
}
TransformPtr random_resized_crop_transform(const RandomResizedCropOptions& options, PixelArrays arrays) {
  return std::make_shared<RandomResizedCrop>(options, std::move(arrays));
}
TransformPtr flip_transform(double p, PixelArrays arrays) {
  return std::make_shared<Flip>(p, /*of_rows=*/false, std::move(arrays));
}
TransformPtr vertical_flip_transform(double p, PixelArrays arrays) {
  return std::make_shared<Flip>(p, /*of_rows=*/true, std::move(arrays));
}
TransformPtr resize_transform(const ResizeOptions& options, PixelArrays arrays) {
  return std::make_shared<Resize>(options, std::move(arrays));
}

TransformPtr RandomCropOptions::make(const Setting& section, const SampleSpec& samples) const {
  const bool is_byte = fill >= 0 && fill <= 255 && fill == std::trunc(fill);
  if (input_of(samples, at::kFloat).second == at::kByte && !is_byte)
    section.at("fill").fail("the images are uint8; expected an integer in [0, 255]");
  return random_crop_transform(*this, PixelArrays::of(samples));
}

TransformPtr CenterCropOptions::make(const Setting&, const SampleSpec& samples) const {
  return center_crop_transform(size, PixelArrays::of(samples));
}

TransformPtr RandomResizedCropOptions::make(const Setting& section, const SampleSpec& samples) const {
  require_range(section, "scale", scale);
  require_range(section, "ratio", ratio);
  return random_resized_crop_transform(*this, PixelArrays::of(samples));
}

TransformPtr FlipOptions::make(const Setting&, const SampleSpec& samples) const {
  return flip_transform(p, PixelArrays::of(samples));
}

TransformPtr VerticalFlipOptions::make(const Setting&, const SampleSpec& samples) const {
  return vertical_flip_transform(p, PixelArrays::of(samples));
}

TransformPtr ResizeOptions::make(const Setting& section, const SampleSpec& samples) const {
  if (max_size && size) section.at("max_size").fail("it needs a size of one number");
  if (max_size && *max_size <= smaller_edge)
    section.at("max_size").fail("expected more than size, " + std::to_string(smaller_edge));
  return resize_transform(*this, PixelArrays::of(samples));
}

}  // namespace tutti

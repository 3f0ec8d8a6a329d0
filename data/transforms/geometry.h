#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "data/images/decoder.h"
#include "data/transforms/options.h"
#include "data/transforms/transform.h"
#include "tensors/draws.h"

namespace tutti {

// A transform's changes of the places of an image's pixels, in this order.
struct Geometry {
  struct Border {
    Padding padding = {};
    double fill = 0;  // in the mode "constant"
    std::string mode = "constant";
  };

  std::vector<Border> borders = {};  // pixels are added, one border after the other
  Region part = {};                  // of the image with its borders
  ImageSize result = {};             // to which the part is resized
  Interpolation interpolation = Interpolation::kBilinear;
  bool mirrors_columns = false, mirrors_rows = false;

  static Geometry same(const ImageSize& image) { return {.part = {0, 0, image}, .result = image}; }
};

// The image (see image_transforms.h) by this geometry; maybe a view.
at::Tensor placed(const at::Tensor& image, const Geometry& geometry);

// The part of the image that the geometry reads. For an image decoded at full size, both ways have equal
// results: placed_part(decoded part) == placed(image).
NeededPart needed_part(const Geometry& geometry, const ImageSize& image);
at::Tensor placed_part(const at::Tensor& part, const Geometry& geometry);

// A mask whose dimensions `height_dim` and height_dim + 1 are the image's: the nearest pixels, as
// torchvision.tv_tensors.Mask. Added pixels are kIgnoredTarget in int64, else 0, for every fill.
at::Tensor placed_mask(const at::Tensor& mask, int64_t height_dim, const Geometry& geometry);

// Boxes float [n, 4], x1, y1, x2, y2 in pixels. Boxes are clamped to the result, as
// torchvision.tv_tensors.BoundingBoxes: a box outside has no area.
at::Tensor placed_boxes(const at::Tensor& boxes, const Geometry& geometry);

// The arrays of samples besides "input" that belong to the image's pixels.
struct PixelArrays {
  std::map<std::string, int64_t> masks = {};  // as large as the image; their dimension that is the height
  std::vector<std::string> boxes = {};

  static PixelArrays of(const SampleSpec& samples);
};

// A transform that moves, adds or leaves out pixels of each "input", and changes masks and boxes alike.
class GeometricTransform : public Transform {
 public:
  explicit GeometricTransform(PixelArrays arrays) : arrays_(std::move(arrays)) {}

  SampleSpec spec(const SampleSpec& before) const final;
  void apply(Batch& batch, const RowDraws& draws) const final;

  // The geometry for an image of this size. Throws TransformError if the size does not suit.
  virtual Geometry geometry(const ImageSize& before, Draws& draws) const = 0;

 protected:
  // The size of images of size `before`, after the transform. Throws TransformError.
  virtual ImageSize size(const ImageSize& before) const = 0;
  // The same for images of differing sizes: kUnknownImageSize, or the one size that all get.
  virtual ImageSize common_size() const { return kUnknownImageSize; }

 private:
  PixelArrays arrays_;
};

}  // namespace tutti

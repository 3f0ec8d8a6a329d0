#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/transforms/options.h"
#include "runtime/error.h"
#include "tensors/draws.h"
#include "tensors/tree.h"

namespace tutti {

inline constexpr const char* kInputArray = "input";
inline constexpr const char* kTargetArray = "target";

// The samples do not suit a transform. `option`: the transform's key that is to blame, or "kind".
class TransformError final : public UserError {
 public:
  TransformError(std::string option, const std::string& message)
      : UserError(message), option(std::move(option)) {}
  std::string option;
};

// Opens the random numbers of one row of a batch.
using RowDraws = std::function<std::unique_ptr<Draws>(int64_t row)>;

// Changes samples on their way from a dataset into a batch. Thread-safe and stateless.
class Transform {
 public:
  virtual ~Transform() = default;

  // The layout of samples after the transform. Throws TransformError if samples of this layout do not suit.
  virtual SampleSpec spec(const SampleSpec& before) const = 0;

  // Changes a batch of at least one row. A row depends on its own values and draws alone. Does not write into
  // the tensors given, which may be the dataset's own.
  virtual void apply(Batch& batch, const RowDraws& draws) const = 0;

  // True if "input" may be another one afterwards.
  virtual bool changes_input() const { return true; }

  // True if uint8 images become tensors here: algorithms add their transforms of images before this
  // transform.
  virtual bool makes_tensors() const { return false; }
};

// A transform and the name that its random numbers are drawn by.
struct NamedTransform {
  std::string name;
  TransformPtr transform;
};
using Transforms = std::vector<NamedTransform>;  // in their order

// Appends a transform, as `name`, or as "name/1", "name/2", ... if the name is in use.
void append(Transforms& transforms, const std::string& name, TransformPtr transform);

// Appends a transform if there is none of that name.
void append_once(Transforms& transforms, const std::string& name, TransformPtr transform);

// All transforms: `added` before the first of `own` that makes tensors, else at the end.
Transforms merged(const Transforms& own, const Transforms& added);

// The layout of samples after all transforms. Throws UserError that names the transform that does not suit.
SampleSpec spec_after(const Transforms& transforms, SampleSpec samples);

// The dimension of an image that is its height; the next dimension is its width. Images are uint8 [height,
// width] or [height, width, channels], as in files and in PIL, or else tensors [..., height, width].
int64_t height_dim(at::ScalarType dtype, int64_t dims);
inline int64_t height_dim(const at::Tensor& image) { return height_dim(image.scalar_type(), image.dim()); }
ImageSize image_size(const at::Tensor& image);

// True if an array of this shape may belong to an image's pixels, as a mask does: [..., height, width] or
// [height, width, ...], both edges scaled by one factor: 1, 2, 3/2, 1/4, 2/3, ..., with 1 or 2 above or below
// the line. An edge of 1 is none.
bool is_of_pixels(at::IntArrayRef shape, const ImageSize& image);

// The images "input" of samples: uint8 [height, width] or [height, width, channels] with at most 4 channels,
// or floating-point [channels, height, width].
struct ImagesOfSamples {
  std::size_t height;  // the dimension that is the height; the next is the width
  ImageSize size;      // kUnknownImageSize if images differ
};
// Throws TransformError for other samples.
ImagesOfSamples image_of(const SampleSpec& samples, bool needs_bytes);

// Throws TransformError if the samples have masks or boxes, which would no longer fit the images.
void require_no_other_pixels(const SampleSpec& samples, const ImageSize& image);

// A transform of single images "input". Other arrays stay unchanged, so a transform that moves pixels refuses
// arrays of pixels, such as masks, in `spec`.
class ImageTransform : public Transform {
 public:
  SampleSpec spec(const SampleSpec& before) const final;
  void apply(Batch& batch, const RowDraws& draws) const final;

 protected:
  // The transform of one image, of the same dtype and number of dimensions. May return views.
  virtual at::Tensor image(const at::Tensor& image, Draws& draws) const = 0;
  // The size of images of size `before`, after the transform. Throws TransformError.
  virtual ImageSize size(const ImageSize& before) const { return before; }
  // True if images must be uint8.
  virtual bool needs_bytes() const { return false; }
  // True if pixels of an image that keeps its size may be elsewhere afterwards.
  virtual bool moves_pixels() const { return true; }
};

// The shape and dtype of samples' "input". Throws TransformError if there is none. The dtype is `unknown` if
// the dataset does not say.
std::pair<Shape, at::ScalarType> input_of(const SampleSpec& samples, at::ScalarType unknown);

}  // namespace tutti

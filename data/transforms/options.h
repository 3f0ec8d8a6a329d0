#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image_size.h"
#include "recipe/options.h"

// The kinds of [[data.train.transforms]], [[data.eval.transforms]] and [[evaluators.transforms]], with
// Composer's, torchvision's and transformers' names and defaults. Free of libtorch.
namespace tutti {

struct SampleSpec;
class Transform;
using TransformPtr = std::shared_ptr<const Transform>;

using Padding = std::array<int64_t, 4>;  // pixels added left, top, right, bottom

struct RandAugmentOptions {
  int64_t severity = 9;  // the level of every operation: 0 (weak) to 10 (strong)
  int64_t depth = 2;     // operations applied in sequence; at least 0
  std::string augmentation_set =
      "all";  // all, safe or original: data/transforms/augmentations/image_operations.h

  static Kind<RandAugmentOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct AugMixOptions {
  int64_t severity = 3;  // the level of every operation: 0 (weak) to 10 (strong)
  int64_t depth = -1;    // operations of a chain; below 1: each chain draws 1, 2 or 3
  int64_t width = 3;     // chains; at least 1
  double alpha = 1.0;    // of the Dirichlet and Beta distributions of the weights; above 0
  std::string augmentation_set =
      "all";  // all, safe or original: data/transforms/augmentations/image_operations.h

  static Kind<AugMixOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct ColOutOptions {
  double p_row = 0.15;  // part of the rows that is dropped
  double p_col = 0.15;  // part of the columns
  std::optional<bool> resize_target =
      {};  // not given: if the target [N, ..., H, W] is as large as the images

  static Kind<ColOutOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

inline constexpr double kMostHoles = 1e4;  // that cutout makes in an image

struct CutOutOptions {
  int64_t num_holes = 1;
  double length = 0.5;  // side of a hole, as a part of min(H, W)
  bool uniform_sampling = false;

  static Kind<CutOutOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct RandomCropOptions {
  ImageSize size = {};                    // of the crop
  std::optional<Padding> padding = {};    // before all else
  bool pad_if_needed = false;             // an image that is too small is padded on both sides
  double fill = 0;                        // value of added pixels if padding_mode is "constant"
  std::string padding_mode = "constant";  // or "edge", "reflect", "symmetric", as numpy.pad

  static Kind<RandomCropOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct CenterCropOptions {
  ImageSize size = {};

  static Kind<CenterCropOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

enum class Interpolation { kBilinear, kBicubic };  // with antialiasing

struct RandomResizedCropOptions {
  ImageSize size = {};                          // of the result
  std::vector<double> scale = {0.08, 1};        // area of the part, of the image's
  std::vector<double> ratio = {0.75, 4.0 / 3};  // width to height of the part
  Interpolation interpolation = Interpolation::kBilinear;

  static Kind<RandomResizedCropOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct FlipOptions {
  double p = 0.5;

  static Kind<FlipOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct VerticalFlipOptions {
  double p = 0.5;

  static Kind<VerticalFlipOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct ResizeOptions {
  std::optional<ImageSize> size = {};    // of the result; else `smaller_edge`
  int64_t smaller_edge = 0;              // the height-to-width ratio is kept
  std::optional<int64_t> max_size = {};  // with smaller_edge: the larger edge has at most this many pixels
  Interpolation interpolation = Interpolation::kBilinear;

  static Kind<ResizeOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

// Factors are drawn from [1 - x, 1 + x], or from [low, high]; hues from [-x, x]. None: not changed.
struct ColorJitterOptions {
  std::vector<double> brightness = {};
  std::vector<double> contrast = {};
  std::vector<double> saturation = {};
  std::vector<double> hue = {};  // parts of the circle of colors: at most half the circle to either side

  static Kind<ColorJitterOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct GaussianBlurOptions {
  ImageSize kernel_size = {};            // odd
  std::vector<double> sigma = {0.1, 2};  // in pixels; one number, or the range to draw from

  static Kind<GaussianBlurOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct RandomErasingOptions {
  double p = 0.5;
  std::vector<double> scale = {0.02, 0.33};  // area of the rectangle, of the image's
  std::vector<double> ratio = {0.3, 3.3};    // height to width of the rectangle
  std::vector<double> value = {0};           // of its pixels: a number, or a number for each channel

  static Kind<RandomErasingOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct ToTensorOptions {
  static Kind<ToTensorOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct NormalizeOptions {
  std::vector<double> mean = {};  // of each channel, or a number for all channels
  std::vector<double> std = {};

  static Kind<NormalizeOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct MaskTokensOptions {
  int64_t mask_token_id = -1;                   // -1: as the data's tokenizer says
  int64_t vocab_size = 0;                       // random tokens are below
  std::vector<int64_t> special_token_ids = {};  // never chosen; absent: the tokenizer's
  double mlm_probability = 0.15;                // of a token to be chosen

  static Kind<MaskTokensOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

struct NextTokenOptions {
  static Kind<NextTokenOptions> kind();
  TransformPtr make(const Setting& section, const SampleSpec& samples) const;
};

using TransformKinds =
    Kinds<AugMixOptions, RandAugmentOptions, ColOutOptions, CutOutOptions, RandomCropOptions,
          CenterCropOptions, RandomResizedCropOptions, FlipOptions, VerticalFlipOptions, ResizeOptions,
          ColorJitterOptions, GaussianBlurOptions, RandomErasingOptions, ToTensorOptions, NormalizeOptions,
          MaskTokensOptions, NextTokenOptions>;

Catalog transform_catalog();

template <>
struct OptionType<ImageSize> {
  static constexpr KeyType type = KeyType::kIntegerOrIntegers;
  static std::string text(const ImageSize&) { return ""; }
  static ImageSize read(const Setting& key);  // [height, width], or one number for both
};
template <>
struct OptionType<Padding> {
  static constexpr KeyType type = KeyType::kIntegerOrIntegers;
  static std::string text(const Padding&) { return ""; }
  // One number, [left and right, top and bottom], or [left, top, right, bottom].
  static Padding read(const Setting& key);
};

// The keys of randaugment and augmix, for the algorithms of these names too.
template <class Options>
Bound<Options> severity_key() {
  return option<Options>("severity", &Options::severity, "how strong each operation is")
      .at_least(0)
      .at_most(10);
}
template <class Options>
Bound<Options> augmentation_set_key() {
  return option<Options>(
             "augmentation_set", &Options::augmentation_set,
             "the operations that are drawn from; safe: none of the test sets CIFAR-10-C and ImageNet-C; "
             "original: color, contrast, brightness and sharpness as in the code of the AugMix paper")
      .one_of({"all", "safe", "original"});
}
inline constexpr double kMostOperations = 100;  // of an image, in sequence or side by side

template <class Options>
std::vector<Bound<Options>> randaugment_keys() {
  return {severity_key<Options>(),
          option<Options>("depth", &Options::depth, "operations on an image, one after the other")
              .at_least(0)
              .at_most(kMostOperations),
          augmentation_set_key<Options>()};
}
template <class Options>
std::vector<Bound<Options>> augmix_keys() {
  return {
      severity_key<Options>(),
      option<Options>("depth", &Options::depth,
                      "operations of a chain; below 1: 1, 2 or 3, drawn for each chain")
          .at_most(kMostOperations),
      option<Options>("width", &Options::width, "chains of operations").at_least(1).at_most(kMostOperations),
      option<Options>("alpha", &Options::alpha,
                      "the weights of the chains and of the image are drawn from Dirichlet(alpha, ...) and "
                      "Beta(alpha, alpha)")
          .written("1.0")
          .more_than(0),
      augmentation_set_key<Options>()};
}

}  // namespace tutti

#include "data/transforms/factory.h"

#include <cmath>
#include <map>

#include "data/transforms/colout.h"
#include "data/transforms/cutout.h"
#include "data/transforms/image_transforms.h"
#include "data/transforms/mask_tokens.h"
#include "data/transforms/next_token.h"
#include "data/transforms/tensor_transforms.h"

namespace tutti {
namespace {

std::vector<int64_t> one_or_more(const Setting& key) {
  return key.is_array() ? key.integers() : std::vector<int64_t>{key.integer()};
}

ImageSize height_and_width(const Setting& key) {
  const std::vector<int64_t> sizes = one_or_more(key);
  if (sizes.size() == 1) return {sizes[0], sizes[0]};
  if (sizes.size() != 2) key.fail("expected [height, width], or one number for both");
  return {sizes[0], sizes[1]};
}

std::array<int64_t, 4> padding_of(const Setting& key) {
  const std::vector<int64_t> sides = one_or_more(key);
  if (sides.size() == 1) return {sides[0], sides[0], sides[0], sides[0]};
  if (sides.size() == 2) return {sides[0], sides[1], sides[0], sides[1]};
  if (sides.size() != 4)
    key.fail("expected one number, [left and right, top and bottom], or [left, top, right, bottom]");
  return {sides[0], sides[1], sides[2], sides[3]};
}

TransformPtr make_random_crop(const Setting& section, const SampleSpec& samples) {
  RandomCropOptions options{.size = height_and_width(section.at("size")),
                            .padding = std::nullopt,
                            .pad_if_needed = section.at("pad_if_needed").boolean(),
                            .fill = section.at("fill").number(),
                            .padding_mode = section.at("padding_mode").text()};
  if (section.has("padding")) options.padding = padding_of(section.at("padding"));
  const bool is_byte = options.fill >= 0 && options.fill <= 255 && options.fill == std::trunc(options.fill);
  if (input_of(samples, at::kFloat).second == at::kByte && !is_byte)
    section.at("fill").fail("the images are uint8; expected an integer in [0, 255]");
  return random_crop_transform(options);
}

TransformPtr make_resize(const Setting& section, const SampleSpec&) {
  ResizeOptions options;
  if (section.at("size").is_array())
    options.size = height_and_width(section.at("size"));
  else
    options.smaller_edge = section.at("size").integer();
  if (!section.has("max_size")) return resize_transform(options);
  const Setting& most = section.at("max_size");
  if (options.size) most.fail("it needs a size of one number");
  if (most.integer() <= options.smaller_edge)
    most.fail("expected more than size, " + std::to_string(options.smaller_edge));
  options.max_size = most.integer();
  return resize_transform(options);
}

TransformPtr make_normalize(const Setting& section, const SampleSpec&) {
  return normalize_transform(section.at("mean").numbers(), section.at("std").numbers());
}

TransformPtr make_mask_tokens(const Setting& section, const SampleSpec& samples) {
  MaskTokensOptions options{.mask_token_id = section.at("mask_token_id").integer(),
                            .vocab_size = samples.classes,
                            .special_token_ids = {},
                            .mlm_probability = section.at("mlm_probability").number()};
  const Setting& vocab_size = section.at("vocab_size");
  if (!vocab_size.is_none()) options.vocab_size = vocab_size.integer();
  if (options.vocab_size < std::max<int64_t>(samples.classes, 1))
    vocab_size.fail(samples.classes == 0
                        ? "the data does not say how many tokens there are; expected their number"
                        : "expected at least " + std::to_string(samples.classes) +
                              ": the data has tokens up to " + std::to_string(samples.classes - 1));
  if (section.has("special_token_ids"))
    options.special_token_ids = section.at("special_token_ids").integers();
  return mask_tokens_transform(options);
}

TransformPtr make_cutout(const Setting& section, const SampleSpec&) {
  return cutout_transform({.num_holes = section.at("num_holes").integer(),
                           .length = section.at("length").number(),
                           .uniform_sampling = section.at("uniform_sampling").boolean()});
}

using Maker = TransformPtr (*)(const Setting& section, const SampleSpec& samples);

const std::map<std::string, Maker>& transform_makers() {
  static const std::map<std::string, Maker> makers = {
      {"colout",
       [](const Setting& section, const SampleSpec&) {
         return colout_transform(section.at("p_row").number(), section.at("p_col").number());
       }},
      {"cutout", make_cutout},
      {"randaugment", [](const Setting& section,
                         const SampleSpec&) { return randaugment_transform(randaugment_options(section)); }},
      {"augmix",
       [](const Setting& section, const SampleSpec&) { return augmix_transform(augmix_options(section)); }},
      {"random_crop", make_random_crop},
      {"center_crop",
       [](const Setting& section, const SampleSpec&) {
         return center_crop_transform(height_and_width(section.at("size")));
       }},
      {"flip",
       [](const Setting& section, const SampleSpec&) { return flip_transform(section.at("p").number()); }},
      {"resize", make_resize},
      {"to_tensor", [](const Setting&, const SampleSpec&) { return to_tensor_transform(); }},
      {"normalize", make_normalize},
      {"mask_tokens", make_mask_tokens},
      {"next_token", [](const Setting&, const SampleSpec&) { return next_token_transform(); }},
  };
  return makers;
}

}  // namespace

RandAugmentOptions randaugment_options(const Setting& section) {
  return {.severity = section.at("severity").integer(),
          .depth = section.at("depth").integer(),
          .augmentation_set = section.at("augmentation_set").text()};
}

AugMixOptions augmix_options(const Setting& section) {
  return {.severity = section.at("severity").integer(),
          .depth = section.at("depth").integer(),
          .width = section.at("width").integer(),
          .alpha = section.at("alpha").number(),
          .augmentation_set = section.at("augmentation_set").text()};
}

Transforms make_transforms(const Setting& tables, SampleSpec samples) {
  Transforms transforms;
  for (const Setting& section : tables.array()) {
    const std::string& kind = section.at("kind").text();
    try {
      append(transforms, kind, transform_makers().at(kind)(section, samples));
      samples = transforms.back().transform->spec(samples);
    } catch (const TransformError& error) {
      section.at(error.option).fail(error);
    }
  }
  return transforms;
}

}  // namespace tutti

#include "data/transforms/options.h"

namespace tutti {
namespace {

constexpr double kMostPixels = 1e6;  // of an edge
constexpr double kMostTokens = 1e9;

std::vector<int64_t> one_or_more(const Setting& key) {
  return key.is_array() ? key.integers() : std::vector<int64_t>{key.integer()};
}

template <class Options>
Bound<Options> edges(const std::string& doc) {
  return option("size", &Options::size, doc).at_least(1).at_most(kMostPixels);
}

}  // namespace

ImageSize OptionType<ImageSize>::read(const Setting& key) {
  const std::vector<int64_t> sizes = one_or_more(key);
  if (sizes.size() == 1) return {sizes[0], sizes[0]};
  if (sizes.size() != 2) key.fail("expected [height, width], or one number for both");
  return {sizes[0], sizes[1]};
}

Padding OptionType<Padding>::read(const Setting& key) {
  const std::vector<int64_t> sides = one_or_more(key);
  if (sides.size() == 1) return {sides[0], sides[0], sides[0], sides[0]};
  if (sides.size() == 2) return {sides[0], sides[1], sides[0], sides[1]};
  if (sides.size() != 4)
    key.fail("expected one number, [left and right, top and bottom], or [left, top, right, bottom]");
  return {sides[0], sides[1], sides[2], sides[3]};
}

Kind<RandAugmentOptions> RandAugmentOptions::kind() {
  return {"randaugment", "Changes each image by operations that are drawn; as the algorithm randaugment.",
          randaugment_keys<RandAugmentOptions>()};
}

Kind<AugMixOptions> AugMixOptions::kind() {
  return {"augmix", "Mixes each image with chains of operations on it; as the algorithm augmix.",
          augmix_keys<AugMixOptions>()};
}

Kind<ColOutOptions> ColOutOptions::kind() {
  return {
      "colout",
      "Drops rows and columns of each image; the algorithm colout drops the same ones of a whole batch.",
      {option("p_row", &ColOutOptions::p_row, "part of the rows that is dropped").at_least(0).at_most(1),
       option("p_col", &ColOutOptions::p_col, "part of the columns that is dropped").at_least(0).at_most(1)}};
}

Kind<CutOutOptions> CutOutOptions::kind() {
  return {
      "cutout",
      "Blackens squares of each image; the algorithm cutout blackens the same ones of a whole batch.",
      {option("num_holes", &CutOutOptions::num_holes, "squares in an image").at_least(1).at_most(kMostHoles),
       option("length", &CutOutOptions::length,
              "side of a square, as a part of the shorter side of the image")
           .more_than(0)
           .at_most(1),
       option("uniform_sampling", &CutOutOptions::uniform_sampling,
              "draw the squares so that each pixel is covered as often as any other")}};
}

Kind<RandomCropOptions> RandomCropOptions::kind() {
  return {"random_crop",
          "A part of each image, at a place that is drawn; as torchvision's RandomCrop.",
          {edges<RandomCropOptions>("height and width of the part, or one number for both"),
           option("padding", &RandomCropOptions::padding,
                  "pixels that are added first: one number, [left and right, top and bottom], or [left, top, "
                  "right, bottom]")
               .at_least(0)
               .at_most(kMostPixels),
           option("pad_if_needed", &RandomCropOptions::pad_if_needed,
                  "add pixels on both sides of images that are too small"),
           option("fill", &RandomCropOptions::fill, "the added pixels, if padding_mode is constant"),
           option("padding_mode", &RandomCropOptions::padding_mode, "how pixels are added, as in numpy.pad")
               .one_of({"constant", "edge", "reflect", "symmetric"})}};
}

Kind<CenterCropOptions> CenterCropOptions::kind() {
  return {"center_crop",
          "The middle of each image; as torchvision's CenterCrop.",
          {edges<CenterCropOptions>("height and width of the middle, or one number for both")}};
}

Kind<FlipOptions> FlipOptions::kind() {
  return {"flip",
          "Mirrors images left to right at random; as torchvision's RandomHorizontalFlip.",
          {option("p", &FlipOptions::p, "probability of each image").at_least(0).at_most(1)}};
}

Kind<ResizeOptions> ResizeOptions::kind() {
  return {
      "resize",
      "Images of another size, bilinear with antialiasing; as torchvision's Resize.",
      {Bound<ResizeOptions>({"size", KeyType::kIntegerOrIntegers, "",
                             "height and width, or one number: of the smaller edge, and the shape is kept"},
                            [](ResizeOptions& options, const Setting& key) {
                              if (key.is_array())
                                options.size = OptionType<ImageSize>::read(key);
                              else
                                options.smaller_edge = key.integer();
                            })
           .at_least(1)
           .at_most(kMostPixels),
       option("max_size", &ResizeOptions::max_size, "of the larger edge, if size is one number")
           .at_least(1)
           .at_most(kMostPixels)}};
}

Kind<ToTensorOptions> ToTensorOptions::kind() {
  return {"to_tensor",
          "uint8 images [height, width, channels] become float32 [channels, height, width] in [0, 1]; as "
          "torchvision's ToTensor."};
}

Kind<NormalizeOptions> NormalizeOptions::kind() {
  const char* doc = "of each channel, or one number for all";
  return {"normalize",
          "(value - mean) / std; as torchvision's Normalize. After to_tensor.",
          {option("mean", &NormalizeOptions::mean, doc).required(),
           option("std", &NormalizeOptions::std, doc).required().more_than(0)}};
}

Kind<MaskTokensOptions> MaskTokensOptions::kind() {
  return {
      "mask_tokens",
      "Masks tokens for masked language modelling: of those chosen, 80 % become the mask, 10 % random "
      "tokens, "
      "10 % stay; as transformers' DataCollatorForLanguageModeling.",
      {option("mask_token_id", &MaskTokensOptions::mask_token_id, "the mask")
           .required()
           .at_least(0)
           .at_most(kMostTokens),
       option("vocab_size", &MaskTokensOptions::vocab_size, "random tokens are below; default: from the data")
           .may_be_absent()
           .at_least(1)
           .at_most(kMostTokens),
       option("special_token_ids", &MaskTokensOptions::special_token_ids, "tokens that are never chosen")
           .may_be_absent()
           .at_least(0)
           .at_most(kMostTokens),
       option("mlm_probability", &MaskTokensOptions::mlm_probability, "of a token to be chosen")
           .at_least(0)
           .at_most(1)}};
}

Kind<NextTokenOptions> NextTokenOptions::kind() {
  return {"next_token",
          "Shifts targets that are a copy of the tokens, for a gpt: the target of a token becomes the next "
          "one, the last has none, and those of -100 stay so; as transformers' causal language models do. "
          "Without targets, those of the tokens."};
}

Catalog transform_catalog() {
  std::vector<Entry> entries = TransformKinds::entries();
  entries.push_back(plugin_entry("transform"));
  return {
      .section = "data.train.transforms",
      .noun = "transform",
      .doc =
          "What happens to each sample before it is put into a batch, in this order. Also of [data.eval] "
          "and [[evaluators]], which have transforms of their own. Random numbers are drawn by seed, epoch "
          "and sample.",
      .entries = std::move(entries),
      .repeated = true};
}

}  // namespace tutti

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

template <class Options>
Bound<Options> interpolation_key() {
  return option("interpolation", &Options::interpolation, "how pixels are interpolated, with antialiasing",
                {{"bilinear", Interpolation::kBilinear}, {"bicubic", Interpolation::kBicubic}});
}

template <class Options>
Bound<Options> probability() {
  return option("p", &Options::p, "probability of each image").at_least(0).at_most(1);
}

// A number, or two: a range.
template <class Options>
Bound<Options> numbers(const char* name, std::vector<double> Options::*member, const std::string& doc) {
  Key key{name, KeyType::kNumberOrNumbers, "none", doc};
  return {std::move(key), [member](Options& options, const Setting& setting) {
            options.*member = setting.is_array() ? setting.numbers() : std::vector<double>{setting.number()};
          }};
}

Bound<ColorJitterOptions> jitter(const char* name, std::vector<double> ColorJitterOptions::*member) {
  return numbers(name, member,
                 "factors of it are drawn from [1 - x, 1 + x], or from [low, high]; when absent, it stays")
      .at_least(0);
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
          {probability<FlipOptions>()}};
}

Kind<VerticalFlipOptions> VerticalFlipOptions::kind() {
  return {"vertical_flip",
          "Turns images upside down at random; as torchvision's RandomVerticalFlip.",
          {probability<VerticalFlipOptions>()}};
}

Kind<RandomResizedCropOptions> RandomResizedCropOptions::kind() {
  using Options = RandomResizedCropOptions;
  return {
      "random_resized_crop",
      "A part of each image, of a size and at a place that are drawn, resized; as torchvision's "
      "RandomResizedCrop.",
      {edges<Options>("height and width of the result, or one number for both"),
       option("scale", &Options::scale, "area of the part, of the image's: lowest and highest").more_than(0),
       option("ratio", &Options::ratio, "width to height of the part: lowest and highest").more_than(0),
       interpolation_key<Options>()}};
}

Kind<ColorJitterOptions> ColorJitterOptions::kind() {
  using Options = ColorJitterOptions;
  return {
      "color_jitter",
      "Changes brightness, contrast, saturation and hue of each image, in an order that is drawn; as "
      "torchvision's ColorJitter on PIL images.",
      {jitter("brightness", &Options::brightness), jitter("contrast", &Options::contrast),
       jitter("saturation", &Options::saturation),
       numbers("hue", &Options::hue,
               "the turn of the colors' circle is drawn from [-x, x], or from [low, high]; when absent, it "
               "stays")
           .at_least(-0.5)
           .at_most(0.5)}};
}

Kind<GaussianBlurOptions> GaussianBlurOptions::kind() {
  using Options = GaussianBlurOptions;
  return {"gaussian_blur",
          "Blurs each image; as torchvision's GaussianBlur.",
          {option("kernel_size", &Options::kernel_size,
                  "height and width of the kernel in pixels, odd, or one number for both")
               .as(KeyType::kIntegerOrIntegers)
               .required()
               .at_least(1)
               .at_most(kMostPixels),
           numbers("sigma", &Options::sigma,
                   "of the kernel, in pixels: one number, or the range from which it is drawn; [0.1, 2] when "
                   "absent")
               .more_than(0)}};
}

Kind<RandomErasingOptions> RandomErasingOptions::kind() {
  using Options = RandomErasingOptions;
  return {
      "random_erasing",
      "Erases a rectangle of each image, at random; as torchvision's RandomErasing.",
      {probability<Options>(),
       option("scale", &Options::scale, "area of the rectangle, of the image's: lowest and highest")
           .more_than(0),
       option("ratio", &Options::ratio, "height to width of the rectangle: lowest and highest").more_than(0),
       numbers("value", &Options::value,
               "of the erased pixels: one number, or one for each channel; 0 when absent")}};
}

Kind<ResizeOptions> ResizeOptions::kind() {
  return {
      "resize",
      "Images of another size, with antialiasing; as torchvision's Resize.",
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
           .at_most(kMostPixels),
       interpolation_key<ResizeOptions>()}};
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
      {option("mask_token_id", &MaskTokensOptions::mask_token_id,
              "the mask; default: as the data's tokenizer says")
           .may_be_absent()
           .at_least(0)
           .at_most(kMostTokens),
       option("vocab_size", &MaskTokensOptions::vocab_size, "random tokens are below; default: from the data")
           .may_be_absent()
           .at_least(1)
           .at_most(kMostTokens),
       option("special_token_ids", &MaskTokensOptions::special_token_ids,
              "tokens that are never chosen, as are those whose attention_mask is 0; default: the special "
              "tokens of "
              "the data's tokenizer, if it is known")
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

#include "data/transforms/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

constexpr double kMostPixels = 1e6;  // of an edge
constexpr double kMostTokens = 1e9;
constexpr double kMostOperations = 100;  // of an image, one after the other or side by side

Key edges(const char* doc) {
  return Key{"size", kIntegerOrIntegers, "", doc}.at_least(1).at_most(kMostPixels);
}

Entry random_crop_entry() {
  return {"random_crop",
          "A part of each image, at a place that is drawn; as torchvision's RandomCrop.",
          {edges("height and width of the part, or one number for both"),
           Key{"padding", kIntegerOrIntegers, "none",
               "pixels that are added first: one number, [left and right, top and bottom], or [left, top, "
               "right, bottom]"}
               .at_least(0)
               .at_most(kMostPixels),
           {"pad_if_needed", kBoolean, "false", "add pixels on both sides of images that are too small"},
           Key{"fill", kNumber, "0", "the added pixels, if padding_mode is constant"},
           Key{"padding_mode", kText, "constant", "how pixels are added, as in numpy.pad"}.one_of(
               {"constant", "edge", "reflect", "symmetric"})}};
}

Key part(const char* name, const char* fallback, const char* doc) {
  return Key{name, kNumber, fallback, doc}.at_least(0).at_most(1);
}

Entry colout_entry() {
  return {"colout",
          "Drops rows and columns of each image; the algorithm colout drops the same ones of a whole batch.",
          {part("p_row", "0.15", "part of the rows that is dropped"),
           part("p_col", "0.15", "part of the columns that is dropped")}};
}

Entry cutout_entry() {
  return {"cutout",
          "Blackens squares of each image; the algorithm cutout blackens the same ones of a whole batch.",
          {Key{"num_holes", kInteger, "1", "squares in an image"}.at_least(1).at_most(kMostHoles),
           part("length", "0.5", "side of a square, as a part of the shorter side of the image").more_than(0),
           {"uniform_sampling", kBoolean, "false",
            "draw the squares so that each pixel is covered as often as any other"}}};
}

Key severity(const char* fallback) {
  return Key{"severity", kInteger, fallback, "how strong each operation is"}.at_least(0).at_most(10);
}

Key augmentation_set() {
  return Key{"augmentation_set", kText, "all",
             "the operations that are drawn from; safe: none of the test sets CIFAR-10-C and ImageNet-C; "
             "original: color, contrast, brightness and sharpness as in the code of the AugMix paper"}
      .one_of({"all", "safe", "original"});
}

std::vector<Entry> of_images() {
  return {
      {"augmix", "Mixes each image with chains of operations on it; as the algorithm augmix.", augmix_keys()},
      {"randaugment", "Changes each image by operations that are drawn; as the algorithm randaugment.",
       randaugment_keys()},
      colout_entry(),
      cutout_entry(),
      random_crop_entry(),
      {"center_crop",
       "The middle of each image; as torchvision's CenterCrop.",
       {edges("height and width of the middle, or one number for both")}},
      {"flip",
       "Mirrors images left to right at random; as torchvision's RandomHorizontalFlip.",
       {Key{"p", kNumber, "0.5", "probability of each image"}.at_least(0).at_most(1)}},
      {"resize",
       "Images of another size, bilinear with antialiasing; as torchvision's Resize.",
       {edges("height and width, or one number: of the smaller edge, and the shape is kept"),
        Key{"max_size", kInteger, "none", "of the larger edge, if size is one number"}.at_least(1).at_most(
            kMostPixels)}}};
}

Key of_channels(const char* name, const char* doc) { return {name, kNumbers, "", doc}; }

std::vector<Entry> of_tensors() {
  return {{"to_tensor",
           "uint8 images [height, width, channels] become float32 [channels, height, width] in [0, 1]; as "
           "torchvision's ToTensor."},
          {"normalize",
           "(value - mean) / std; as torchvision's Normalize. After to_tensor.",
           {of_channels("mean", "of each channel, or one number for all"),
            of_channels("std", "of each channel, or one number for all").more_than(0)}},
          {"mask_tokens",
           "Masks tokens for masked language modelling: of those chosen, 80 % become the mask, 10 % random "
           "tokens, "
           "10 % stay; as transformers' DataCollatorForLanguageModeling.",
           {Key{"mask_token_id", kInteger, "", "the mask"}.at_least(0).at_most(kMostTokens),
            Key{"vocab_size", kInteger, "none", "random tokens are below; default: from the data"}
                .at_least(1)
                .at_most(kMostTokens),
            Key{"special_token_ids", kIntegers, "none", "tokens that are never chosen"}.at_least(0).at_most(
                kMostTokens),
            Key{"mlm_probability", kNumber, "0.15", "of a token to be chosen"}.at_least(0).at_most(1)}},
          {"next_token",
           "Shifts targets that are a copy of the tokens, for a gpt: the target of a token becomes the next "
           "one, the last has none, and those of -100 stay so; as transformers' causal language models do. "
           "Without targets, those of the tokens."}};
}

}  // namespace

std::vector<Key> randaugment_keys() {
  return {severity("9"),
          Key{"depth", kInteger, "2", "operations on an image, one after the other"}.at_least(0).at_most(
              kMostOperations),
          augmentation_set()};
}

std::vector<Key> augmix_keys() {
  return {
      severity("3"),
      Key{"depth", kInteger, "-1", "operations of a chain; below 1: 1, 2 or 3, drawn for each chain"}.at_most(
          kMostOperations),
      Key{"width", kInteger, "3", "chains of operations"}.at_least(1).at_most(kMostOperations),
      Key{"alpha", kNumber, "1.0",
          "the weights of the chains and of the image are drawn from Dirichlet(alpha, ...) and "
          "Beta(alpha, alpha)"}
          .more_than(0),
      augmentation_set()};
}

// A transform comes from this list and from the makers in factory.cpp.
Catalog transform_catalog() {
  std::vector<Entry> entries = of_images();
  for (auto& entry : of_tensors()) entries.push_back(std::move(entry));
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

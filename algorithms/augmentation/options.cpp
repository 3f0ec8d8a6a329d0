#include "algorithms/augmentation/options.h"

#include "algorithms/augmentation/shared_options.h"

namespace tutti {
namespace {

constexpr const char* kUniformDoc =
    "draw the box so that each pixel is covered as often as any other; false: as in the paper";

template <class Options>
Bound<Options> interpolate_loss_key() {
  return option<Options>(
      "interpolate_loss", &Options::interpolate_loss,
      "mix the losses of both targets, for losses that take class indices alone; label_smoothing does "
      "not reach the partners' targets then. false: mix the targets");
}

}  // namespace

Kind<AugMixAlgorithm> AugMixAlgorithm::kind() {
  return {
      "augmix",
      "Mixes each image of the training data with chains of operations on it; Composer's AugMix.",
      augmix_keys<AugMixAlgorithm>(),
      {.composer = "AugMix",
       .functions = {"augmix_image"},
       .header = "data/transforms/augmentations/augmix.h",
       .call = "const at::Tensor mixed = augmix_image(image, {}, *random_draws());",
       .paper = "Hendrycks et al. 2020, arXiv:1912.02781",
       .models = "image classifiers",
       .effect = "robustness to other noise, blur and weather than was trained on, for time in the loader"}};
}

Kind<RandAugmentAlgorithm> RandAugmentAlgorithm::kind() {
  return {"randaugment",
          "Changes each image of the training data by operations that are drawn; Composer's RandAugment.",
          randaugment_keys<RandAugmentAlgorithm>(),
          {.composer = "RandAugment",
           .functions = {"randaugment_image"},
           .header = "data/transforms/augmentations/randaugment.h",
           .call = "const at::Tensor changed = randaugment_image(image, {}, *random_draws());",
           .paper = "Cubuk et al. 2020, arXiv:1909.13719",
           .models = "image classifiers",
           .effect = "better generalisation in long trainings, for time in the loader"}};
}

Kind<ColOutAlgorithm> ColOutAlgorithm::kind() {
  using Options = ColOutAlgorithm;
  return {
      "colout",
      "Drops rows and columns of all images of a batch; Composer's ColOut.",
      {fraction<Options>("p_row", &Options::p_row, "part of the rows that is dropped"),
       fraction<Options>("p_col", &Options::p_col, "part of the columns that is dropped"),
       option("batch", &Options::batch,
              "drop the same of all images of a batch; false: of each image others"),
       Bound<Options>({"resize_target", KeyType::kBoolean, "auto",
                       "drop them from the targets too; auto: if they are as high and wide as the images"},
                      [](Options& options, const Setting& key) {
                        if (!key.is_text()) options.resize_target = key.boolean();
                      })
           .or_word("auto"),
       input_array<Options>(), target_array<Options>()},
      {.composer = "ColOut",
       .functions = {"colout_batch"},
       .header = "algorithms/augmentation/colout.h",
       .call = "const at::Tensor dropped = colout_batch(images, *random_draws());",
       .paper = "MosaicML 2021",
       .models = "image classifiers that take images of any size",
       .effect = "faster steps, by smaller images, and regularisation"}};
}

Kind<CutMixAlgorithm> CutMixAlgorithm::kind() {
  using Options = CutMixAlgorithm;
  return {"cutmix",
          "Replaces a box of each image by that of another one, and mixes their targets; Composer's CutMix.",
          {option<Options>("alpha", &Options::alpha, "the area that is kept is drawn from Beta(alpha, alpha)")
               .written("1.0")
               .at_least(0),
           interpolate_loss_key<Options>(),
           option<Options>("uniform_sampling", &Options::uniform_sampling, kUniformDoc),
           input_array<Options>(), target_array<Options>()},
          {.composer = "CutMix",
           .functions = {"cutmix_batch"},
           .header = "algorithms/augmentation/cutmix.h",
           .call = "const CutMixed mixed = cutmix_batch(images, targets, *random_draws());",
           .paper = "Yun et al. 2019, arXiv:1905.04899",
           .models = "image classifiers",
           .effect = "better generalisation in long trainings"}};
}

Kind<CutOutAlgorithm> CutOutAlgorithm::kind() {
  using Options = CutOutAlgorithm;
  return {
      "cutout",
      "Blackens squares of all images of a batch; Composer's CutOut.",
      {option<Options>("num_holes", &Options::num_holes, "squares in an image")
           .at_least(1)
           .at_most(kMostHoles),
       option<Options>("length", &Options::length,
                       "side of a square, as a part of the shorter side of the image")
           .more_than(0)
           .at_most(1),
       option<Options>("uniform_sampling", &Options::uniform_sampling, kUniformDoc), input_array<Options>()},
      {.composer = "CutOut",
       .functions = {"cutout_batch"},
       .header = "algorithms/augmentation/cutout.h",
       .call = "const at::Tensor cut = cutout_batch(images, *random_draws());",
       .paper = "DeVries and Taylor 2017, arXiv:1708.04552",
       .models = "image classifiers",
       .effect = "better generalisation, most on small images"}};
}

Kind<MixUpOptions> MixUpOptions::kind() {
  using Options = MixUpOptions;
  return {"mixup",
          "Mixes each sample with another one, and their targets; Composer's MixUp.",
          {option("alpha", &Options::alpha, "the part of the other sample is drawn from Beta(alpha, alpha)")
               .at_least(0),
           interpolate_loss_key<Options>(), input_array<Options>(), target_array<Options>()},
          {.composer = "MixUp",
           .functions = {"mixup_batch"},
           .header = "algorithms/augmentation/mixup.h",
           .call = "const MixedUp mixed = mixup_batch(inputs, targets, *random_draws());",
           .paper = "Zhang et al. 2017, arXiv:1710.09412",
           .models = "classifiers",
           .effect = "better generalisation in long trainings"}};
}

Kind<ProgressiveResizingOptions> ProgressiveResizingOptions::kind() {
  using Options = ProgressiveResizingOptions;
  return {"progressive_resizing",
          "Trains on small images first, which grow to their full size; Composer's ProgressiveResizing.",
          {option("mode", &Options::mode, "resize: take the nearest pixels; crop: a part of the image",
                  {{"resize", ResizeMode::kResize}, {"crop", ResizeMode::kCrop}}),
           fraction<Options>("initial_scale", &Options::initial_scale,
                             "size of the images at first, as a part of their full size"),
           fraction<Options>("finetune_fraction", &Options::finetune_fraction,
                             "part of the training that ends it, in full size"),
           fraction<Options>("delay_fraction", &Options::delay_fraction,
                             "part of the training that begins it, in the initial size"),
           option("size_increment", &Options::size_increment, "widths are multiples of this").at_least(1),
           option("resize_targets", &Options::resize_targets, "resize the targets too, which are images"),
           input_array<Options>(), target_array<Options>()},
          {.composer = "ProgressiveResizing",
           .functions = {"resize_batch"},
           .header = "algorithms/augmentation/progressive_resizing.h",
           .call = "const auto small = resize_batch(images, targets, 0.5, ResizeMode::kResize, false, "
                   "*random_draws());",
           .paper = "Howard, fast.ai 2018",
           .models = "image classifiers that take images of any size",
           .effect = "much faster steps in the first part of the training"}};
}

}  // namespace tutti

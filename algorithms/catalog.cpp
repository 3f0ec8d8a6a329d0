#include "algorithms/catalog.h"

#include <algorithm>
#include <utility>

#include "algorithms/surgery/catalog.h"
#include "data/transforms/catalog.h"
#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Entry ema() {
  return {
      "ema",
      "Evaluates, predicts and exports with an exponential moving average of the weights; Composer's EMA.",
      {
          Key{"half_life", kTime, "none",
              "time after which a weight counts half in the average; 1000ba when smoothing is absent too"}
              .in_units({"ba", "ep"})
              .more_than(0),
          Key{"smoothing", kNumber, "none", "factor of the old average in an update, in place of half_life"}
              .at_least(0)
              .at_most(1),
          Key{"ema_start", kTime, "0.0dur", "when averaging begins"}.in_units({"dur", "ba", "ep"}),
          Key{"update_interval", kTime, "none",
              "time between updates; one unit of half_life when absent, or one batch"}
              .in_units({"ba", "ep"})
              .more_than(0),
      },
      "",
      {.composer = "EMA",
       .functions = {"compute_ema"},
       .header = "algorithms/loop/ema.h",
       .call = "compute_ema(weights, averages, 0.99);",
       .paper = "Polyak and Juditsky 1992",
       .models = "all",
       .effect = "a better model at evaluations, most where the learning rate is still large"}};
}

Entry gradient_clipping() {
  return {
      "gradient_clipping",
      "Limits the size of gradients; Composer's GradientClipping.",
      {Key{"clipping_type", kText, "",
           "norm: the norm of all gradients together; value: each number; adaptive: the norm of each unit, "
           "relative to the norm of its weights"}
           .one_of({"norm", "value", "adaptive"}),
       Key{"clipping_threshold", kNumber, "",
           "the largest norm or value; adaptive: the largest ratio to the norm of the weights"}
           .more_than(0)},
      "",
      {.composer = "GradientClipping",
       .functions = {"apply_gradient_clipping"},
       .header = "algorithms/loop/gradient_clipping.h",
       .call = "apply_gradient_clipping(views, ClippingType::kNorm, 1.0);",
       .paper = "Pascanu et al. 2013, arXiv:1211.5063; adaptive: Brock et al. 2021, arXiv:2102.06171",
       .models = "all",
       .effect = "no steps that ruin the weights, and larger learning rates",
       .example = "clipping_type = \"norm\"\nclipping_threshold = 1.0"}};
}

Entry sam() {
  return {"sam",
          "Takes gradients a little uphill, by a second pass over the batch, to find flat minima; Composer's "
          "SAM.",
          {
              Key{"rho", kNumber, "0.05", "length of the step uphill"}.more_than(0),
              Key{"epsilon", kNumber, "1e-12", "added to the norm of the gradients"}.at_least(0),
              Key{"interval", kInteger, "1", "steps from one second pass to the next"}.at_least(1),
          },
          "",
          {.composer = "SAM",
           .functions = {},
           .header = "algorithms/loop/sam.h",
           .call = "",
           .paper = "Foret et al. 2021, arXiv:2010.01412",
           .models = "all; most for images",
           .effect = "better generalisation for twice the time a step, or less with a larger interval"}};
}

Entry swa() {
  return {
      "swa",
      "Averages the weights of the last part of training; Composer's SWA.",
      {
          Key{"swa_start", kTime, "0.7dur", "when averaging begins"}.in_units({"dur", "ba", "ep"}),
          Key{"swa_end", kTime, "0.97dur",
              "from when on the averages are trained on; in the unit of swa_start, and later"}
              .in_units({"dur", "ba", "ep"}),
          Key{"update_interval", kTime, "1ep", "time between updates"}.in_units({"ba", "ep"}).more_than(0),
          Key{"schedule_swa_lr", kBoolean, "false", "move the learning rate to swa_lr while averaging"},
          Key{"anneal_strategy", kText, "linear", "how the learning rate moves"}.one_of({"linear", "cos"}),
          Key{"anneal_steps", kInteger, "10", "updates in which the learning rate moves"}.at_least(1),
          Key{"swa_lr", kNumber, "none", "the schedule's rate when averaging begins when absent"}.at_least(0),
      },
      "",
      {.composer = "SWA",
       .functions = {},
       .header = "algorithms/loop/swa.h",
       .call = "",
       .paper = "Izmailov et al. 2018, arXiv:1803.05407",
       .models = "all",
       .effect = "better generalisation at no cost a step"}};
}

constexpr const char* kUniformDoc =
    "draw the box so that each pixel is covered as often as any other; false: as in the paper";

Key array_key(const char* name, const char* array, const char* what) {
  return {
      name, kAny, array,
      std::string("the array of the batch that holds the ") + what + ": its name, or its number from 0 on"};
}
Key input_key() { return array_key("input_key", "input", "inputs"); }
Key target_key() { return array_key("target_key", "target", "targets"); }

Key fraction(const char* name, const char* fallback, const char* doc) {
  return Key{name, kNumber, fallback, doc}.at_least(0).at_most(1);
}

Key interpolate_loss() {
  return {"interpolate_loss", kBoolean, "false",
          "mix the losses of both targets, for losses that take class indices alone; label_smoothing does "
          "not reach the partners' targets then. false: mix the targets"};
}

Entry colout() {
  return {"colout",
          "Drops rows and columns of all images of a batch; Composer's ColOut.",
          {fraction("p_row", "0.15", "part of the rows that is dropped"),
           fraction("p_col", "0.15", "part of the columns that is dropped"),
           {"batch", kBoolean, "true", "drop the same of all images of a batch; false: of each image others"},
           Key{"resize_target", kBoolean, "auto",
               "drop them from the targets too; auto: if they are as high and wide as the images"}
               .or_word("auto"),
           input_key(),
           target_key()},
          "",
          {.composer = "ColOut",
           .functions = {"colout_batch"},
           .header = "algorithms/augmentation/colout.h",
           .call = "const at::Tensor dropped = colout_batch(images, *random_draws());",
           .paper = "MosaicML 2021",
           .models = "image classifiers that take images of any size",
           .effect = "faster steps, by smaller images, and regularisation"}};
}

Entry cutmix() {
  return {"cutmix",
          "Replaces a box of each image by that of another one, and mixes their targets; Composer's CutMix.",
          {Key{"alpha", kNumber, "1.0", "the area that is kept is drawn from Beta(alpha, alpha)"}.at_least(0),
           interpolate_loss(),
           {"uniform_sampling", kBoolean, "false", kUniformDoc},
           input_key(),
           target_key()},
          "",
          {.composer = "CutMix",
           .functions = {"cutmix_batch"},
           .header = "algorithms/augmentation/cutmix.h",
           .call = "const CutMixed mixed = cutmix_batch(images, targets, *random_draws());",
           .paper = "Yun et al. 2019, arXiv:1905.04899",
           .models = "image classifiers",
           .effect = "better generalisation in long trainings"}};
}

Entry cutout() {
  return {"cutout",
          "Blackens squares of all images of a batch; Composer's CutOut.",
          {Key{"num_holes", kInteger, "1", "squares in an image"}.at_least(1).at_most(kMostHoles),
           Key{"length", kNumber, "0.5", "side of a square, as a part of the shorter side of the image"}
               .more_than(0)
               .at_most(1),
           {"uniform_sampling", kBoolean, "false", kUniformDoc},
           input_key()},
          "",
          {.composer = "CutOut",
           .functions = {"cutout_batch"},
           .header = "algorithms/augmentation/cutout.h",
           .call = "const at::Tensor cut = cutout_batch(images, *random_draws());",
           .paper = "DeVries and Taylor 2017, arXiv:1708.04552",
           .models = "image classifiers",
           .effect = "better generalisation, most on small images"}};
}

Entry mixup() {
  return {
      "mixup",
      "Mixes each sample with another one, and their targets; Composer's MixUp.",
      {Key{"alpha", kNumber, "0.2", "the part of the other sample is drawn from Beta(alpha, alpha)"}.at_least(
           0),
       interpolate_loss(), input_key(), target_key()},
      "",
      {.composer = "MixUp",
       .functions = {"mixup_batch"},
       .header = "algorithms/augmentation/mixup.h",
       .call = "const MixedUp mixed = mixup_batch(inputs, targets, *random_draws());",
       .paper = "Zhang et al. 2017, arXiv:1710.09412",
       .models = "classifiers",
       .effect = "better generalisation in long trainings"}};
}

Entry progressive_resizing() {
  return {"progressive_resizing",
          "Trains on small images first, which grow to their full size; Composer's ProgressiveResizing.",
          {Key{"mode", kText, "resize", "resize: take the nearest pixels; crop: a part of the image"}.one_of(
               {"resize", "crop"}),
           fraction("initial_scale", "0.5", "size of the images at first, as a part of their full size"),
           fraction("finetune_fraction", "0.2", "part of the training that ends it, in full size"),
           fraction("delay_fraction", "0.5", "part of the training that begins it, in the initial size"),
           Key{"size_increment", kInteger, "4", "widths are multiples of this"}.at_least(1),
           {"resize_targets", kBoolean, "false", "resize the targets too, which are images"},
           input_key(),
           target_key()},
          "",
          {.composer = "ProgressiveResizing",
           .functions = {"resize_batch"},
           .header = "algorithms/augmentation/progressive_resizing.h",
           .call = "const auto small = resize_batch(images, targets, 0.5, ResizeMode::kResize, false, "
                   "*random_draws());",
           .paper = "Howard, fast.ai 2018",
           .models = "image classifiers that take images of any size",
           .effect = "much faster steps in the first part of the training"}};
}

Entry augmix() {
  return {
      "augmix",
      "Mixes each image of the training data with chains of operations on it; Composer's AugMix.",
      augmix_keys(),
      "",
      {.composer = "AugMix",
       .functions = {"augmix_image"},
       .header = "algorithms/augmentation/augmix.h",
       .call = "const at::Tensor mixed = augmix_image(image, {}, *random_draws());",
       .paper = "Hendrycks et al. 2020, arXiv:1912.02781",
       .models = "image classifiers",
       .effect = "robustness to other noise, blur and weather than was trained on, for time in the loader"}};
}

Entry randaugment() {
  return {"randaugment",
          "Changes each image of the training data by operations that are drawn; Composer's RandAugment.",
          randaugment_keys(),
          "",
          {.composer = "RandAugment",
           .functions = {"randaugment_image"},
           .header = "algorithms/augmentation/randaugment.h",
           .call = "const at::Tensor changed = randaugment_image(image, {}, *random_draws());",
           .paper = "Cubuk et al. 2020, arXiv:1909.13719",
           .models = "image classifiers",
           .effect = "better generalisation in long trainings, for time in the loader"}};
}

Entry label_smoothing() {
  return {
      "label_smoothing",
      "Moves targets towards equal weights of all classes; Composer's LabelSmoothing.",
      {fraction("smoothing", "0.1", "0 leaves targets as they are, 1 makes all classes equal"), target_key()},
      "",
      {.composer = "LabelSmoothing",
       .functions = {"smooth_labels"},
       .header = "algorithms/loop/label_smoothing.h",
       .call = "const at::Tensor smoothed = smooth_labels(logits, targets, 0.1);",
       .paper = "Szegedy et al. 2015, arXiv:1512.00567",
       .models = "classifiers",
       .effect = "better generalisation and calibration"}};
}

Entry layer_freezing() {
  return {"layer_freezing",
          "Stops training the first layers, more of them as time goes on; Composer's LayerFreezing.",
          {fraction("freeze_start", "0.5", "from this part of the training on"),
           fraction("freeze_level", "1.0", "part of the layers that is frozen in the end; never the last")},
          "",
          {.composer = "LayerFreezing",
           .functions = {"freeze_layers"},
           .header = "algorithms/loop/layer_freezing.h",
           .call = "freeze_layers(model, 0.75);",
           .paper = "Brock et al. 2017, arXiv:1706.04983; Raghu et al. 2017, arXiv:1706.05806",
           .models = "all, for trainings of several epochs",
           .effect = "faster steps in the last part of the training, for some accuracy"}};
}

Key apply_at() {
  return Key{"apply_at", kText, "init", "init: before a checkpoint is loaded; after_load: afterwards"}.one_of(
      {"init", "after_load"});
}

Entry selective_backprop() {
  return {
      "selective_backprop",
      "Trains on the samples of each batch that have high losses, which each rank chooses among its own; "
      "Composer's SelectiveBackprop.",
      {fraction("start", "0.5", "from this part of the training on"),
       fraction("end", "0.9", "up to this part of the training"),
       fraction("keep", "0.5", "part of the samples that is kept").more_than(0),
       Key{"scale_factor", kNumber, "1.0",
           "size of the images when the samples are chosen, as a part of their full size"}
           .more_than(0)
           .at_most(1),
       Key{"interrupt", kInteger, "2", "every so many batches all samples are kept; 0: never"}.at_least(0),
       input_key(), target_key()},
      "",
      {.composer = "SelectiveBackprop",
       .functions = {"select_using_loss", "should_selective_backprop"},
       .header = "algorithms/loop/selective_backprop.h",
       .call =
           "const auto [hard, labels] = select_using_loss(inputs, targets, model, losses, *random_draws());",
       .paper = "Jiang et al. 2019, arXiv:1910.00762",
       .models = "classifiers",
       .effect = "faster steps where backward is dear, for a little accuracy"}};
}

Entry seq_length_warmup() {
  return {"seq_length_warmup",
          "Trains on short sequences first, which grow to their full length; Composer's SeqLengthWarmup.",
          {fraction("duration", "0.3", "part of the training in which they grow"),
           Key{"min_seq_length", kInteger, "8", "length at first, in tokens"}.at_least(1),
           Key{"max_seq_length", kInteger, "1024", "length in the end"}.at_least(1),
           Key{"step_size", kInteger, "8", "tokens that the length grows by at once"}.at_least(1),
           {"truncate", kBoolean, "true", "cut sequences off; false: make more sequences of the tokens"},
           {"preserve_end_of_sequence", kBoolean, "false",
            "keep the last token of a sequence that is cut off; needs the array attention_mask"}},
          "",
          {.composer = "SeqLengthWarmup",
           .functions = {"set_batch_sequence_length"},
           .header = "algorithms/loop/seq_length_warmup.h",
           .call = "const Batch shorter = set_batch_sequence_length(batch, 64);",
           .paper = "Li et al. 2021, arXiv:2108.06084",
           .models = "language models",
           .effect = "faster first steps, and larger learning rates without divergence"}};
}

}  // namespace

Catalog algorithm_catalog() {
  std::vector<Entry> entries = surgery_entries();
  for (Entry& one :
       std::vector<Entry>{augmix(), colout(), cutmix(), cutout(), ema(), gradient_clipping(),
                          label_smoothing(), layer_freezing(), mixup(), progressive_resizing(), randaugment(),
                          sam(), selective_backprop(), seq_length_warmup(), swa()})
    entries.push_back(std::move(one));
  std::ranges::sort(entries, {}, &Entry::name);
  entries.push_back(plugin_entry("algorithm"));
  return {.section = "algorithms",
          .noun = "algorithm",
          .doc =
              "Algorithms that change the data, the model or the training loop. Names and meanings are "
              "Composer's.",
          .entries = std::move(entries),
          .repeated = true};
}

}  // namespace tutti

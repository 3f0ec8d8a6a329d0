#include "algorithms/catalog.h"

#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

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
          "mix the losses of both targets, for losses that take class indices alone; false: mix the targets"};
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
           target_key()}};
}

Entry cutmix() {
  return {"cutmix",
          "Replaces a box of each image by that of another one, and mixes their targets; Composer's CutMix.",
          {Key{"alpha", kNumber, "1.0", "the area that is kept is drawn from Beta(alpha, alpha)"}.at_least(0),
           interpolate_loss(),
           {"uniform_sampling", kBoolean, "false", kUniformDoc},
           input_key(),
           target_key()}};
}

Entry cutout() {
  return {"cutout",
          "Blackens squares of all images of a batch; Composer's CutOut.",
          {Key{"num_holes", kInteger, "1", "squares in an image"}.at_least(1),
           Key{"length", kNumber, "0.5", "side of a square, as a part of the shorter side of the image"}
               .more_than(0)
               .at_most(1),
           {"uniform_sampling", kBoolean, "false", kUniformDoc},
           input_key()}};
}

Entry mixup() {
  return {
      "mixup",
      "Mixes each sample with another one, and their targets; Composer's MixUp.",
      {Key{"alpha", kNumber, "0.2", "the part of the other sample is drawn from Beta(alpha, alpha)"}.at_least(
           0),
       interpolate_loss(), input_key(), target_key()}};
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
           target_key()}};
}

Entry gradient_clipping() {
  return {"gradient_clipping",
          "Limits the size of gradients; Composer's GradientClipping.",
          {Key{"clipping_type", kText, "",
               "norm: the norm of all gradients together; value: each number; adaptive: the norm of each "
               "unit, relative to the norm of its weights"}
               .one_of({"norm", "value", "adaptive"}),
           Key{"clipping_threshold", kNumber, "",
               "the largest norm or value; adaptive: the largest ratio to the norm of the weights"}
               .more_than(0)}};
}

Entry label_smoothing() {
  return {"label_smoothing",
          "Moves targets towards equal weights of all classes; Composer's LabelSmoothing.",
          {fraction("smoothing", "0.1", "0 leaves targets as they are, 1 makes all classes equal"),
           target_key()}};
}

Entry selective_backprop() {
  return {
      "selective_backprop",
      "Trains on the samples of each batch that have high losses; Composer's SelectiveBackprop.",
      {fraction("start", "0.5", "from this part of the training on"),
       fraction("end", "0.9", "up to this part of the training"),
       fraction("keep", "0.5", "part of the samples that is kept").more_than(0),
       Key{"scale_factor", kNumber, "1.0",
           "size of the images when the samples are chosen, as a part of their full size"}
           .more_than(0)
           .at_most(1),
       Key{"interrupt", kInteger, "2", "every so many batches all samples are kept; 0: never"}.at_least(0),
       input_key(), target_key()}};
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
            "keep the last token of a sequence that is cut off; needs the array attention_mask"}}};
}

}  // namespace

Catalog algorithm_catalog() {
  return {
      .section = "algorithms",
      .noun = "algorithm",
      .doc =
          "Algorithms that change the data, the model or the training loop. Names and meanings are "
          "Composer's.",
      .entries = {colout(), cutmix(), cutout(), mixup(), progressive_resizing(), gradient_clipping(),
                  label_smoothing(), selective_backprop(), seq_length_warmup(), plugin_entry("algorithm")},
      .repeated = true};
}

}  // namespace tutti

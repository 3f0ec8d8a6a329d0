#include "algorithms/surgery/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

Entry alibi() {
  return {"alibi",
          "Attention biased by distance, no position embeddings, short training sequences; Composer's Alibi.",
          {Key{"max_sequence_length", kInteger, "", "longest sequence of evaluations and generated texts"}
               .at_least(1)
               .at_most(1e9),
           Key{"train_sequence_length_scaling", kNumber, "0.25",
               "length of training sequences, as a part of the data's; 1 leaves batches as they are"}
               .more_than(0)
               .at_most(1)},
          "",
          {.composer = "Alibi",
           .functions = {"apply_alibi"},
           .header = "algorithms/surgery/alibi.h",
           .call = "apply_alibi(model, 2048);",
           .paper = "Press et al. 2021, arXiv:2108.12409",
           .models = "transformers with learned positions: GPT, BERT",
           .effect = "training on shorter sequences, evaluation on longer ones than were trained on",
           .example = "max_sequence_length = 2048"}};
}

Entry blurpool() {
  return {
      "blurpool",
      "Blurs images before strided convolutions and within max pools; Composer's BlurPool.",
      {{"replace_convs", kBoolean, "true", "blur at strided Conv2d"},
       {"replace_maxpools", kBoolean, "true", "blur in MaxPool2d"},
       {"blur_first", kBoolean, "true",
        "blur the input of a convolution; false: its output before this is strided, which is slower"},
       Key{"min_channels", kInteger, "16", "convolutions of fewer input channels stay as they are"}.at_least(
           0)},
      "",
      {.composer = "BlurPool",
       .functions = {"apply_blurpool"},
       .header = "algorithms/surgery/blurpool.h",
       .call = "apply_blurpool(model);",
       .paper = "Zhang 2019, arXiv:1904.11486",
       .models = "convolutional networks",
       .effect = "better generalisation, and outputs that depend less on small shifts"}};
}

Entry channels_last() {
  return {"channels_last",
          "Keeps the channels of a pixel together in memory; Composer's ChannelsLast.",
          {},
          "",
          {.composer = "ChannelsLast",
           .functions = {"apply_channels_last"},
           .header = "algorithms/surgery/channels_last.h",
           .call = "apply_channels_last(model);",
           .paper = "",
           .models = "convolutional networks",
           .effect = "faster convolutions; the results differ by rounding alone"}};
}

Entry gated_linear_units() {
  return {"gated_linear_units",
          "Gated feed-forward blocks in BERT; Composer's GatedLinearUnits.",
          {Key{"act_fn", kText, "none", "of the gates; default: that of the blocks before"}.one_of(
               {"gelu", "gelu_new", "relu", "silu", "tanh"}),
           {"gated_layer_bias", kBoolean, "false", "the gated layer has a bias"},
           {"non_gated_layer_bias", kBoolean, "false", "the other layer has a bias"}},
          "",
          {.composer = "GatedLinearUnits",
           .functions = {"apply_gated_linear_units"},
           .header = "algorithms/surgery/gated_linear_units.h",
           .call = "apply_gated_linear_units(model);",
           .paper = "Shazeer 2020, arXiv:2002.05202",
           .models = "BERT",
           .effect = "a better model for slower steps"}};
}

Entry no_op_model() {
  return {"no_op_model",
          "Puts a model that costs nothing in the place of the model; Composer's NoOpModel.",
          {},
          "",
          {.composer = "NoOpModel",
           .functions = {},
           .header = "algorithms/surgery/no_op_model.h",
           .call = "",
           .paper = "",
           .models = "all",
           .effect = "a run that shows how fast the data are loaded, and trains nothing"}};
}

Entry squeeze_excite() {
  return {
      "squeeze_excite",
      "Lets convolutions weigh their output channels by what is in the image; Composer's SqueezeExcite.",
      {Key{"latent_channels", kNumber, "64",
           "width of the hidden layer; below 1 a part of the output channels"}
           .more_than(0)
           .at_most(1e9),
       Key{"min_channels", kInteger, "128", "convolutions of fewer input or output channels stay as they are"}
           .at_least(0)},
      "",
      {.composer = "SqueezeExcite",
       .functions = {"apply_squeeze_excite"},
       .header = "algorithms/surgery/squeeze_excite.h",
       .call = "apply_squeeze_excite(model);",
       .paper = "Hu et al. 2017, arXiv:1709.01507",
       .models = "convolutional networks",
       .effect = "a better model for slower steps"}};
}

Entry weight_standardization() {
  return {"weight_standardization",
          "Convolves with weights of mean 0 and variance 1; Composer's WeightStandardization.",
          {Key{"n_last_layers_ignore", kInteger, "0", "the last convolutions, so many, stay as they are"}
               .at_least(0)},
          "",
          {.composer = "WeightStandardization",
           .functions = {"apply_weight_standardization"},
           .header = "algorithms/surgery/weight_standardization.h",
           .call = "apply_weight_standardization(model);",
           .paper = "Qiao et al. 2019, arXiv:1903.10520",
           .models = "convolutional networks, most with GroupNorm and small microbatches",
           .effect = "a better model for slower steps"}};
}

}  // namespace

std::vector<Entry> surgery_entries() {
  return {alibi(),       blurpool(),       channels_last(),         gated_linear_units(),
          no_op_model(), squeeze_excite(), weight_standardization()};
}

}  // namespace tutti

#include "algorithms/surgery/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

constexpr double kMostMasks = 1e6;

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

Entry factorize() {
  const auto width = [](const char* name, const char* doc) {
    return Key{name, kInteger, "256", doc}.at_least(1);
  };
  return {"factorize",
          "Makes two small layers of each large one; Composer's Factorize.",
          {{"factorize_convs", kBoolean, "true", "factorize Conv2d"},
           {"factorize_linears", kBoolean, "true", "factorize Linear"},
           width("min_channels", "channels in and out from which on a Conv2d is factorized"),
           Key{"latent_channels", kNumber, "0.25",
               "channels between the two; below 1: a part of the fewer of in and out"}
               .at_least(0)
               .at_most(1e9),
           width("min_features", "features in and out from which on a Linear is factorized"),
           Key{"latent_features", kNumber, "128",
               "features between the two; below 1: a part of the fewer of in and out"}
               .at_least(0)
               .at_most(1e9)},
          "",
          {.composer = "Factorize",
           .functions = {"apply_factorization"},
           .header = "algorithms/surgery/factorize.h",
           .call = "apply_factorization(model);",
           .paper = "Jaderberg et al. 2014, arXiv:1405.3866",
           .models = "wide ones",
           .effect = "fewer weights and faster steps, for some accuracy"}};
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

Entry ghost_batchnorm() {
  return {"ghost_batchnorm",
          "Batch normalisation over small parts of a batch; Composer's GhostBatchNorm.",
          {Key{"ghost_batch_size", kInteger, "32", "samples that are normalised together"}.at_least(1)},
          "",
          {.composer = "GhostBatchNorm",
           .functions = {"apply_ghost_batchnorm"},
           .header = "algorithms/surgery/ghost_batchnorm.h",
           .call = "apply_ghost_batchnorm(model, 32);",
           .paper = "Hoffer et al. 2017, arXiv:1705.08741",
           .models = "models with BatchNorm",
           .effect = "better generalisation of large batches, for slower steps"}};
}

Entry gyro_dropout() {
  return {
      "gyro_dropout",
      "Dropout with few masks, each of them trained for many steps; Composer's GyroDropout.",
      {Key{"p", kNumber, "0.5", "part that is dropped, in place of each Dropout's own"}.at_least(0).less_than(
           1),
       Key{"sigma", kInteger, "256", "masks of the whole training; not more than it has steps"}
           .at_least(1)
           .at_most(kMostMasks),
       Key{"tau", kInteger, "16", "masks of a batch"}.at_least(1).at_most(kMostMasks)},
      "",
      {.composer = "GyroDropout",
       .functions = {"apply_gyro_dropout"},
       .header = "algorithms/surgery/gyro_dropout.h",
       .call = "apply_gyro_dropout(model, 1000, 10);",
       .paper = "Lee et al. 2022, MLSys",
       .models = "those with Dropout",
       .effect = "better generalisation than by Dropout"}};
}

Entry low_precision_groupnorm() {
  return {"low_precision_groupnorm",
          "GroupNorms in bf16 or fp16 under amp; Composer's LowPrecisionGroupNorm.",
          {apply_at()},
          "",
          {.composer = "LowPrecisionGroupNorm",
           .functions = {"apply_low_precision_groupnorm"},
           .header = "algorithms/surgery/low_precision_norms.h",
           .call = "apply_low_precision_groupnorm(model, precision);",
           .paper = "MosaicML 2022",
           .models = "those with GroupNorms, with precision = \"amp_bf16\" or \"amp_fp16\"",
           .effect = "faster steps where 16 bits are fast; GPUs save memory by it, CPUs do not"}};
}

Entry low_precision_layernorm() {
  return {"low_precision_layernorm",
          "LayerNorms in bf16 or fp16 under amp; Composer's LowPrecisionLayerNorm.",
          {apply_at()},
          "",
          {.composer = "LowPrecisionLayerNorm",
           .functions = {"apply_low_precision_layernorm"},
           .header = "algorithms/surgery/low_precision_norms.h",
           .call = "apply_low_precision_layernorm(model, precision);",
           .paper = "MosaicML 2022",
           .models = "transformers, with precision = \"amp_bf16\" or \"amp_fp16\"",
           .effect = "faster steps where 16 bits are fast; GPUs save memory by it, CPUs do not"}};
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

Entry stochastic_depth() {
  return {"stochastic_depth",
          "Leaves out residual blocks at random in training; Composer's StochasticDepth.",
          {{"target_layer_name", kText, "",
            "the blocks: ResNetBottleneck, or another kind of residual block that the model has: BasicBlock"},
           Key{"stochastic_method", kText, "block",
               "block: a block for the whole batch; sample: for each sample by itself"}
               .one_of({"block", "sample"}),
           Key{"drop_rate", kNumber, "0.2", "probability of a block to be left out"}.at_least(0).at_most(1),
           Key{"drop_distribution", kText, "linear",
               "linear: the rate of block i of n is i / n of drop_rate; uniform: all have drop_rate"}
               .one_of({"linear", "uniform"}),
           Key{"drop_warmup", kTime, "0dur", "time over which the rates grow from 0; for blocks only"}
               .in_units({"dur", "ba", "ep"})
               .at_least(0)},
          "",
          {.composer = "StochasticDepth",
           .functions = {"apply_stochastic_depth"},
           .header = "algorithms/surgery/stochastic_depth.h",
           .call = "apply_stochastic_depth(model, {.target_layer_name = \"ResNetBottleneck\"});",
           .paper = "Huang et al. 2016, arXiv:1603.09382",
           .models = "deep ResNets, and models of your own blocks",
           .effect = "better generalisation of deep networks in long trainings; faster steps by blocks",
           .example = "target_layer_name = \"ResNetBottleneck\""}};
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
  return {alibi(),
          blurpool(),
          channels_last(),
          factorize(),
          gated_linear_units(),
          ghost_batchnorm(),
          gyro_dropout(),
          low_precision_groupnorm(),
          low_precision_layernorm(),
          no_op_model(),
          squeeze_excite(),
          stochastic_depth(),
          weight_standardization()};
}

}  // namespace tutti

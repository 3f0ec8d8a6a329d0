#include "algorithms/surgery/options.h"

#include <cmath>

#include "models/zoo/activation_names.h"

namespace tutti {
namespace {

constexpr double kMostMasks = 1e6;
constexpr double kMostRanks = 1e6;  // of adapters

template <class Options>
Bound<Options> apply_at_option() {
  return option("apply_at", &Options::apply_at, "init: before a checkpoint is loaded; after_load: afterwards",
                {{"init", Event::kInit}, {"after_load", Event::kAfterLoad}});
}

}  // namespace

Kind<AlibiOptions> AlibiOptions::kind() {
  using Options = AlibiOptions;
  return {"alibi",
          "Attention biased by distance, no position embeddings, short training sequences; Composer's Alibi.",
          {option("max_sequence_length", &Options::max_sequence_length,
                  "longest sequence of evaluations and generated texts")
               .required()
               .at_least(1)
               .at_most(1e9),
           option("train_sequence_length_scaling", &Options::train_sequence_length_scaling,
                  "length of training sequences, as a part of the data's; 1 leaves batches as they are")
               .more_than(0)
               .at_most(1)},
          {.composer = "Alibi",
           .functions = {"apply_alibi"},
           .header = "algorithms/surgery/alibi.h",
           .call = "apply_alibi(model, 2048);",
           .paper = "Press et al. 2021, arXiv:2108.12409",
           .models = "transformers with learned positions (GPT, BERT) or rotary ones (Llama), which it "
                     "replaces",
           .effect = "training on shorter sequences, evaluation on longer ones than were trained on",
           .example = "max_sequence_length = 2048"}};
}

Kind<BlurPoolOptions> BlurPoolOptions::kind() {
  using Options = BlurPoolOptions;
  return {
      "blurpool",
      "Blurs images before strided convolutions and within max pools; Composer's BlurPool.",
      {option("replace_convs", &Options::replace_convs, "blur at strided Conv2d"),
       option("replace_maxpools", &Options::replace_maxpools, "blur in MaxPool2d"),
       option("blur_first", &Options::blur_first,
              "blur the input of a convolution; false: its output before this is strided, which is slower"),
       option("min_channels", &Options::min_channels, "convolutions of fewer input channels stay as they are")
           .at_least(0)},
      {.composer = "BlurPool",
       .functions = {"apply_blurpool"},
       .header = "algorithms/surgery/blurpool.h",
       .call = "apply_blurpool(model);",
       .paper = "Zhang 2019, arXiv:1904.11486",
       .models = "convolutional networks",
       .effect = "better generalisation, and outputs that depend less on small shifts"}};
}

Kind<ChannelsLastOptions> ChannelsLastOptions::kind() {
  return {"channels_last",
          "Keeps the channels of a pixel together in memory; Composer's ChannelsLast.",
          {},
          {.composer = "ChannelsLast",
           .functions = {"apply_channels_last"},
           .header = "algorithms/surgery/channels_last.h",
           .call = "apply_channels_last(model);",
           .models = "convolutional networks",
           .effect = "faster convolutions; the results differ by rounding alone"}};
}

Kind<FactorizeAlgorithm> FactorizeAlgorithm::kind() {
  using Options = FactorizeAlgorithm;
  return {"factorize",
          "Makes two small layers of each large one; Composer's Factorize.",
          {option<Options>("factorize_convs", &Options::factorize_convs, "factorize Conv2d"),
           option<Options>("factorize_linears", &Options::factorize_linears, "factorize Linear"),
           option<Options>("min_channels", &Options::min_channels,
                           "channels in and out from which on a Conv2d is factorized")
               .at_least(1),
           option<Options>("latent_channels", &Options::latent_channels,
                           "channels between the two; below 1: a part of the fewer of in and out")
               .at_least(0)
               .at_most(1e9),
           option<Options>("min_features", &Options::min_features,
                           "features in and out from which on a Linear is factorized")
               .at_least(1),
           option<Options>("latent_features", &Options::latent_features,
                           "features between the two; below 1: a part of the fewer of in and out")
               .at_least(0)
               .at_most(1e9)},
          {.composer = "Factorize",
           .functions = {"apply_factorization"},
           .header = "algorithms/surgery/factorize.h",
           .call = "apply_factorization(model);",
           .paper = "Jaderberg et al. 2014, arXiv:1405.3866",
           .models = "wide ones",
           .effect = "fewer weights and faster steps, for some accuracy"}};
}

Kind<GatedLinearUnitsOptions> GatedLinearUnitsOptions::kind() {
  using Options = GatedLinearUnitsOptions;
  return {"gated_linear_units",
          "Gated feed-forward blocks in BERT; Composer's GatedLinearUnits.",
          {option("act_fn", &Options::act_fn, "of the gates; default: that of the blocks before")
               .one_of(activation_names()),
           option("gated_layer_bias", &Options::gated_layer_bias, "the gated layer has a bias"),
           option("non_gated_layer_bias", &Options::non_gated_layer_bias, "the other layer has a bias")},
          {.composer = "GatedLinearUnits",
           .functions = {"apply_gated_linear_units"},
           .header = "algorithms/surgery/gated_linear_units.h",
           .call = "apply_gated_linear_units(model);",
           .paper = "Shazeer 2020, arXiv:2002.05202",
           .models = "BERT",
           .effect = "a better model for slower steps"}};
}

Kind<GhostBatchNormOptions> GhostBatchNormOptions::kind() {
  using Options = GhostBatchNormOptions;
  return {"ghost_batchnorm",
          "Batch normalisation over small parts of a batch; Composer's GhostBatchNorm.",
          {option("ghost_batch_size", &Options::ghost_batch_size, "samples that are normalised together")
               .at_least(1)},
          {.composer = "GhostBatchNorm",
           .functions = {"apply_ghost_batchnorm"},
           .header = "algorithms/surgery/ghost_batchnorm.h",
           .call = "apply_ghost_batchnorm(model, 32);",
           .paper = "Hoffer et al. 2017, arXiv:1705.08741",
           .models = "models with BatchNorm",
           .effect = "better generalisation of large batches, for slower steps"}};
}

Kind<GyroDropoutOptions> GyroDropoutOptions::kind() {
  using Options = GyroDropoutOptions;
  return {"gyro_dropout",
          "Dropout with few masks, each of them trained for many steps; Composer's GyroDropout.",
          {option("p", &Options::p, "part that is dropped, in place of each Dropout's own")
               .at_least(0)
               .less_than(1),
           option("sigma", &Options::sigma, "masks of the whole training; not more than it has steps")
               .at_least(1)
               .at_most(kMostMasks),
           option("tau", &Options::tau, "masks of a batch").at_least(1).at_most(kMostMasks)},
          {.composer = "GyroDropout",
           .functions = {"apply_gyro_dropout"},
           .header = "algorithms/surgery/gyro_dropout.h",
           .call = "apply_gyro_dropout(model, 1000, 10);",
           .paper = "Lee et al. 2022, MLSys",
           .models = "those with Dropout",
           .effect = "better generalisation than by Dropout"}};
}

double LoraOptions::scaling() const {
  const auto rank = static_cast<double>(r);
  return alpha / (use_rslora ? std::sqrt(rank) : rank);
}

Kind<LoraOptions> LoraOptions::kind() {
  using Options = LoraOptions;
  return {
      "lora",
      "Trains small adapters of frozen Linear and Conv1D layers; as PEFT's LoraConfig.",
      {option("r", &Options::r, "rank of the adapters").at_least(1).at_most(kMostRanks),
       option("alpha", &Options::alpha, "adapters are scaled by alpha / r")
           .also_named({"lora_alpha"})
           .more_than(0),
       option("dropout", &Options::dropout, "part of an adapter's input that is dropped")
           .also_named({"lora_dropout"})
           .at_least(0)
           .less_than(1),
       option("targets", &Options::targets,
              "the layers: ends of their names, names with *, or all-linear; default: those that PEFT "
              "takes, q_proj and v_proj, c_attn, or query and value")
           .also_named({"target_modules"}),
       option("use_rslora", &Options::use_rslora, "scale by alpha / sqrt(r)"),
       option("modules_to_save", &Options::modules_to_save,
              "layers that are trained as a whole, as a new head is: ends of their names, or names with *"),
       option("adapter", &Options::adapter, "a folder of PEFT's with an adapter to start from")
           .as(KeyType::kPath)},
      {.functions = {"apply_lora"},
       .header = "algorithms/surgery/lora.h",
       .call = "apply_lora(model, {.r = 16, .alpha = 32});",
       .paper = "Hu et al. 2021, arXiv:2106.09685",
       .models = "pretrained transformers",
       .effect = "fine-tuning with the gradients and optimizer state of few weights; `tutti export` writes "
                 "the adapter, or the weights with it merged in"}};
}

Kind<LowPrecisionGroupNormOptions> LowPrecisionGroupNormOptions::kind() {
  using Options = LowPrecisionGroupNormOptions;
  return {"low_precision_groupnorm",
          "GroupNorms in bf16 or fp16 under amp; Composer's LowPrecisionGroupNorm.",
          {apply_at_option<Options>()},
          {.composer = "LowPrecisionGroupNorm",
           .functions = {"apply_low_precision_groupnorm"},
           .header = "algorithms/surgery/low_precision_norms.h",
           .call = "apply_low_precision_groupnorm(model, precision);",
           .paper = "MosaicML 2022",
           .models = "those with GroupNorms, with precision = \"amp_bf16\" or \"amp_fp16\"",
           .effect = "faster steps where 16 bits are fast; GPUs save memory by it, CPUs do not"}};
}

Kind<LowPrecisionLayerNormOptions> LowPrecisionLayerNormOptions::kind() {
  using Options = LowPrecisionLayerNormOptions;
  return {"low_precision_layernorm",
          "LayerNorms in bf16 or fp16 under amp; Composer's LowPrecisionLayerNorm.",
          {apply_at_option<Options>()},
          {.composer = "LowPrecisionLayerNorm",
           .functions = {"apply_low_precision_layernorm"},
           .header = "algorithms/surgery/low_precision_norms.h",
           .call = "apply_low_precision_layernorm(model, precision);",
           .paper = "MosaicML 2022",
           .models = "transformers, with precision = \"amp_bf16\" or \"amp_fp16\"",
           .effect = "faster steps where 16 bits are fast; GPUs save memory by it, CPUs do not"}};
}

Kind<NoOpModelOptions> NoOpModelOptions::kind() {
  return {"no_op_model",
          "Puts a model that costs nothing in the place of the model; Composer's NoOpModel.",
          {},
          {.composer = "NoOpModel",
           .header = "algorithms/surgery/no_op_model.h",
           .models = "all",
           .effect = "a run that shows how fast the data are loaded, and trains nothing"}};
}

Kind<SqueezeExciteOptions> SqueezeExciteOptions::kind() {
  using Options = SqueezeExciteOptions;
  return {"squeeze_excite",
          "Lets convolutions weigh their output channels by what is in the image; Composer's SqueezeExcite.",
          {option("latent_channels", &Options::latent_channels,
                  "width of the hidden layer; below 1 a part of the output channels")
               .more_than(0)
               .at_most(1e9),
           option("min_channels", &Options::min_channels,
                  "convolutions of fewer input or output channels stay as they are")
               .at_least(0)},
          {.composer = "SqueezeExcite",
           .functions = {"apply_squeeze_excite"},
           .header = "algorithms/surgery/squeeze_excite.h",
           .call = "apply_squeeze_excite(model);",
           .paper = "Hu et al. 2017, arXiv:1709.01507",
           .models = "convolutional networks",
           .effect = "a better model for slower steps"}};
}

Kind<StochasticDepthAlgorithm> StochasticDepthAlgorithm::kind() {
  using Options = StochasticDepthAlgorithm;
  return {
      "stochastic_depth",
      "Leaves out residual blocks at random in training; Composer's StochasticDepth.",
      {option<Options>(
           "target_layer_name", &Options::target_layer_name,
           "the blocks: ResNetBottleneck, or another kind of residual block that the model has: BasicBlock")
           .required(),
       option<Options>("stochastic_method", &Options::stochastic_method,
                       "block: a block for the whole batch; sample: for each sample by itself",
                       {{"block", StochasticMethod::kBlock}, {"sample", StochasticMethod::kSample}}),
       option<Options>("drop_rate", &Options::drop_rate, "probability of a block to be left out")
           .at_least(0)
           .at_most(1),
       option<Options>("drop_distribution", &Options::drop_distribution,
                       "linear: the rate of block i of n is i / n of drop_rate; uniform: all have drop_rate",
                       {{"linear", DropDistribution::kLinear}, {"uniform", DropDistribution::kUniform}}),
       option("drop_warmup", &Options::drop_warmup, "time over which the rates grow from 0; for blocks only")
           .written("0dur")
           .in_units({"dur", "ba", "ep"})
           .at_least(0)},
      {.composer = "StochasticDepth",
       .functions = {"apply_stochastic_depth"},
       .header = "algorithms/surgery/stochastic_depth.h",
       .call = "apply_stochastic_depth(model, {.target_layer_name = \"ResNetBottleneck\"});",
       .paper = "Huang et al. 2016, arXiv:1603.09382",
       .models = "deep ResNets, and models of your own blocks",
       .effect = "better generalisation of deep networks in long trainings; faster steps by blocks",
       .example = "target_layer_name = \"ResNetBottleneck\""}};
}

Kind<WeightStandardizationOptions> WeightStandardizationOptions::kind() {
  using Options = WeightStandardizationOptions;
  return {"weight_standardization",
          "Convolves with weights of mean 0 and variance 1; Composer's WeightStandardization.",
          {option("n_last_layers_ignore", &Options::n_last_layers_ignore,
                  "the last convolutions, so many, stay as they are")
               .at_least(0)},
          {.composer = "WeightStandardization",
           .functions = {"apply_weight_standardization"},
           .header = "algorithms/surgery/weight_standardization.h",
           .call = "apply_weight_standardization(model);",
           .paper = "Qiao et al. 2019, arXiv:1903.10520",
           .models = "convolutional networks, most with GroupNorm and small microbatches",
           .effect = "a better model for slower steps"}};
}

}  // namespace tutti

#include "algorithms/factory.h"

#include <map>
#include <optional>

#include "algorithms/augmentation/augmix.h"
#include "algorithms/augmentation/colout.h"
#include "algorithms/augmentation/cutmix.h"
#include "algorithms/augmentation/cutout.h"
#include "algorithms/augmentation/mixup.h"
#include "algorithms/augmentation/progressive_resizing.h"
#include "algorithms/augmentation/randaugment.h"
#include "algorithms/loop/ema.h"
#include "algorithms/loop/gradient_clipping.h"
#include "algorithms/loop/label_smoothing.h"
#include "algorithms/loop/layer_freezing.h"
#include "algorithms/loop/sam.h"
#include "algorithms/loop/selective_backprop.h"
#include "algorithms/loop/seq_length_warmup.h"
#include "algorithms/loop/swa.h"
#include "algorithms/surgery/alibi.h"
#include "algorithms/surgery/blurpool.h"
#include "algorithms/surgery/channels_last.h"
#include "algorithms/surgery/factorize.h"
#include "algorithms/surgery/gated_linear_units.h"
#include "algorithms/surgery/ghost_batchnorm.h"
#include "algorithms/surgery/gyro_dropout.h"
#include "algorithms/surgery/low_precision_norms.h"
#include "algorithms/surgery/no_op_model.h"
#include "algorithms/surgery/squeeze_excite.h"
#include "algorithms/surgery/stochastic_depth.h"
#include "algorithms/surgery/weight_standardization.h"
#include "data/transforms/factory.h"
#include "models/layers/bert_blocks.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using AlgorithmPtr = std::shared_ptr<Algorithm>;
using AlgorithmMaker = AlgorithmPtr (*)(const Setting& section);

BatchKey batch_key(const Setting& section, const std::string& name) {
  const Setting& key = section.at(name);
  if (key.is_integer() && key.integer() >= 0) return BatchKey(key.integer());
  if (!key.is_text() || key.text().empty())
    key.fail("expected the name of an array, or its number: the first is 0");
  return key.text();
}

SampleMixingOptions mixing_options(const Setting& section) {
  return {.interpolate_loss = section.at("interpolate_loss").boolean(),
          .input_key = batch_key(section, "input_key"),
          .target_key = batch_key(section, "target_key")};
}

AlgorithmPtr augmix(const Setting& section) { return std::make_shared<AugMix>(augmix_options(section)); }

AlgorithmPtr randaugment(const Setting& section) {
  return std::make_shared<RandAugment>(randaugment_options(section));
}

AlgorithmPtr colout(const Setting& section) {
  ColOut::Options options{
      .dropped = {.p_row = section.at("p_row").number(), .p_col = section.at("p_col").number()},
      .batch = section.at("batch").boolean(),
      .input_key = batch_key(section, "input_key"),
      .target_key = batch_key(section, "target_key")};
  const Setting& resize = section.at("resize_target");
  if (!resize.is_text()) options.dropped.resize_target = resize.boolean();
  if (!options.batch && options.dropped.resize_target.value_or(false))
    resize.fail("targets lose rows and columns with batch = true only");
  return std::make_shared<ColOut>(std::move(options));
}

AlgorithmPtr cutmix(const Setting& section) {
  const CutMixOptions how{.alpha = section.at("alpha").number(),
                          .uniform_sampling = section.at("uniform_sampling").boolean()};
  return std::make_shared<CutMix>(how, mixing_options(section));
}

AlgorithmPtr cutout(const Setting& section) {
  const CutOutOptions options{.num_holes = section.at("num_holes").integer(),
                              .length = section.at("length").number(),
                              .uniform_sampling = section.at("uniform_sampling").boolean()};
  return std::make_shared<CutOut>(options, batch_key(section, "input_key"));
}

AlgorithmPtr mixup(const Setting& section) {
  return std::make_shared<MixUp>(section.at("alpha").number(), mixing_options(section));
}

AlgorithmPtr progressive_resizing(const Setting& section) {
  ProgressiveResizing::Options options{
      .mode = section.at("mode").text() == "crop" ? ResizeMode::kCrop : ResizeMode::kResize,
      .initial_scale = section.at("initial_scale").number(),
      .finetune_fraction = section.at("finetune_fraction").number(),
      .delay_fraction = section.at("delay_fraction").number(),
      .size_increment = section.at("size_increment").integer(),
      .resize_targets = section.at("resize_targets").boolean(),
      .input_key = batch_key(section, "input_key"),
      .target_key = batch_key(section, "target_key")};
  if (options.delay_fraction + options.finetune_fraction > 1.0)
    section.at("delay_fraction").fail("together with finetune_fraction this is more than 1");
  return std::make_shared<ProgressiveResizing>(std::move(options));
}

AlgorithmPtr gradient_clipping(const Setting& section) {
  static const std::map<std::string, ClippingType> types = {
      {"norm", ClippingType::kNorm}, {"value", ClippingType::kValue}, {"adaptive", ClippingType::kAdaptive}};
  return std::make_shared<GradientClipping>(types.at(section.at("clipping_type").text()),
                                            section.at("clipping_threshold").number());
}

std::optional<Time> time_if_any(const Setting& section, const char* key) {
  return section.has(key) ? std::optional(Time::parse(section.at(key))) : std::nullopt;
}

std::optional<double> number_if_any(const Setting& section, const char* key) {
  return section.has(key) ? std::optional(section.at(key).number()) : std::nullopt;
}

// For options that do not fit together.
template <class Kind, class Options>
AlgorithmPtr made_of(const Setting& section, const Options& options) try {
  return std::make_shared<Kind>(options);
} catch (const UserError& error) {
  section.fail(error);
}

AlgorithmPtr ema(const Setting& section) {
  EMA::Options options{time_if_any(section, "half_life"), number_if_any(section, "smoothing"),
                       Time::parse(section.at("ema_start")), time_if_any(section, "update_interval")};
  if (!options.half_life && !options.smoothing) options.half_life = Time(1000, TimeUnit::kBatch);
  return made_of<EMA>(section, options);
}

AlgorithmPtr sam(const Setting& section) {
  return std::make_shared<SAM>(SAMOptions{section.at("rho").number(), section.at("epsilon").number(),
                                          section.at("interval").integer()});
}

AlgorithmPtr swa(const Setting& section) {
  const bool is_linear = section.at("anneal_strategy").text() == "linear";
  return made_of<SWA>(
      section,
      SWA::Options{Time::parse(section.at("swa_start")), Time::parse(section.at("swa_end")),
                   Time::parse(section.at("update_interval")), section.at("schedule_swa_lr").boolean(),
                   is_linear ? AnnealStrategy::kLinear : AnnealStrategy::kCosine,
                   section.at("anneal_steps").integer(), number_if_any(section, "swa_lr")});
}

AlgorithmPtr alibi(const Setting& section) {
  return std::make_shared<Alibi>(section.at("max_sequence_length").integer(),
                                 section.at("train_sequence_length_scaling"));
}

AlgorithmPtr factorize(const Setting& section) {
  return std::make_shared<Factorize>(
      FactorizeOptions{.factorize_convs = section.at("factorize_convs").boolean(),
                       .factorize_linears = section.at("factorize_linears").boolean(),
                       .min_channels = section.at("min_channels").integer(),
                       .latent_channels = section.at("latent_channels").number(),
                       .min_features = section.at("min_features").integer(),
                       .latent_features = section.at("latent_features").number()});
}

AlgorithmPtr gyro_dropout(const Setting& section) {
  return std::make_shared<GyroDropout>(GyroDropoutOptions{.p = section.at("p").number(),
                                                          .sigma = section.at("sigma").integer(),
                                                          .tau = section.at("tau").integer()});
}

AlgorithmPtr blurpool(const Setting& section) {
  const BlurPoolOptions options{.replace_convs = section.at("replace_convs").boolean(),
                                .replace_maxpools = section.at("replace_maxpools").boolean(),
                                .blur_first = section.at("blur_first").boolean(),
                                .min_channels = section.at("min_channels").integer()};
  if (!options.replace_convs && !options.replace_maxpools)
    section.at("replace_maxpools").fail("with replace_convs = false too, nothing would be replaced");
  return std::make_shared<BlurPool>(options);
}

AlgorithmPtr channels_last(const Setting&) { return std::make_shared<ChannelsLast>(); }

AlgorithmPtr no_op_model(const Setting&) { return std::make_shared<NoOpModel>(); }

AlgorithmPtr squeeze_excite(const Setting& section) {
  return std::make_shared<SqueezeExcite>(section.at("latent_channels").number(),
                                         section.at("min_channels").integer());
}

AlgorithmPtr weight_standardization(const Setting& section) {
  return std::make_shared<WeightStandardization>(section.at("n_last_layers_ignore").integer());
}

AlgorithmPtr gated_linear_units(const Setting& section) {
  return std::make_shared<GatedLinearUnits>(
      section.has("act_fn") ? make_bert_activation(section.at("act_fn").text()) : nullptr,
      section.at("gated_layer_bias").boolean(), section.at("non_gated_layer_bias").boolean());
}

AlgorithmPtr ghost_batchnorm(const Setting& section) {
  return std::make_shared<GhostBatchNorm>(section.at("ghost_batch_size").integer());
}

AlgorithmPtr stochastic_depth(const Setting& section) {
  const bool samples = section.at("stochastic_method").text() == "sample";
  const bool linear = section.at("drop_distribution").text() == "linear";
  StochasticDepthOptions options{
      .target_layer_name = section.at("target_layer_name").text(),
      .stochastic_method = samples ? StochasticMethod::kSample : StochasticMethod::kBlock,
      .drop_rate = section.at("drop_rate").number(),
      .drop_distribution = linear ? DropDistribution::kLinear : DropDistribution::kUniform};
  const Setting& drop_warmup = section.at("drop_warmup");
  const Time warmup = Time::parse(drop_warmup);
  if (samples && warmup.value() > 0) drop_warmup.fail("stochastic_method = \"sample\" has no warm-up");
  return std::make_shared<StochasticDepth>(std::move(options), warmup);
}

AlgorithmPtr label_smoothing(const Setting& section) {
  return std::make_shared<LabelSmoothing>(section.at("smoothing").number(), batch_key(section, "target_key"));
}

AlgorithmPtr layer_freezing(const Setting& section) {
  return std::make_shared<LayerFreezing>(section.at("freeze_start").number(),
                                         section.at("freeze_level").number());
}

template <class LowPrecisionNorm>
AlgorithmPtr low_precision_norm(const Setting& section) {
  return std::make_shared<LowPrecisionNorm>(event_named(section.at("apply_at").text()));
}

AlgorithmPtr selective_backprop(const Setting& section) {
  SelectiveBackprop::Options options{.start = section.at("start").number(),
                                     .end = section.at("end").number(),
                                     .keep = section.at("keep").number(),
                                     .scale_factor = section.at("scale_factor").number(),
                                     .interrupt = section.at("interrupt").integer(),
                                     .input_key = batch_key(section, "input_key"),
                                     .target_key = batch_key(section, "target_key")};
  return std::make_shared<SelectiveBackprop>(std::move(options));
}

AlgorithmPtr seq_length_warmup(const Setting& section) {
  const SeqLengthWarmup::Options options{
      .duration = section.at("duration").number(),
      .min_seq_length = section.at("min_seq_length").integer(),
      .max_seq_length = section.at("max_seq_length").integer(),
      .step_size = section.at("step_size").integer(),
      .how = {.truncate = section.at("truncate").boolean(),
              .preserve_end_of_sequence = section.at("preserve_end_of_sequence").boolean()}};
  if (options.max_seq_length - options.min_seq_length < options.step_size)
    section.at("max_seq_length").fail("expected min_seq_length and one step_size at least");
  return std::make_shared<SeqLengthWarmup>(options);
}

const std::map<std::string, AlgorithmMaker>& algorithm_makers() {
  static const std::map<std::string, AlgorithmMaker> all = {
      {"alibi", alibi},
      {"augmix", augmix},
      {"blurpool", blurpool},
      {"channels_last", channels_last},
      {"colout", colout},
      {"cutmix", cutmix},
      {"cutout", cutout},
      {"ema", ema},
      {"factorize", factorize},
      {"gated_linear_units", gated_linear_units},
      {"ghost_batchnorm", ghost_batchnorm},
      {"gradient_clipping", gradient_clipping},
      {"gyro_dropout", gyro_dropout},
      {"label_smoothing", label_smoothing},
      {"layer_freezing", layer_freezing},
      {"low_precision_groupnorm", low_precision_norm<LowPrecisionGroupNorm>},
      {"low_precision_layernorm", low_precision_norm<LowPrecisionLayerNorm>},
      {"mixup", mixup},
      {"no_op_model", no_op_model},
      {"progressive_resizing", progressive_resizing},
      {"randaugment", randaugment},
      {"sam", sam},
      {"selective_backprop", selective_backprop},
      {"seq_length_warmup", seq_length_warmup},
      {"squeeze_excite", squeeze_excite},
      {"stochastic_depth", stochastic_depth},
      {"swa", swa},
      {"weight_standardization", weight_standardization}};
  return all;
}

}  // namespace

AlgorithmPtr make_algorithm(const Setting& section) {
  return algorithm_makers().at(section.at("kind").text())(section);
}

}  // namespace tutti

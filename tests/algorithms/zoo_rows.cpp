#include <algorithm>
#include <set>

#include "models/zoo/factory.h"
#include "tests/algorithms/rows.h"
#include "tests/runtime/nightly.h"

namespace tutti {
namespace {

using enum Event;
using RowList = std::vector<AlgorithmRow>;

const std::string kLlama =
    "[model]\nkind = 'llama'\nvocab_size = 256\nnum_hidden_layers = 1\nnum_attention_heads = 4\n"
    "num_key_value_heads = 2\nhidden_size = 32\nintermediate_size = 48\n" +
    std::string(kBytesData) + "[optimizer]\nkind = 'adamw'\nlr = 3e-3\neps = 1e-5\n";

const std::string kVit =
    "[model]\nkind = 'vit'\npatch_size = 4\nnum_layers = 1\nnum_heads = 2\nhidden_dim = 16\nmlp_dim = 32\n" +
    std::string(kDigitsData) + "[optimizer]\nkind = 'adamw'\nlr = 0.01\neps = 1e-5\n";

std::string recurrent(const std::string& layer) {
  return "[model]\nkind = 'sequential'\nlayers = ['Select(1, 0)', '" + layer +
         "(8, 16, batch_first=True)', 'Select(1, -1)', 'Dropout(p=0.1)', 'Linear(16, 10)']\n" +
         std::string(kDigitsData) + "[optimizer]\nkind = 'adamw'\nlr = 0.01\neps = 1e-5\n";
}

// The row's algorithm is the last of the recipe's.
const std::string kLlamaWithLora =
    kLlama + "[[algorithms]]\nkind = 'lora'\nmodules_to_save = ['embed_tokens', 'lm_head']\n";

// `transforms`: sections of [[data.train.transforms]].
std::string unet(const std::string& transforms) {
  return "[model]\nkind = 'unet'\nencoder_name = 'resnet18'\nencoder_width = 4\nencoder_depth = 3\n"
         "decoder_channels = [8, 8, 8]\n[data.train]\nkind = 'hdf5'\npath = '" TUTTI_SOURCE_DIR
         "/examples/data/targets.h5'\ngroup = 'masks/train'\nbatch_size = 12\nsubset_num_batches = 25\n"
         "shuffle = true\n" +
         transforms + "[optimizer]\nkind = 'sgd'\nlr = 0.05\nmomentum = 0.9\n";
}

std::shared_ptr<Model> unet_with_group_norms(const Setting& section, const SampleSpec& samples) {
  return with_group_norms(make_model(section, samples));
}

// `sizes`: keys of the sizes of the images. Images alone, without targets.
std::string diffusion(const std::string& sizes) {
  return "[model]\nkind = 'diffusion_unet'\nsample_size = 8\nlayers_per_block = 1\nnorm_num_groups = 4\n" +
         sizes + kDigitsData +
         "arrays = ['input']\n[[data.train.transforms]]\nkind = 'normalize'\nmean = [0.5]\nstd = [0.5]\n"
         "[optimizer]\nkind = 'adamw'\nlr = 3e-3\neps = 1e-5\n";
}

// Of one model; `variant` distinguishes its rows.
class RowsOf {
 public:
  RowsOf(std::string variant, std::string training, ModelFactory make_model = {})
      : variant_(std::move(variant)), training_(std::move(training)), make_model_(std::move(make_model)) {}

  RowsOf& add(const char* kind, const char* options, std::vector<Acts> acts, Differs differs = {}) {
    rows.push_back(
        {kind, options, training_, std::move(acts), differs, "", kRounding, variant_, make_model_});
    return *this;
  }
  RowsOf& in_16_bits(const char* kind, const char* options, std::vector<Acts> acts) {
    add(kind, options, std::move(acts));
    rows.back().train = kAmp;
    rows.back().rounding = kRoundingOfBfloat16;
    return *this;
  }
  // Another training for the row added last.
  RowsOf& by(std::string training) {
    rows.back().training = std::move(training);
    return *this;
  }
  // Those that suit any model and data.
  RowsOf& add_loop() {
    add("ema", "half_life = '5ba'\nema_start = '10ba'\n",
        {once(kBeforeLoad), {kBatchEnd, 10, 50}, {kEvalStart, 25, 50, 25}, {kEvalEnd, 25, 50, 25}});
    add("gradient_clipping", "clipping_type = 'norm'\nclipping_threshold = 0.1\n",
        {{kAfterTrainBatch, 0, 49}});
    add("layer_freezing", "freeze_start = 0.0\n", {{kEpochEnd, 25, 50, 25}});
    add("sam", "rho = 0.1\ninterval = 2\n", {once(kAfterLoad)});
    return add("swa",
               "swa_start = '20ba'\nswa_end = '40ba'\nupdate_interval = '5ba'\nschedule_swa_lr = true\n",
               {once(kBeforeLoad), {kBatchEnd, 20, 40}});
  }
  RowsOf& add_loop_of_targets() {
    add("selective_backprop", "start = 0.1\n", {{kAfterDataloader, 6, 24, 2}, {kAfterDataloader, 25, 43, 2}},
        {.on_ranks = "a rank chooses among the samples of its part of the batch, as in Composer"});
    return add_loop();
  }
  RowsOf& add_loop_of_classes() {
    add("label_smoothing", "", {{kBeforeLoss, 0, 49}, {kAfterLoss, 0, 49}});
    return add_loop_of_targets();
  }
  RowsOf& add_mixes_of_images() {
    const std::vector<Acts> mixes = {{kBeforeForward, 0, 49}, {kBeforeLoss, 0, 49}};
    add("cutmix", "", mixes, kMixedInParts);
    add("cutout", "", {{kAfterDataloader, 0, 49}});
    return add("mixup", "alpha = 0.5\n", mixes, kMixedInParts);
  }
  RowsOf& add_small_factors() {
    return add("factorize", "min_features = 10\nlatent_features = 4\n", {once(kInit)});
  }
  RowsOf& add_gyro_dropout() {
    return add("gyro_dropout", "p = 0.1\nsigma = 8\ntau = 4\n", {once(kFitStart)});
  }

  RowList rows;

 private:
  std::string variant_, training_;
  ModelFactory make_model_;
};

RowList llama_rows() {
  return RowsOf("OfLlama", kLlama)
      .add("alibi", "max_sequence_length = 32\n", {once(kInit), {kAfterDataloader, 0, 49}})
      .add_small_factors()
      .add("lora", "modules_to_save = ['embed_tokens', 'lm_head']\n", {once(kInit)})
      .add("seq_length_warmup", "duration = 0.5\nmax_seq_length = 32\n", {{kAfterDataloader, 0, 49}})
      .add_loop_of_targets()
      .rows;
}

RowList llama_rows_with_lora() { return RowsOf("BesideLora", kLlamaWithLora).add_loop_of_targets().rows; }

RowList vit_rows() {
  std::string slow = kVit;  // at which rounding to bfloat16 moves losses little
  slow.replace(slow.find("lr = 0.01"), 9, "lr = 0.003");
  return RowsOf("OfVit", kVit)
      .add("augmix", "", {once(kFitStart)})
      .add_mixes_of_images()
      .add("randaugment", "severity = 3\n", {once(kFitStart)})
      .add_small_factors()
      .add_gyro_dropout()
      .add("lora", "targets = ['all-linear']\nmodules_to_save = ['head', 'conv_proj']\n", {once(kInit)})
      .in_16_bits("low_precision_layernorm", "apply_at = 'after_load'\n", {once(kAfterLoad)})
      .by(slow)
      .add("weight_standardization", "", {once(kInit)})
      .add_loop_of_classes()
      .rows;
}

RowList recurrent_rows() {
  RowList rows = RowsOf("OfLstm", recurrent("LSTM"))
                     .add_mixes_of_images()
                     .add("randaugment", "severity = 3\n", {once(kFitStart)})
                     .add_small_factors()
                     .add_gyro_dropout()
                     .add_loop_of_classes()
                     .rows;
  const RowList of_gru = RowsOf("OfGru", recurrent("GRU")).add_loop_of_classes().rows;
  rows.insert(rows.end(), of_gru.begin(), of_gru.end());
  return rows;
}

// Not those that move pixels of the images and not of their masks. Of 8x8 pixels, so that progressive
// resizing gives sizes that 8 does not divide; norms over three pixels would magnify rounding.
RowList unet_rows() {
  RowList rows = RowsOf("OfUnet", unet(""), unet_with_group_norms)
                     .add("blurpool", "", {once(kInit)})
                     .add("progressive_resizing", "delay_fraction = 0.2\nresize_targets = true\n",
                          {{kAfterDataloader, 0, 49}})
                     .add("channels_last", "", {once(kInit)})
                     .add("colout", "p_row = 0.3\np_col = 0.3\n", {{kAfterDataloader, 0, 49}})
                     .add_mixes_of_images()
                     .add("factorize", "min_channels = 8\nlatent_channels = 0.5\n", {once(kInit)})
                     .in_16_bits("low_precision_groupnorm", "", {once(kInit)})
                     .add("no_op_model", "", {once(kInit)})
                     .add("squeeze_excite", "min_channels = 8\nlatent_channels = 0.25\n", {once(kInit)})
                     .add("stochastic_depth",
                          "target_layer_name = 'BasicBlock'\nstochastic_method = 'sample'\n", {once(kInit)})
                     .add("weight_standardization", "", {once(kInit)})
                     .add_loop_of_classes()
                     .rows;
  const RowList with_batch_norms =
      RowsOf("OfUnet", unet("[[data.train.transforms]]\nkind = 'resize'\nsize = 16\n"))
          .add("ghost_batchnorm", "ghost_batch_size = 3\n", {once(kInit)})
          .rows;
  rows.insert(rows.end(), with_batch_norms.begin(), with_batch_norms.end());
  return rows;
}

RowList diffusion_rows() {
  RowList rows =
      RowsOf("OfDiffusion", diffusion("block_out_channels = [8, 16]\n"
                                      "down_block_types = ['DownBlock2D', 'AttnDownBlock2D']\n"
                                      "up_block_types = ['AttnUpBlock2D', 'UpBlock2D']\n"))
          .add("channels_last", "", {once(kInit)})
          .add("factorize", "min_channels = 16\nmin_features = 16\nlatent_features = 4\n", {once(kInit)})
          .add("weight_standardization", "", {once(kInit)})
          .in_16_bits("low_precision_groupnorm", "", {once(kInit)})
          .add_loop()
          .rows;
  // In every suite, so of one size.
  std::ranges::find(rows, "ema", &AlgorithmRow::kind)->training = diffusion(
      "block_out_channels = [8]\ndown_block_types = ['AttnDownBlock2D']\nadd_attention = false\n"
      "up_block_types = ['UpBlock2D']\n");
  return rows;
}

// Each text is its own positive, encoded twice. `temperature`: of the loss, which magnifies rounding by 1 /
// it.
std::string contrast(const std::string& temperature) {
  return "[model]\nkind = 'bert_contrastive'\nsimcse = true\nvocab_size = 256\nhidden_size = 32\n"
         "num_hidden_layers = 1\nnum_attention_heads = 4\nintermediate_size = 48\nmax_position_embeddings = "
         "32\ntemperature = " +
         temperature + '\n' + kBytesData + "[optimizer]\nkind = 'adamw'\nlr = 3e-3\neps = 1e-5\n";
}

RowList contrastive_rows() {
  return RowsOf("OfContrast", contrast("0.05"))
      .add("alibi", "max_sequence_length = 32\n", {once(kInit), {kAfterDataloader, 0, 49}})
      .add_small_factors()
      .add("gated_linear_units", "", {once(kInit)})
      .add_gyro_dropout()
      .add("lora", "modules_to_save = ['embeddings']\n", {once(kInit)})
      .in_16_bits("low_precision_layernorm", "apply_at = 'after_load'\n", {once(kAfterLoad)})
      .by(contrast("1.0"))
      .add("seq_length_warmup", "duration = 0.5\nmax_seq_length = 32\n", {{kAfterDataloader, 0, 49}})
      .add_loop()
      .rows;
}

// In every suite; a row takes two seconds.
const std::set<std::string>& rows_of_each_suite() {
  static const std::set<std::string> names = {"alibi_OfLlama",
                                              "seq_length_warmup_OfLlama",
                                              "sam_OfLlama",
                                              "ema_BesideLora",
                                              "mixup_OfVit",
                                              "factorize_OfVit",
                                              "low_precision_layernorm_OfVit",
                                              "layer_freezing_OfLstm",
                                              "gradient_clipping_OfGru",
                                              "blurpool_OfUnet",
                                              "ema_OfDiffusion",
                                              "gyro_dropout_OfContrast"};
  return names;
}

}  // namespace

std::vector<AlgorithmRow> zoo_rows() {
  RowList all;
  for (auto& group : {llama_rows(), llama_rows_with_lora(), vit_rows(), recurrent_rows(), unet_rows(),
                      diffusion_rows(), contrastive_rows()})
    all.insert(all.end(), group.begin(), group.end());
  if (!is_nightly())
    std::erase_if(all, [](const AlgorithmRow& row) { return !rows_of_each_suite().contains(name_of(row)); });
  return all;
}

}  // namespace tutti

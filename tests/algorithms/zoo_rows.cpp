#include <algorithm>
#include <set>

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

// Of one model; `variant` distinguishes its rows.
class RowsOf {
 public:
  RowsOf(std::string variant, std::string training)
      : variant_(std::move(variant)), training_(std::move(training)) {}

  RowsOf& add(const char* kind, const char* options, std::vector<Acts> acts, Differs differs = {}) {
    rows.push_back({kind, options, training_, std::move(acts), differs, "", kRounding, variant_});
    return *this;
  }
  // With a learning rate at which rounding to bfloat16 moves losses little.
  RowsOf& in_16_bits(const char* kind, const char* options, std::vector<Acts> acts) {
    constexpr double kRoundingOfBfloat16 = 0.02;
    std::string slow = training_;
    slow.replace(slow.find("lr = 0.01"), 9, "lr = 0.003");
    rows.push_back({kind,
                    options,
                    slow,
                    std::move(acts),
                    {},
                    "precision = 'amp_bf16'\n",
                    kRoundingOfBfloat16,
                    variant_});
    return *this;
  }
  // Those that suit any model.
  RowsOf& add_loop() {
    add("ema", "half_life = '5ba'\nema_start = '10ba'\n",
        {once(kBeforeLoad), {kBatchEnd, 10, 50}, {kEvalStart, 25, 50, 25}, {kEvalEnd, 25, 50, 25}});
    add("gradient_clipping", "clipping_type = 'norm'\nclipping_threshold = 0.1\n",
        {{kAfterTrainBatch, 0, 49}});
    add("layer_freezing", "freeze_start = 0.0\n", {{kEpochEnd, 25, 50, 25}});
    add("selective_backprop", "start = 0.1\n", {{kAfterDataloader, 6, 24, 2}, {kAfterDataloader, 25, 43, 2}},
        {.on_ranks = "a rank chooses among the samples of its part of the batch, as in Composer"});
    add("sam", "rho = 0.1\ninterval = 2\n", {once(kAfterLoad)});
    return add("swa",
               "swa_start = '20ba'\nswa_end = '40ba'\nupdate_interval = '5ba'\nschedule_swa_lr = true\n",
               {once(kBeforeLoad), {kBatchEnd, 20, 40}});
  }
  RowsOf& add_loop_of_classes() {
    add("label_smoothing", "", {{kBeforeLoss, 0, 49}, {kAfterLoss, 0, 49}});
    return add_loop();
  }

  RowList rows;

 private:
  std::string variant_, training_;
};

RowList llama_rows() {
  return RowsOf("OfLlama", kLlama)
      .add("alibi", "max_sequence_length = 32\n", {once(kInit), {kAfterDataloader, 0, 49}})
      .add("factorize", "min_features = 10\nlatent_features = 4\n", {once(kInit)})
      .add("lora", "modules_to_save = ['embed_tokens', 'lm_head']\n", {once(kInit)})
      .add("seq_length_warmup", "duration = 0.5\nmax_seq_length = 32\n", {{kAfterDataloader, 0, 49}})
      .add_loop()
      .rows;
}

RowList llama_rows_with_lora() { return RowsOf("BesideLora", kLlamaWithLora).add_loop().rows; }

RowList vit_rows() {
  const std::vector<Acts> mixes = {{kBeforeForward, 0, 49}, {kBeforeLoss, 0, 49}};
  return RowsOf("OfVit", kVit)
      .add("augmix", "", {once(kFitStart)})
      .add("cutmix", "", mixes, kMixedInParts)
      .add("cutout", "", {{kAfterDataloader, 0, 49}})
      .add("mixup", "alpha = 0.5\n", mixes, kMixedInParts)
      .add("randaugment", "severity = 3\n", {once(kFitStart)})
      .add("factorize", "min_features = 10\nlatent_features = 4\n", {once(kInit)})
      .add("gyro_dropout", "p = 0.1\nsigma = 8\ntau = 4\n", {once(kFitStart)})
      .add("lora", "targets = ['all-linear']\nmodules_to_save = ['head', 'conv_proj']\n", {once(kInit)})
      .in_16_bits("low_precision_layernorm", "apply_at = 'after_load'\n", {once(kAfterLoad)})
      .add("weight_standardization", "", {once(kInit)})
      .add_loop_of_classes()
      .rows;
}

RowList recurrent_rows() {
  const std::vector<Acts> mixes = {{kBeforeForward, 0, 49}, {kBeforeLoss, 0, 49}};
  RowList rows = RowsOf("OfLstm", recurrent("LSTM"))
                     .add("cutmix", "", mixes, kMixedInParts)
                     .add("cutout", "", {{kAfterDataloader, 0, 49}})
                     .add("mixup", "alpha = 0.5\n", mixes, kMixedInParts)
                     .add("randaugment", "severity = 3\n", {once(kFitStart)})
                     .add("factorize", "min_features = 10\nlatent_features = 4\n", {once(kInit)})
                     .add("gyro_dropout", "p = 0.1\nsigma = 8\ntau = 4\n", {once(kFitStart)})
                     .add_loop_of_classes()
                     .rows;
  const RowList of_gru = RowsOf("OfGru", recurrent("GRU")).add_loop_of_classes().rows;
  rows.insert(rows.end(), of_gru.begin(), of_gru.end());
  return rows;
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
                                              "gradient_clipping_OfGru"};
  return names;
}

}  // namespace

std::vector<AlgorithmRow> zoo_rows() {
  RowList all;
  for (auto& group : {llama_rows(), llama_rows_with_lora(), vit_rows(), recurrent_rows()})
    all.insert(all.end(), group.begin(), group.end());
  if (!is_nightly())
    std::erase_if(all, [](const AlgorithmRow& row) { return !rows_of_each_suite().contains(name_of(row)); });
  return all;
}

}  // namespace tutti

#include "tests/algorithms/rows.h"

#include "commands/local_train.h"
#include "job/recipe_catalogs.h"
#include "models/layers/norm.h"
#include "models/zoo/resnet_cifar.h"
#include "recipe/toml_reader.h"
#include "tests/data/texts/letters_tokenizer.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using enum Event;

const std::string kImages = "[model]\nkind = 'mlp'\nhidden = [16]\n" + std::string(kDigitsData) +
                            "[optimizer]\nkind = 'sgd'\nlr = 0.1\nmomentum = 0.9\n";

// `text` with `before`, which occurs in it, replaced.
std::string replaced(std::string text, const std::string& before, const std::string& after) {
  return text.replace(text.find(before), before.size(), after);
}

// As kImages, for a loss of squared digits.
const std::string kSlowImages = replaced(kImages, "lr = 0.1\nmomentum = 0.9\n", "lr = 1e-3\n");

const std::string kMlp = "kind = 'mlp'\nhidden = [16]\n";

const std::string kConvolutions = replaced(
    replaced(kImages, "lr = 0.1", "lr = 0.03"), kMlp,
    "kind = 'sequential'\nlayers = ['Conv2d(1, 16, kernel_size=(3, 3), padding=(1, 1))', "
    "'GroupNorm(4, 16)', 'ReLU()', 'Conv2d(16, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1))', "
    "'ReLU()', 'Flatten()', 'Linear(512, 10)']\n");

// For losses that rounding to bfloat16 moves little.
const std::string kSlowConvolutions = replaced(kConvolutions, "lr = 0.03", "lr = 0.01");

// For images of any size.
const std::string kAnySize =
    replaced(replaced(kConvolutions, "'Flatten()', 'Linear(512, 10)'",
                      "'Conv2d(32, 32, kernel_size=(3, 3), padding=(1, 1))', 'ReLU()', "
                      "'AdaptiveAvgPool2d(output_size=1)', 'Flatten()', 'Linear(32, 10)'"),
             "kind = 'sgd'\nlr = 0.03\nmomentum = 0.9\n", "kind = 'adam'\nlr = 0.01\n");

const std::string kBatchNorms = replaced(kConvolutions, "GroupNorm(4, 16)", "BatchNorm2d(16)");

const std::string kResidual = replaced(kImages, kMlp, "kind = 'resnet_cifar'\ndepth = 20\nwidth = 4\n");

const std::string kDropout =
    replaced(kImages, kMlp,
             "kind = 'sequential'\nlayers = ['Flatten()', 'Linear(64, 32)', 'ReLU()', 'Dropout(p=0.5)', "
             "'Linear(32, 10)']\n");

const std::string kText = "[model]\nkind = 'gpt'\nn_layer = 1\nn_head = 2\nn_embd = 32\nn_positions = 32\n" +
                          std::string(kBytesData) + "[optimizer]\nkind = 'adamw'\nlr = 5e-3\neps = 1e-5\n";

// Bytes of which some are hidden: the byte 0 occurs in no text.
const std::string kHiddenText =
    "[model]\nkind = 'bert_mlm'\nvocab_size = 256\nhidden_size = 32\nnum_hidden_layers = 1\n"
    "num_attention_heads = 2\nintermediate_size = 64\nmax_position_embeddings = 32\n" +
    std::string(kBytesData) +
    "[[data.train.transforms]]\nkind = 'mask_tokens'\nmask_token_id = 0\n"
    "[optimizer]\nkind = 'adamw'\nlr = 5e-3\neps = 1e-5\n";

const Differs kNormalisedInParts = {
    .in_microbatches = "BatchNorm takes the statistics of a microbatch",
    .on_ranks = "BatchNorm takes the statistics of a rank's part of the batch",
};

// kResidual with three blocks, which are fewer than a recipe can ask for.
std::shared_ptr<Model> three_blocks(const Setting&, const SampleSpec&) {
  return std::make_shared<ResNetCifar>(
      ResNetCifarOptions{.depth = 8, .width = 4, .in_channels = 1, .num_classes = 10});
}

std::shared_ptr<Model> three_blocks_with_group_norms(const Setting& section, const SampleSpec& samples) {
  return with_group_norms(three_blocks(section, samples));
}

std::vector<AlgorithmRow> augmentation_rows() {
  return {
      {"augmix", "", kImages, {once(kFitStart)}},
      {"colout", "p_row = 0.3\n", kAnySize, {{kAfterDataloader, 0, 49}}},
      {"cutmix", "", kImages, {{kBeforeForward, 0, 49}, {kBeforeLoss, 0, 49}}, kMixedInParts},
      {"cutout", "", kImages, {{kAfterDataloader, 0, 49}}},
      {"mixup", "alpha = 0.5\n", kImages, {{kBeforeForward, 0, 49}, {kBeforeLoss, 0, 49}}, kMixedInParts},
      {"progressive_resizing", "delay_fraction = 0.2\n", kAnySize, {{kAfterDataloader, 0, 49}}},
      {"randaugment", "severity = 3\n", kImages, {once(kFitStart)}},
  };
}

std::vector<AlgorithmRow> surgery_rows() {
  return {
      {"alibi", "max_sequence_length = 32\n", kText, {once(kInit), {kAfterDataloader, 0, 49}}},
      {"blurpool", "", kConvolutions, {once(kInit)}},
      {"channels_last", "", kConvolutions, {once(kInit)}},
      {"factorize",
       "min_channels = 16\nmin_features = 10\nlatent_features = 4\n",
       kConvolutions,
       {once(kInit)}},
      {"gated_linear_units", "", kHiddenText, {once(kInit)}},
      {"ghost_batchnorm",
       "ghost_batch_size = 4\n",
       kBatchNorms,
       {once(kInit)},
       {.in_microbatches = "a microbatch of 6 samples is cut into ghost batches of 3, not of 4"}},
      {"gyro_dropout", "p = 0.3\nsigma = 8\ntau = 4\n", kDropout, {once(kFitStart)}},
      {"lora",
       "alpha = 16\ndropout = 0.1\ntargets = ['all-linear']\nmodules_to_save = ['wte']\n",
       kText,
       {once(kInit)}},
      {"low_precision_groupnorm", "", kSlowConvolutions, {once(kInit)}, {}, kAmp, kRoundingOfBfloat16},
      {"low_precision_layernorm",
       "apply_at = 'after_load'\n",
       kHiddenText,
       {once(kAfterLoad)},
       {},
       kAmp,
       kRoundingOfBfloat16},
      {"no_op_model", "", kSlowImages, {once(kInit)}},
      {"stochastic_depth",
       "target_layer_name = 'BasicBlock'\ndrop_warmup = '30ba'\n",
       kResidual,
       {once(kInit), {kBatchStart, 0, 49}},
       kNormalisedInParts,
       "",
       kRounding,
       "ByBlocks",
       three_blocks},
      {"stochastic_depth",
       "target_layer_name = 'BasicBlock'\nstochastic_method = 'sample'\n",
       kResidual,
       {once(kInit)},
       {},
       "",
       kRounding,
       "BySamples",
       three_blocks_with_group_norms},
      {"squeeze_excite", "min_channels = 16\nlatent_channels = 0.25\n", kConvolutions, {once(kInit)}},
      {"weight_standardization", "", kConvolutions, {once(kInit)}},
  };
}

// In options: folders of runs, trained when they are needed.
constexpr const char *kTeacher = "TEACHER", *kReference = "REFERENCE";

void train_for_rows(const std::string& training, const std::string& folder) {
  const std::string recipe = "seed = 5\n" + training + "[train]\nmax_duration = '25ba'\n";
  train_in_one_process(resolve_recipe(parse_recipe(recipe, "teacher.toml")),
                       {.ranks = 1, .run_dir = folder, .quiet = true});
}

std::string teacher_run() {
  static const Scratch folder;
  [[maybe_unused]] static const bool trained =
      (train_for_rows(replaced(kImages, "[16]", "[32]"), folder.path()), true);
  return folder.path();
}

// 200 pairs of answers of letters.
const std::string& preference_folder() {
  static const Scratch folder;
  [[maybe_unused]] static const bool written = [] {
    std::string lines;
    for (int i = 0; i < 200; ++i) {
      const auto word = [i](int from, int letters) {
        std::string text;
        for (int k = 0; k < letters; ++k) text += static_cast<char>('a' + (i * from + k * k + 3 * from) % 26);
        return text;
      };
      lines +=
          R"({"p": ")" + word(3, 6) + R"(", "c": ")" + word(5, 3) + R"(", "r": ")" + word(7, 5) + "\"}\n";
    }
    write_text(folder.path("pairs.jsonl"), lines);
    write_text(folder.path("tokenizer.json"), letters_tokenizer());
    return true;
  }();
  return folder.path();
}

std::string preferences() {
  const std::string gpt =
      "[model]\nkind = 'gpt'\nvocab_size = 29\nn_layer = 1\nn_head = 2\nn_embd = 32\nn_positions = 32\n";
  return gpt + "[data.train]\nkind = 'text'\npath = '" + preference_folder() +
         "/pairs.jsonl'\ntokenizer = '" + preference_folder() + "/tokenizer.json'\ncache = '" +
         preference_folder() +
         "/cache'\nprompt_field = 'p'\nchosen_field = 'c'\nrejected_field = 'r'\nadd_eos_token = false\n"
         "sequence_length = 32\nbatch_size = 8\nsubset_num_batches = 25\nshuffle = true\n"
         "[optimizer]\nkind = 'adamw'\nlr = 5e-3\neps = 1e-5\n";
}

std::string reference_run(std::string training) {
  static const Scratch folder;
  [[maybe_unused]] static const bool trained = [&] {
    training = replaced(training, "chosen_field = 'c'\nrejected_field = 'r'", "response_field = 'c'");
    train_for_rows(replaced(training, "sequence_length", "packing = 'first_fit'\nsequence_length"),
                   folder.path());
    return true;
  }();
  return folder.path();
}

std::vector<AlgorithmRow> loop_rows() {
  return {
      {"dpo",
       std::string("reference = '") + kReference + "'\n",
       preferences(),
       {once(kFitStart), {kBeforeTrainBatch, 0, 49}, {kBeforeBackward, 0, 49}, {kBatchEnd, 1, 50}}},
      {"distillation",
       std::string("teacher = '") + kTeacher + "'\n",
       kImages,
       {once(kFitStart), {kBeforeBackward, 0, 49}}},
      {"ema",
       "half_life = '5ba'\nema_start = '10ba'\n",
       kImages,
       {once(kBeforeLoad), {kBatchEnd, 10, 50}, {kEvalStart, 25, 50, 25}, {kEvalEnd, 25, 50, 25}}},
      {"gradient_clipping",
       "clipping_type = 'norm'\nclipping_threshold = 0.1\n",
       kImages,
       {{kAfterTrainBatch, 0, 49}}},
      {"label_smoothing", "", kImages, {{kBeforeLoss, 0, 49}, {kAfterLoss, 0, 49}}},
      {"layer_freezing", "freeze_start = 0.0\n", kConvolutions, {{kEpochEnd, 25, 50, 25}}},
      {"sam", "rho = 0.1\ninterval = 2\n", kImages, {once(kAfterLoad)}},
      {"selective_backprop",
       "start = 0.1\n",
       kImages,
       {{kAfterDataloader, 6, 24, 2}, {kAfterDataloader, 25, 43, 2}},
       {.on_ranks = "a rank chooses among the samples of its part of the batch, as in Composer"}},
      {"seq_length_warmup", "duration = 0.5\nmax_seq_length = 32\n", kText, {{kAfterDataloader, 0, 49}}},
      {"seq_length_warmup",
       "duration = 0.5\nmax_seq_length = 32\ntruncate = false\n",
       kText,
       {{kAfterDataloader, 0, 49}},
       {.on_ranks = "each rank drops the tokens of its part that fill no sequence, as in Composer"},
       "",
       kRounding,
       "Reshaping"},
      {"swa",
       "swa_start = '20ba'\nswa_end = '40ba'\nupdate_interval = '5ba'\nschedule_swa_lr = true\n",
       kImages,
       {once(kBeforeLoad), {kBatchEnd, 20, 40}}},
  };
}

}  // namespace

const std::vector<AlgorithmRow>& algorithm_rows() {
  static const std::vector<AlgorithmRow> rows = [] {
    std::vector<AlgorithmRow> all;
    for (auto& group : {augmentation_rows(), surgery_rows(), loop_rows(), zoo_rows()})
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }();
  return rows;
}

std::shared_ptr<Model> with_group_norms(std::shared_ptr<Model> model) {
  replace_layers(*model, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    const auto* norm = dynamic_cast<const BatchNorm*>(&named.slot->layer());
    if (!norm) return nullptr;
    return std::make_shared<GroupNorm>(GroupNormOptions{.channels = norm->options().channels});
  });
  return model;
}

std::string recipe_text(const AlgorithmRow& row, bool with_algorithm, const std::string& more) {
  std::string text = "seed = 5\n" + row.training + "[train]\nmax_duration = '" + std::to_string(kSteps) +
                     "ba'\n" + row.train + more;
  if (!with_algorithm) return text;
  text += "[[algorithms]]\nkind = '" + row.kind + "'\n" + row.options;
  if (row.options.find(kReference) != std::string::npos)
    return replaced(text, kReference, reference_run(row.training));
  return row.options.find(kTeacher) == std::string::npos ? text : replaced(text, kTeacher, teacher_run());
}

std::string evaluated(const AlgorithmRow& row) {
  std::string section = row.training.substr(row.training.find("[data.train]"));
  section = section.substr(0, section.find("[optimizer]"));
  for (size_t at; (at = section.find("data.train")) != std::string::npos;)
    section.replace(at, 10, "data.eval");
  const std::string all = "subset_num_batches = 25";
  section.replace(section.find(all), all.size(), "subset_num_batches = 1");
  return "eval_interval = '25ba'\n" + section;
}

}  // namespace tutti

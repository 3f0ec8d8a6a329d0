#include "tests/algorithms/rows.h"

namespace tutti {
namespace {

using enum Event;

// 25 steps an epoch.
const std::string kImages =
    "[model]\nkind = 'mlp'\nhidden = [16]\n[data.train]\nkind = 'hdf5'\npath = '" TUTTI_SOURCE_DIR
    "/examples/data/digits.h5'\ngroup = 'train'\nbatch_size = 24\nsubset_num_batches = 25\nshuffle = true\n"
    "[optimizer]\nkind = 'sgd'\nlr = 0.1\nmomentum = 0.9\n";

// As kImages, for a loss of squared digits.
const std::string kSlowImages = kImages.substr(0, kImages.find("lr = 0.1")) + "lr = 1e-3\n";

// As kImages, for images of any size.
const std::string kConvolutions = [] {
  std::string text = kImages;
  const std::string mlp = "kind = 'mlp'\nhidden = [16]\n", sgd = "kind = 'sgd'\nlr = 0.1\nmomentum = 0.9\n";
  text.replace(text.find(mlp), mlp.size(),
               "kind = 'sequential'\nlayers = ['Conv2d(1, 16, kernel_size=(3, 3), padding=(1, 1))', "
               "'BatchNorm2d(16)', 'ReLU()', 'Conv2d(16, 32, kernel_size=(3, 3), stride=(2, 2), padding=(1, "
               "1))', 'BatchNorm2d(32)', 'ReLU()', 'AdaptiveAvgPool2d(output_size=1)', 'Flatten()', "
               "'Linear(32, 10)']\n");
  return text.replace(text.find(sgd), sgd.size(), "kind = 'adam'\nlr = 0.02\n");
}();

// As kImages, for a network of nine residual blocks.
const std::string kResidual = [] {
  std::string text = kImages;
  const std::string mlp = "kind = 'mlp'\nhidden = [16]\n";
  return text.replace(text.find(mlp), mlp.size(), "kind = 'resnet_cifar'\ndepth = 20\nwidth = 4\n");
}();

const std::string kDropout = [] {
  std::string text = kImages;
  const std::string mlp = "kind = 'mlp'\nhidden = [16]\n";
  return text.replace(text.find(mlp), mlp.size(),
                      "kind = 'sequential'\nlayers = ['Flatten()', 'Linear(64, 32)', 'ReLU()', "
                      "'Dropout(p=0.5)', 'Linear(32, 10)']\n");
}();

const std::string kGroupNorms = [] {
  std::string text = kConvolutions;
  const std::string batch_norm = "BatchNorm2d(16)";
  return text.replace(text.find(batch_norm), batch_norm.size(), "GroupNorm(4, 16)");
}();

const std::string kAmp = "precision = 'amp_bf16'\n";

const std::string kText =
    "[model]\nkind = 'gpt'\nn_layer = 1\nn_head = 2\nn_embd = 32\nn_positions = 32\n[data.train]\n"
    "kind = 'bytes'\npath = '" TUTTI_SOURCE_DIR
    "/examples/data/king_james.txt'\nsequence_length = 32\nbatch_size = 8\nsubset_num_batches = 25\n"
    "shuffle = true\n[optimizer]\nkind = 'adamw'\nlr = 5e-3\n";

// Bytes of which some are hidden: the byte 0 occurs in no text.
const std::string kHiddenText =
    "[model]\nkind = 'bert_mlm'\nvocab_size = 256\nhidden_size = 32\nnum_hidden_layers = 1\n"
    "num_attention_heads = 2\nintermediate_size = 64\nmax_position_embeddings = 32\n[data.train]\n"
    "kind = 'bytes'\npath = '" TUTTI_SOURCE_DIR
    "/examples/data/king_james.txt'\nsequence_length = 32\nbatch_size = 8\nsubset_num_batches = 25\n"
    "shuffle = true\n[[data.train.transforms]]\nkind = 'mask_tokens'\nmask_token_id = 0\n"
    "[optimizer]\nkind = 'adamw'\nlr = 5e-3\n";

Acts once(Event event) { return {event, 0, 0}; }

}  // namespace

const std::vector<AlgorithmRow>& algorithm_rows() {
  static const std::vector<AlgorithmRow> rows = {
      {"alibi", "max_sequence_length = 32\n", kText, {once(kInit), {kAfterDataloader, 0, 49}}},
      {"augmix", "", kImages, {once(kFitStart)}},
      {"blurpool", "", kConvolutions, {once(kInit)}},
      {"channels_last", "", kConvolutions, {once(kInit)}},
      {"colout", "p_row = 0.3\n", kConvolutions, {{kAfterDataloader, 0, 49}}},
      {"cutmix", "", kImages, {{kBeforeForward, 0, 49}, {kBeforeLoss, 0, 49}}},
      {"cutout", "", kImages, {{kAfterDataloader, 0, 49}}},
      {"ema",
       "half_life = '5ba'\nema_start = '10ba'\n",
       kImages,
       {once(kBeforeLoad), {kBatchEnd, 10, 50}, {kEvalStart, 25, 50, 25}, {kEvalEnd, 25, 50, 25}}},
      {"factorize",
       "min_channels = 16\nmin_features = 10\nlatent_features = 4\n",
       kConvolutions,
       {once(kInit)}},
      {"gated_linear_units", "", kHiddenText, {once(kInit)}},
      {"ghost_batchnorm", "ghost_batch_size = 4\n", kConvolutions, {once(kInit)}},
      {"gradient_clipping",
       "clipping_type = 'norm'\nclipping_threshold = 0.1\n",
       kImages,
       {{kAfterTrainBatch, 0, 49}}},
      {"gyro_dropout", "p = 0.3\nsigma = 8\ntau = 4\n", kDropout, {once(kFitStart)}},
      {"label_smoothing", "", kImages, {{kBeforeLoss, 0, 49}, {kAfterLoss, 0, 49}}},
      {"layer_freezing", "freeze_start = 0.0\n", kConvolutions, {{kEpochEnd, 25, 50, 25}}},
      {"low_precision_groupnorm", "", kGroupNorms, {once(kInit)}, kAmp},
      {"low_precision_layernorm", "apply_at = 'after_load'\n", kHiddenText, {once(kAfterLoad)}, kAmp},
      {"mixup", "alpha = 0.5\n", kImages, {{kBeforeForward, 0, 49}, {kBeforeLoss, 0, 49}}},
      {"no_op_model", "", kSlowImages, {once(kInit)}},
      {"progressive_resizing", "delay_fraction = 0.2\n", kConvolutions, {{kAfterDataloader, 0, 49}}},
      {"randaugment", "severity = 3\n", kImages, {once(kFitStart)}},
      {"sam", "rho = 0.1\ninterval = 2\n", kImages, {once(kAfterLoad)}},
      {"selective_backprop", "", kImages, {{kAfterDataloader, 25, 43, 2}}},
      {"seq_length_warmup", "duration = 0.5\nmax_seq_length = 32\n", kText, {{kAfterDataloader, 0, 49}}},
      {"stochastic_depth",
       "target_layer_name = 'BasicBlock'\ndrop_warmup = '30ba'\n",
       kResidual,
       {once(kInit), {kBatchStart, 0, 49}}},
      {"squeeze_excite", "min_channels = 16\nlatent_channels = 0.25\n", kConvolutions, {once(kInit)}},
      {"swa",
       "swa_start = '20ba'\nswa_end = '40ba'\nupdate_interval = '5ba'\nschedule_swa_lr = true\n",
       kImages,
       {once(kBeforeLoad), {kBatchEnd, 20, 40}}},
      {"weight_standardization", "", kConvolutions, {once(kInit)}},
  };
  return rows;
}

}  // namespace tutti

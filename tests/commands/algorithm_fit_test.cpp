#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "commands/check.h"
#include "commands/local_train.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// An algorithm that does not fit the model or the data, and its error, at the line of `named`.
struct Misfit {
  std::string name, algorithm, model, data, said;
  std::string named = "[[algorithms]]";
  std::string train = "";
};

void PrintTo(const Misfit& misfit, std::ostream* out) { *out << misfit.name; }

const std::string kConvNet =
    "kind = 'sequential'\nlayers = ['Conv2d(1, 4, kernel_size=3)', 'ReLU()', 'MaxPool2d(kernel_size=2)', "
    "'AdaptiveAvgPool2d(output_size=1)', 'Flatten()', 'Linear(4, 10)']\n";
const std::string kNormNet =
    "kind = 'sequential'\nlayers = ['BatchNorm2d(1)', 'Flatten()', 'Linear(64, 10)']\n";
const std::string kMlp = "kind = 'mlp'\nhidden = [8]\n";
const std::string kGpt = "kind = 'gpt'\nn_embd = 8\nn_layer = 1\nn_head = 1\n";
const std::string kImages = "shape = [1, 8, 8]\n";
const std::string kTokens = "shape = [16]\ntargets = 'sequence'\n";
const std::string kRejected = "the model rejects such a batch";

const std::string kResizing = "kind = 'progressive_resizing'\nsize_increment = 1\n";
const std::string kColOut = "kind = 'colout'\np_row = 0.5\np_col = 0.5\n";
const std::string kSelection = "kind = 'selective_backprop'\nscale_factor = 0.5\n";
const std::string kGhosts = "kind = 'ghost_batchnorm'\nghost_batch_size = 3\n";
const std::string kAsComposer = "[compat]\ncomposer = true\n";

const std::vector<Misfit> kMisfits = {
    {"MixUpOfTokens", "kind = 'mixup'", kGpt, kTokens, "inputs that are Long cannot be mixed"},
    {"MixUpWithoutItsArray", "kind = 'mixup'\ninput_key = 'image'", kMlp, kImages, "no 'image' in the batch"},
    {"MixUpByAWrongKey", "kind = 'mixup'\ntarget_key = -1", kMlp, kImages,
     "algorithms.0.target_key = -1: expected the name of an array, or its number", "target_key"},
    {"CutMixOfVectors", "kind = 'cutmix'", kMlp, "shape = [64]\n", "expected images [C, H, W], found [64]"},
    {"CutOutOfTokens", "kind = 'cutout'", kGpt, kTokens, "expected images [C, H, W], found [16]"},
    {"ColOutOfTokens", "kind = 'colout'", kGpt, kTokens, "expected images [C, H, W], found [16]"},
    {"ColOutForAnMlp", "kind = 'colout'", kMlp, kImages, kRejected},
    {"ColOutOfAllColumns", "kind = 'colout'\np_col = 1", kConvNet, kImages,
     "nothing of 'input' would be left"},
    {"ColOutOfSingleImagesForAnMlp", "kind = 'colout'\nbatch = false", kMlp, kImages, kRejected},
    {"ColOutOfSingleVectors", "kind = 'colout'\nbatch = false", kMlp, "shape = [64]\n", "expected images"},
    {"ColOutOfSingleImagesAndTargets", "kind = 'colout'\nbatch = false\nresize_target = true", kConvNet,
     kImages, "algorithms.0.resize_target = true: targets lose rows and columns with batch = true only",
     "resize_target"},
    {"ResizingForAnMlp", "kind = 'progressive_resizing'", kMlp, kImages, kRejected},
    {"ResizingBelowTheNet", "kind = 'progressive_resizing'\ninitial_scale = 0.25\nsize_increment = 1",
     kConvNet, kImages, kRejected},
    {"ResizingToNothing", "kind = 'progressive_resizing'\ninitial_scale = 0\nmode = 'crop'", kConvNet,
     kImages, "nothing of 'input' would be left"},
    {"ResizingLabels", "kind = 'progressive_resizing'\nresize_targets = true", kConvNet, kImages,
     "targets without a height and a width cannot be resized"},
    {"ResizingWithoutTime", "kind = 'progressive_resizing'\ndelay_fraction = 0.9", kConvNet, kImages,
     "algorithms.0.delay_fraction = 0.9: together with finetune_fraction", "delay_fraction"},
    {"LoraOfOtherLayers", "kind = 'lora'\ntargets = ['q_proj']", kGpt, kTokens,
     "no Linear and no Conv1D is called 'q_proj'; there are c_attn, c_fc, c_proj"},
    {"LoraWithoutTargets", "kind = 'lora'", kMlp, kImages, "there is no default for this model"},
    {"GyroDropoutWithoutTime", "kind = 'gyro_dropout'", kMlp, kImages,
     "sigma = 256 masks are more than the training has steps: 4"},
    {"SmoothingOfTokens", "kind = 'label_smoothing'", kGpt, kTokens, "the loss of Gpt takes no such targets"},
    {"SmoothingOfValues", "kind = 'label_smoothing'", kMlp + "loss = 'l1'\n", kImages,
     "the loss of Mlp takes no such targets"},
    {"MixUpOfValues", "kind = 'mixup'", kMlp + "loss = 'mse'\n", kImages,
     "the loss of Mlp takes no such targets; interpolate_loss = true mixes losses instead"},
    {"SmoothingOfNoModel", "kind = 'no_op_model'\n[[algorithms]]\nkind = 'label_smoothing'", kMlp, kImages,
     "the loss of NoOpModelClass takes no such targets", "[[algorithms]]\nkind = 'label_smoothing'"},
    {"BlurringNothing", "kind = 'blurpool'\nreplace_convs = false\nreplace_maxpools = false", kConvNet,
     kImages, "algorithms.0.replace_maxpools = false: with replace_convs = false too", "replace_maxpools"},
    {"BlurringToAnotherSize", "kind = 'blurpool'",
     "kind = 'sequential'\nlayers = ['MaxPool2d(2, ceil_mode=True)', 'Flatten()', 'Linear(16, 10)']\n",
     "shape = [1, 7, 7]\n", kRejected},
    {"ExcitationOfNoChannel", "kind = 'squeeze_excite'\nmin_channels = 1\nlatent_channels = 0.1", kConvNet,
     kImages, "latent_channels leaves no channel of 4"},
    {"TwoAverages", "kind = 'ema'\n[[algorithms]]\nkind = 'ema'", kMlp, kImages,
     "EMA cannot be combined with EMA: evaluations use one average"},
    {"SelectionByTinyImages", "kind = 'selective_backprop'\nscale_factor = 0.25", kConvNet, kImages,
     kRejected},
    {"WarmupOfLabels", "kind = 'seq_length_warmup'\nmax_seq_length = 16\nduration = 1", kMlp,
     "shape = [64]\n", "'target' is [1], not [N, length]"},
    {"WarmupInOneStep", "kind = 'seq_length_warmup'", kGpt, kTokens, "127 steps of the length in 1 batches"},
    {"WarmupToTheSameLength", "kind = 'seq_length_warmup'\nmax_seq_length = 15", kGpt, kTokens,
     "algorithms.0.max_seq_length = 15: expected min_seq_length and one step_size at least",
     "max_seq_length"},
    {"ResizingAfterColOut", kResizing + "[[algorithms]]\n" + kColOut, kConvNet, kImages,
     "after ColOut: " + kRejected},
    {"ColOutAfterResizing", kColOut + "[[algorithms]]\n" + kResizing, kConvNet, kImages,
     "after ProgressiveResizing: " + kRejected},
    {"ResizingOfTransformedImages", kColOut + "batch = false\n[[algorithms]]\n" + kResizing, kConvNet,
     kImages, "after ColOut: " + kRejected, "[[algorithms]]\n" + kResizing},
    {"SelectionBySmallImagesAfterColOut", kColOut + "[[algorithms]]\n" + kSelection + kAsComposer, kConvNet,
     kImages, "after ColOut: " + kRejected, "[[algorithms]]\n" + kSelection},
    {"TwoClimbs", "rho = 0.1\nkind = 'sam'\n[[algorithms]]\nkind = 'sam'", kMlp, kImages,
     "SAM cannot be combined with SAM: only one algorithm", "[[algorithms]]\nkind = 'sam'"},
    {"GhostsInMicrobatches", kGhosts + kAsComposer, kNormNet, kImages,
     "a rank gets 2 samples in a batch or a microbatch, fewer than ghost_batch_size = 3", "[[algorithms]]",
     "grad_accum = [[0, 1], [2, 2]]\n"},
    {"GhostsInParts", kGhosts + kAsComposer, kNormNet, kImages, "a rank gets 1 samples in a batch",
     "[[algorithms]]", "device_train_microbatch_size = 3\n"}};

const std::vector<Misfit> kFits = {
    {"Resizing", kResizing, kConvNet, kImages, ""},
    {"ColOut", kColOut, kConvNet, kImages, ""},
    {"SelectionBySmallImagesBeforeColOut", kColOut + "[[algorithms]]\n" + kSelection, kConvNet, kImages, ""},
    {"GhostsInMicrobatches", kGhosts, kNormNet, kImages, "", "", "grad_accum = 2\n"},
    {"GhostsOfComposer", kGhosts + kAsComposer, kNormNet, kImages, ""},
    {"GhostsInMicrobatchesThatNeverCome", kGhosts + kAsComposer, kNormNet, kImages, "", "",
     "grad_accum = [[0, 1], [1000, 4]]\n"},
    {"SelectionOfOne", "kind = 'selective_backprop'\nkeep = 0.2\nstart = 0.0", kConvNet, kImages, ""},
    {"SelectionByTheLossesOfBert", "kind = 'selective_backprop'",
     "kind = 'bert_mlm'\nvocab_size = 16\nhidden_size = 8\nnum_hidden_layers = 1\n"
     "num_attention_heads = 1\nintermediate_size = 8\n",
     "shape = [16]\nvocab = 16\ntargets = 'sequence'\n", ""}};

std::string misfit_text(const Misfit& misfit) {
  return "seed = 1\n[model]\n" + misfit.model +
         "[data.train]\nkind = 'synthetic'\nsamples = 16\nbatch_size = 4\n" + misfit.data +
         "[optimizer]\nkind = 'sgd'\nlr = 0.1\n[train]\nmax_duration = '1ep'\n" + misfit.train +
         "[[algorithms]]\n" + misfit.algorithm + "\n";
}

Setting misfit_recipe(const Misfit& misfit) {
  return resolve_recipe(parse_recipe(misfit_text(misfit), "misfit.toml"));
}

std::string place_of(const Misfit& misfit) {
  const std::string text = misfit_text(misfit);
  const auto named = text.begin() + static_cast<std::ptrdiff_t>(text.find(misfit.named));
  return "misfit.toml:" + std::to_string(1 + std::count(text.begin(), named, '\n')) + ": ";
}

class AlgorithmFit : public testing::TestWithParam<Misfit> {};

TEST_P(AlgorithmFit, IsCheckedBeforeTraining) {
  const auto check = [] { check_text(misfit_recipe(GetParam())); };
  EXPECT_THAT(check, testing::ThrowsMessage<UserError>(
                         AllOf(StartsWith(place_of(GetParam())), HasSubstr(GetParam().said))));
}

INSTANTIATE_TEST_SUITE_P(All, AlgorithmFit, testing::ValuesIn(kMisfits),
                         [](const auto& info) { return info.param.name; });

TEST(AlgorithmFitOfWhatFits, IsNoError) {
  for (const Misfit& fit : kFits) EXPECT_NO_THROW(check_text(misfit_recipe(fit))) << fit.name;
}

TEST(AlgorithmFitInTraining, IsCheckedToo) {
  Scratch folder;
  LocalRunOptions options;
  options.ranks = 2;
  options.quiet = true;
  options.run_dir = folder.path("run");
  const auto train = [&] { train_in_one_process(misfit_recipe(kMisfits[0]), options); };
  EXPECT_THAT(train, testing::ThrowsMessage<UserError>(HasSubstr(kMisfits[0].said)));
}

}  // namespace
}  // namespace tutti

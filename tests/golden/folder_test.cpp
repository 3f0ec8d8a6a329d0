#include <gtest/gtest.h>

#include <filesystem>

#include "tests/golden/golden_file.h"
#include "tests/golden/not_built.h"

namespace tutti {
namespace {

const std::set<std::string> kTested = {"alibi.h5",
                                       "augmentation_primitives.h5",
                                       "augmix.h5",
                                       "blurpool.h5",
                                       "callbacks.json",
                                       "channels_last.h5",
                                       "colout.h5",
                                       "cutmix.h5",
                                       "cutout.h5",
                                       "ema.h5",
                                       "events.json",
                                       "factorize.h5",
                                       "gated_linear_units.h5",
                                       "ghost_batchnorm.h5",
                                       "gradient_clipping.h5",
                                       "gyro_dropout.h5",
                                       "label_smoothing.h5",
                                       "layer_freezing.h5",
                                       "losses.h5",
                                       "low_precision_norms.h5",
                                       "metrics.h5",
                                       "mixup.h5",
                                       "no_op_model.h5",
                                       "optimizers.h5",
                                       "progressive_resizing.h5",
                                       "randaugment.h5",
                                       "sam.h5",
                                       "schedulers.h5",
                                       "selective_backprop.h5",
                                       "seq_length_warmup.h5",
                                       "squeeze_excite.h5",
                                       "stochastic_depth.h5",
                                       "swa.h5",
                                       "time.json",
                                       "trainer.h5",
                                       "weight_standardization.h5"};

// The one table of what is not built yet: files, parts of files, algorithms that cases train with.
const std::set<std::string> kNotBuilt = {};

std::set<std::string> data_files() {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    const std::string kind = entry.path().extension();
    if (kind == ".h5" || kind == ".json") found.insert(entry.path().filename());
  }
  // PyTorch's and Pillow's values, which are read from this folder whatever another one has.
  for (const char* file :
       {"diffusion_noise.h5", "diffusion_unets.h5", "exported.h5", "images.h5", "interactions.h5",
        "interactions_text.h5", "models.h5", "scripts.h5", "sequential.h5", "torch_losses.h5",
        "torch_metrics.h5", "torch_optimizers.h5", "torch_schedulers.h5", "unets.h5"})
    found.erase(file);
  return found;
}

}  // namespace

bool is_not_built(const std::string& what) { return kNotBuilt.contains(what); }

namespace {

TEST(GoldenFolder, HoldsNothingThatNoTestKnows) {
  for (const std::string& file : data_files())
    EXPECT_TRUE(kTested.contains(file) || is_not_built(file)) << file;
}

// Another folder may hold a part of the data, but not none of it.
TEST(GoldenFolder, HoldsWhatIsTested) {
  size_t held = 0;
  for (const std::string& file : data_files()) held += kTested.count(file);
  if (is_own_folder())
    EXPECT_EQ(held, kTested.size());
  else
    EXPECT_GT(held, 0U) << golden_folder();
}

class GoldenFile : public testing::TestWithParam<std::string> {};

TEST_P(GoldenFile, HoldsCases) {
  const std::string path = golden_path(GetParam());
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "not in " << golden_folder();
  EXPECT_TRUE(path.ends_with(".json") || !golden_cases(path).empty()) << path;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenFile, testing::ValuesIn(kTested),
                         [](const auto& info) { return info.param.substr(0, info.param.find('.')); });

}  // namespace
}  // namespace tutti

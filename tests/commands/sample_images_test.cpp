#include "commands/sample_images.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>

#include "commands/export.h"
#include "commands/local_train.h"
#include "data/images/decoder.h"
#include "io/hdf5/hdf5.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::HasSubstr;

const std::string kDiffusion =
    "seed = 3\n[model]\nkind = 'diffusion_unet'\nsample_size = 8\nblock_out_channels = [4, 4]\n"
    "down_block_types = ['DownBlock2D', 'AttnDownBlock2D']\nup_block_types = ['AttnUpBlock2D', 'UpBlock2D']\n"
    "layers_per_block = 1\nnorm_num_groups = 2\nattention_head_dim = 2\nnum_train_timesteps = 20\n"
    "[data.train]\nkind = 'hdf5'\narrays = ['input']\npath = '" TUTTI_SOURCE_DIR
    "/examples/data/digits.h5'\ngroup = 'train'\nbatch_size = 6\n"
    "[optimizer]\nkind = 'adam'\nlr = 0.01\n[train]\nmax_duration = '3ba'\n";

class SampleImagesTest : public testing::Test {
 protected:
  Setting train(const std::string& more = "") {
    LocalRunOptions options;
    options.quiet = true;
    options.run_dir = run_;
    const Setting recipe = recipe_of(kDiffusion + more);
    EXPECT_EQ(train_in_one_process(recipe, options).exit_code, 0);
    return recipe;
  }
  at::Tensor images(const std::string& sampler, uint64_t seed) {
    const std::string file = folder_.path("images.h5");
    sample_images({.path = run_, .output = file, .samples = 3, .steps = 4, .sampler = sampler, .seed = seed});
    return Hdf5File(file).read("images");
  }
  std::string refused(const SampleImagesOptions& options) {
    return message_of<UserError>([&] { sample_images(options); });
  }

  Scratch folder_;
  std::string run_ = folder_.path("run");
};

TEST_F(SampleImagesTest, GivesTheSameBitsForASeed) {
  train();
  for (const char* sampler : {"ddim", "ddpm"}) {
    const at::Tensor first = images(sampler, 1);
    EXPECT_EQ(first.sizes(), at::IntArrayRef({3, 1, 8, 8}));
    EXPECT_TRUE(at::equal(images(sampler, 1), first));
    EXPECT_FALSE(at::equal(images(sampler, 2), first));
  }
  EXPECT_FALSE(at::equal(images("ddpm", 1), images("ddim", 1)));
}

TEST_F(SampleImagesTest, DrawsWithTheAveragesThatEvaluationsUse) {
  train("[[algorithms]]\nkind = 'ema'\nhalf_life = '1000ba'\nupdate_interval = '1ba'\n");
  const at::Tensor averaged = images("ddim", 1);
  std::filesystem::remove_all(run_);
  train();
  EXPECT_FALSE(at::equal(images("ddim", 1), averaged));
}

TEST_F(SampleImagesTest, AGridHasRowsOfEnlargedImages) {
  train();
  const std::string file = folder_.path("images.png");
  EXPECT_THAT(sample_images({.path = run_, .output = file, .samples = 5, .steps = 2}),
              HasSubstr("5 images by 2 steps of ddim written to"));
  const std::string bytes = read_text(file);
  const at::Tensor grid = decode_image(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(grid.size(0), 2 * 50 + 2);
  EXPECT_EQ(grid.size(1), 3 * 50 + 2);
  EXPECT_EQ(grid.narrow(0, 52, 50).narrow(1, 102, 50).max().item<int>(), 0) << "no sixth image";
}

TEST_F(SampleImagesTest, RefusesOtherRunsFilesAndTooManySteps) {
  train();
  EXPECT_THAT(refused({.path = run_, .output = "a.gif"}), HasSubstr(".png or .h5"));
  EXPECT_THAT(refused({.path = run_, .output = folder_.path("a.png"), .steps = 21}),
              HasSubstr("--steps = \"21\": expected at most 20"));
}

// The folder that is exported is the model of kind = "hf".
TEST_F(SampleImagesTest, ARunGoesThroughAFolderOfDiffusers) {
  train();
  const at::Tensor before = images("ddim", 1);
  const std::string folder = folder_.path("pipeline");
  export_text({.path = run_, .to_hf = folder});
  const std::string section = kDiffusion.substr(0, kDiffusion.find("[model]")) +
                              "[model]\nkind = 'hf'\npath = '" + folder + "'\n" +
                              kDiffusion.substr(kDiffusion.find("[data.train]"));
  const std::string text =
      section.substr(0, section.find("lr = 0.01")) + "lr = 0.0\n" + section.substr(section.find("[train]"));
  std::filesystem::remove_all(run_);
  LocalRunOptions options;
  options.quiet = true;
  options.run_dir = run_;
  EXPECT_EQ(train_in_one_process(recipe_of(text), options).exit_code, 0);
  EXPECT_TRUE(at::equal(images("ddim", 1), before));
}

}  // namespace
}  // namespace tutti

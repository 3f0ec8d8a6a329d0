// U-Nets in whole runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "commands/check.h"
#include "commands/export.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "commands/predict.h"
#include "io/formats/png.h"
#include "io/hdf5/hdf5.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

class UnetRun : public testing::Test {
 protected:
  static std::string text(const std::string& model, const std::string& group, const std::string& more) {
    return "seed = 3\n[model]\n" + model +
           "[data.train]\nkind = 'hdf5'\npath = '" TUTTI_SOURCE_DIR "/examples/data/targets.h5'\ngroup = '" +
           group + "/train'\nbatch_size = 16\n[optimizer]\nkind = 'adam'\nlr = 0.01\n" + more;
  }
  static std::string unet(const std::string& name, const std::string& more) {
    return text("kind = '" + name +
                    "'\nencoder_name = 'resnet18'\nencoder_width = 2\nencoder_depth = 3\n"
                    "decoder_channels = [8, 6, 4]\n" +
                    more,
                "masks", "[train]\nmax_duration = '3ba'\n");
  }
  // The digest of the weights that the recipe ends with.
  std::string trained(const std::string& recipe, int ranks = 1) {
    run_ = folder_.path(std::to_string(++runs_));
    LocalRunOptions options{.ranks = ranks, .run_dir = run_, .quiet = true};
    EXPECT_EQ(train_in_one_process(recipe_of(recipe), options).exit_code, 0);
    return inspect_digest(run_);
  }
  std::map<std::string, at::Tensor> exported(const std::string& file) const {
    export_text({.path = run_, .to = folder_.path(file)});
    return read_weights(folder_.path(file));
  }

  Scratch folder_;
  std::string run_;  // the newest
  int runs_ = 0;
};

TEST_F(UnetRun, TrainsByTheNameOfItsClass) {
  EXPECT_EQ(trained(unet("Unet", "")), trained(unet("unet", "")));
}

TEST_F(UnetRun, EveryStrategyTrainsToTheSameBitsWithCheckpointedBlocks) {
  for (const std::string precision : {"fp32", "amp_bf16"}) {
    std::set<std::string> digests;
    for (const std::string strategy : {"none", "optimizer", "gradients", "full", "hybrid"}) {
      const std::string checkpointing = strategy == "none" ? "" : "activation_checkpointing = true\n";
      const std::string shards = strategy == "hybrid" ? "shard_size = 2\n" : "";
      digests.insert(trained(unet("unet", "") + "precision = '" + precision + "'\n[sharding]\nstrategy = '" +
                                 strategy + "'\n" + shards + checkpointing,
                             4));
    }
    EXPECT_EQ(digests.size(), 1U) << precision;
  }
}

TEST_F(UnetRun, TakesAResNetsWeightsIntoItsEncoder) {
  trained(text("kind = 'resnet'\ndepth = 18\nwidth = 2\nloss = 'bce_with_logits'\n", "labels",
               "[train]\nmax_duration = '1ba'\n"));
  const auto resnet = exported("resnet.safetensors");
  trained(unet("unet", "weights = '" + folder_.path("resnet.safetensors") +
                           "'\nweights_rename = { '*' = 'encoder.*' }\nfreeze = ['encoder.*']\n"
                           "weights_ignore = ['fc.*', 'decoder.*', 'segmentation_head.*']\n"));
  const auto unet = exported("unet.safetensors");
  int read = 0;
  for (const auto& [name, tensor] : resnet) {
    if (name.starts_with("fc.") || !name.ends_with("weight")) continue;
    EXPECT_TRUE(tensor.equal(unet.at("encoder." + name))) << name;
    ++read;
  }
  EXPECT_EQ(read, 20 + 20) << "convolutions and norms";
}

TEST_F(UnetRun, PredictsMasksOfPicturesOfAnotherSizeThanInTraining) {
  for (const char* name : {"images", "masks"}) std::filesystem::create_directory(folder_.path(name));
  for (const char* name : {"0.png", "1.png"}) {
    write_text(folder_.path(std::string("images/") + name),
               png(std::vector<uint8_t>(32 * 32 * 3, 7), 32, 32, 3));
    write_text(folder_.path(std::string("masks/") + name), png(std::vector<uint8_t>(32 * 32, 1), 32, 32, 1));
  }
  const auto section = [&](const std::string& part, const std::string& crop) {
    return "[data." + part + "]\nkind = 'image_folder'\npath = '" + folder_.path("images") + "'\nmasks = '" +
           folder_.path("masks") + "'\nmean = 0.5\nstd = 0.5\nbatch_size = 2\nmask_values = [0, 1]\n[[data." +
           part + ".transforms]]\nkind = 'center_crop'\nsize = " + crop + "\n";
  };
  const std::string head =
      "seed = 3\n[model]\nkind = 'unet'\nencoder_name = 'resnet18'\nencoder_width = 2\nencoder_depth = 3\n"
      "decoder_channels = [8, 6, 4]\n" +
      section("train", "16") + "[optimizer]\nkind = 'adam'\n[train]\nmax_duration = '1ba'\n";
  trained(head + section("eval", "32"));
  const std::string h5 = folder_.path("out.h5");
  predict_text(recipe_of(head + section("eval", "32")),
               {.checkpoint = run_, .data = folder_.path("images"), .out = h5});
  EXPECT_EQ(Hdf5File(h5).read("output").sizes(), (Shape{2, 2, 32, 32}));
  const std::string other = section("eval", "32"), values = "mask_values = [0, 1]";
  std::string turned = other;
  turned.replace(turned.find(values), values.size(), "mask_values = [1, 0]");
  EXPECT_THAT([&] { check_text(recipe_of(head + turned), {}); },
              testing::ThrowsMessage<UserError>(testing::AllOf(
                  testing::HasSubstr("data.eval.mask_values = [1, 0]: expected the classes of [data.train]"),
                  testing::HasSubstr("mask_values = [0, 1]"))));
}

TEST_F(UnetRun, PredictsMasksOfClasses) {
  const std::string recipe = unet("unet", "") + "[data.eval]\nkind = 'hdf5'\npath = '" TUTTI_SOURCE_DIR
                                                "/examples/data/targets.h5'\ngroup = 'masks/train'\n";
  trained(recipe);
  const std::string h5 = folder_.path("out.h5"), csv = folder_.path("out.csv");
  predict_text(recipe_of(recipe), {.checkpoint = run_, .out = h5});
  predict_text(recipe_of(recipe), {.checkpoint = run_, .out = csv});
  EXPECT_THAT(read_text(csv), testing::StartsWith("row,mask\n1,out_masks/1.png\n2,out_masks/2.png\n"));
  const at::Tensor mask = Hdf5File(h5).read("output")[1].argmax(0).to(at::kByte).contiguous();
  EXPECT_GT(mask.max().item<int>(), 0) << "all are background: this proves nothing";
  const std::span pixels(mask.const_data_ptr<uint8_t>(), static_cast<std::size_t>(mask.numel()));
  EXPECT_EQ(read_text(folder_.path("out_masks/2.png")), png(pixels, mask.size(0), mask.size(1), 1));
  EXPECT_THAT([&] { predict_text(recipe_of(recipe), {.checkpoint = run_, .out = csv}); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("out_masks, exists already")));
}

}  // namespace
}  // namespace tutti

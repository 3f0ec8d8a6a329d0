#include "models/zoo/unet.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "recipe/resolve.h"
#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using GivenKeys = std::vector<std::pair<std::string, Setting::Value>>;

const UnetOptions kSmallUnet{.encoder_name = "resnet18",
                             .encoder_width = 2,
                             .encoder_depth = 3,
                             .decoder_channels = {5, 4, 3},
                             .in_channels = 1,
                             .classes = 3};

SampleSpec masks(const Shape& image, const Shape& mask, at::ScalarType dtype, int64_t classes = 0) {
  return {{{"input", image}, {"target", mask}}, classes, {{"input", at::kFloat}, {"target", dtype}}};
}

// [model] kind = "unet" with these keys, at a depth of 3.
std::shared_ptr<Model> made(GivenKeys keys, const SampleSpec& samples) {
  keys.insert(keys.begin(), {{"kind", std::string("unet")},
                             {"encoder_name", std::string("resnet18")},
                             {"encoder_width", int64_t{1}},
                             {"encoder_depth", int64_t{3}}});
  if (std::ranges::find(keys, "decoder_channels", &GivenKeys::value_type::first) == keys.end())
    keys.emplace_back("decoder_channels", list_value({int64_t{4}, int64_t{3}, int64_t{2}}));
  return make_model(resolve_section(model_catalog(), section_with(std::move(keys)), {}), samples);
}

std::string unet_refusal(const GivenKeys& keys, const SampleSpec& samples) {
  return message_of<UserError>([&] { made(keys, samples); });
}

// Of the scores of a pixel.
int64_t classes_of(const std::shared_ptr<Model>& model) {
  return parameters(*model).back().parameter->tensor.size(0);
}

TEST(UnetTest, HasTheClientsSizesByDefault) {
  Unet model({});
  double numbers = 0;
  for (const NamedParameter& one : parameters(model))
    numbers += static_cast<double>(one.parameter->tensor.numel());
  EXPECT_EQ(numbers, 24'436'369) << "segmentation_models_pytorch.Unet()";
}

// The client's initial values, in bounds and deviation: uniform numbers in [-b, b) deviate by b / sqrt(3).
TEST(UnetTest, StartsAsTheClientDoes) {
  UnetOptions options = kSmallUnet;
  options.decoder_channels = {32, 24, 16};
  Unet model(options);
  materialise(model, 1);
  const auto expect_uniform = [&](const std::string& name, double fans, double factor) {
    for (const NamedParameter& one : parameters(model)) {
      if (one.name != name) continue;
      const double bound = std::sqrt(factor / fans);
      EXPECT_LT(one.parameter->tensor.abs().max().item<double>(), bound);
      EXPECT_NEAR(one.parameter->tensor.std().item<double>(), bound / std::sqrt(3.0), 0.05 * bound) << name;
      return;
    }
    FAIL() << name;
  };
  expect_uniform("decoder.blocks.1.conv1.0.weight", (32 + 2) * 9, 6.0);
  expect_uniform("segmentation_head.0.weight", (16 + 3) * 9, 6.0);
  EXPECT_EQ(parameters(model).back().name, "segmentation_head.0.bias");
  EXPECT_EQ(parameters(model).back().parameter->tensor.abs().max().item<double>(), 0.0);
}

TEST(UnetTest, LeavesStagesThatItDoesNotCallAsTheyAre) {
  Unet model(kSmallUnet);
  materialise(model, 1);
  Batch batch;
  batch.set("input", at::randn({2, 1, 16, 8}));
  model.forward(batch).tensor().sum().backward();
  int untrained = 0;
  for (const NamedParameter& one : parameters(model)) {
    const bool called = !one.name.starts_with("encoder.layer3.") && !one.name.starts_with("encoder.layer4.");
    EXPECT_EQ(one.parameter->tensor.grad().defined(), called) << one.name;
    EXPECT_EQ(one.parameter->tensor.requires_grad(), called) << one.name;
    untrained += called ? 0 : 1;
  }
  EXPECT_EQ(untrained, 2 * 15);
}

TEST(UnetTest, ScoresTheClassesOfTheDataOrOfTheRecipe) {
  const SampleSpec three = masks({1, 16, 8}, {16, 8}, at::kLong, 3);
  EXPECT_EQ(classes_of(made({}, three)), 3);
  EXPECT_EQ(classes_of(made({{"classes", int64_t{4}}}, three)), 4);
  EXPECT_EQ(classes_of(made({{"num_classes", int64_t{4}}}, three)), 4);
  EXPECT_THAT(unet_refusal({{"classes", int64_t{2}}}, three),
              HasSubstr("classes = 2: it ends in 2 scores a sample; the data has targets up to 2"));
  EXPECT_THAT(unet_refusal({}, masks({1, 16, 8}, {16, 8}, at::kLong)), HasSubstr("classes is needed"));
}

TEST(UnetTest, ScoresMasksOfOneLabelOrSeveral) {
  const GivenKeys bce = {{"loss", std::string("bce_with_logits")}};
  const GivenKeys one = {{"loss", std::string("bce_with_logits")}, {"classes", int64_t{1}}};
  EXPECT_EQ(classes_of(made(one, masks({1, 16, 8}, {16, 8}, at::kLong, 2))), 1);
  EXPECT_EQ(classes_of(made(bce, masks({1, 16, 8}, {16, 8}, at::kLong, 2))), 2);
  EXPECT_EQ(classes_of(made(bce, masks({1, 16, 8}, {16, 8}, at::kFloat))), 1);
  EXPECT_EQ(classes_of(made(bce, masks({1, 16, 8}, {5, 16, 8}, at::kByte, 2))), 5);
  EXPECT_EQ(classes_of(made({{"loss", std::string("mse")}}, masks({1, 16, 8}, {2, 16, 8}, at::kFloat))), 2);
  EXPECT_TRUE(made(one, masks({1, 16, 8}, {16, 8}, at::kLong, 2))->get_metrics(false).empty());
  EXPECT_FALSE(made(bce, masks({1, 16, 8}, {16, 8}, at::kLong, 2))->get_metrics(false).empty());
  EXPECT_THAT(unet_refusal({{"classes", int64_t{1}}}, masks({1, 16, 8}, {16, 8}, at::kLong, 2)),
              HasSubstr("the data has targets up to 1"));
}

TEST(UnetTest, TakesImagesThatItCannotHalve) {
  for (const Shape& image : {Shape{1, 12, 16}, Shape{1, 5, 21}, Shape{1, 1, 1}}) {
    const auto model = made({}, masks(image, {image[1], image[2]}, at::kLong, 2));
    materialise(*model, 1);
    const Batch batch({{"input", at::ones({2, 1, image[1], image[2]})}});
    EXPECT_EQ(model->forward(batch).tensor().sizes(), (Shape{2, 2, image[1], image[2]}));
  }
}

TEST(UnetTest, RefusesTargetsOfOtherSizes) {
  const std::string said = unet_refusal({}, masks({1, 16, 8}, {8, 16}, at::kLong, 2));
  EXPECT_THAT(said,
              HasSubstr("it ends in [2, 16, 8] a sample, not in scores of classes for each of [8, 16]"));
}

TEST(UnetTest, RefusesAnotherNumberOfDecoderBlocks) {
  EXPECT_THAT(unet_refusal({{"decoder_channels", list_value({int64_t{4}, int64_t{3}})}},
                           masks({1, 16, 8}, {16, 8}, at::kLong, 2)),
              HasSubstr("expected 3 numbers, as encoder_depth says"));
}

}  // namespace
}  // namespace tutti

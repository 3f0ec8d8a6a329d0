#include "models/zoo/diffusion_unet.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/diffusion/sampler.h"
#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "recipe/resolve.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

DiffusionUnetOptions small_unet() {
  DiffusionUnetOptions options;
  options.sample_size = 4;
  options.in_channels = 1;
  options.block_out_channels = {4};
  options.down_block_types = {"DownBlock2D"};
  options.up_block_types = {"UpBlock2D"};
  options.layers_per_block = 1;
  options.norm_num_groups = 2;
  options.attention_head_dim = 2;
  return options;
}

class DiffusionUnetTest : public testing::Test {
 protected:
  DiffusionUnetTest() : model_(small_unet()) { materialise(model_, 1); }

  Outputs trained(const at::Tensor& images, int64_t step, int64_t first_sample) {
    ForwardContext context;
    context.first_sample = first_sample;
    context.source = [step](std::string_view name, int64_t place) {
      return make_draws(7, {.name = name, .step = step, .place = place});
    };
    const ContextScope scope(model_, context);
    return model_.forward(TensorTree::Children{{"input", images}});
  }
  Outputs evaluated(const at::Tensor& images) {
    const EvaluationMode evaluating(model_);
    return model_.forward(TensorTree::Children{{"input", images}});
  }

  DiffusionUnet model_;
  at::Tensor images_ = at::rand({6, 1, 4, 4}) * 2 - 1;
};

TEST_F(DiffusionUnetTest, TrainsASampleWithTheNoiseOfItsPlaceInTheGlobalBatch) {
  const Outputs whole = trained(images_, 3, 0), rest = trained(images_.narrow(0, 2, 4), 3, 2);
  EXPECT_TRUE(at::equal(rest["target"], whole["target"].narrow(0, 2, 4)));
  EXPECT_TRUE(at::allclose(rest["prediction"], whole["prediction"].narrow(0, 2, 4), 1e-5, 1e-6));
  EXPECT_FALSE(at::equal(trained(images_, 4, 0)["target"], whole["target"]));
}

TEST_F(DiffusionUnetTest, EvaluatesAnImageWithTheSameNoiseInEveryBatch) {
  const at::Tensor order = at::tensor(std::vector<int64_t>{4, 1, 3});
  const Outputs all = evaluated(images_), some = evaluated(images_.index_select(0, order));
  EXPECT_TRUE(at::equal(some["target"], all["target"].index_select(0, order)));
  EXPECT_TRUE(at::allclose(some["prediction"], all["prediction"].index_select(0, order), 1e-5, 1e-6));
  EXPECT_FALSE(at::equal(all["target"][0], all["target"][1]));
}

TEST_F(DiffusionUnetTest, LossesOfSamplesHaveTheLossAsTheirMean) {
  const Outputs outputs = trained(images_, 1, 0);
  const at::Tensor losses = model_.losses(outputs, {});
  EXPECT_EQ(losses.sizes(), at::IntArrayRef({6}));
  EXPECT_TRUE(at::allclose(losses.mean(), model_.loss(outputs, {})));
}

TEST(DrawnNoise, IsNormalAndHasAllTimesteps) {
  const DrawnNoise drawn = drawn_noise(keys_of_places(RandomKey(3, "noise"), 0, 2000), {8}, 10);
  EXPECT_NEAR(drawn.noise.mean().item<double>(), 0, 0.03);
  EXPECT_NEAR(drawn.noise.std().item<double>(), 1, 0.03);
  const at::Tensor counts = at::bincount(drawn.timesteps);
  EXPECT_EQ(counts.numel(), 10);
  EXPECT_GT(counts.min().item<int64_t>(), 120);
}

// If the network knows the image, every sampler ends with it.
TEST(Sampler, EndsWithTheImageThatTheNetworkPredicts) {
  NoiseOptions noise;
  noise.prediction_type = PredictionType::kSample;
  const at::Tensor image = at::rand({1, 4, 4}) * 2 - 1;
  for (const SamplerKind sampler : {SamplerKind::kDdpm, SamplerKind::kDdim}) {
    const SamplingOptions options{.sampler = sampler, .steps = 7, .samples = 3, .seed = 2};
    const at::Tensor images =
        sampled(NoiseSchedule(noise), options, {1, 4, 4}, at::kCPU,
                [&](const at::Tensor& x, const at::Tensor&) { return image.expand_as(x); });
    EXPECT_EQ(images.sizes(), at::IntArrayRef({3, 1, 4, 4}));
    EXPECT_TRUE(at::allclose(images, image.expand_as(images), 1e-5, 1e-5));
  }
}

TEST(Sampler, GivesAnImageTheSameNoiseHoweverManyThereAre) {
  const auto predict = [](const at::Tensor& x, const at::Tensor&) { return x * 0.5; };
  const auto images = [&](int64_t count, uint64_t seed) {
    const SamplingOptions options{.sampler = SamplerKind::kDdpm, .steps = 5, .samples = count, .seed = seed};
    return sampled(NoiseSchedule(NoiseOptions()), options, {1, 4, 4}, at::kCPU, predict);
  };
  const at::Tensor many = images(70, 1);  // more than are made at once
  EXPECT_TRUE(at::equal(many.narrow(0, 0, 3), images(3, 1)));
  EXPECT_FALSE(at::equal(many[64], many[0]));
  EXPECT_FALSE(at::equal(images(3, 1), images(3, 2)));
  EXPECT_FALSE(at::equal(images(3, 1)[0], images(3, 1)[1]));
}

std::string refused(Setting::Table keys, Shape input = {1, 8, 8}) {
  keys.emplace_back("kind", Setting(std::string("diffusion_unet"), "model.kind", {}));
  const Setting section = resolve_section(model_catalog(), Setting(std::move(keys), "model", {}), {});
  return message_of<UserError>([&] {
    make_model(section, {{{"input", std::move(input)}}, 0, {{"input", at::kFloat}}});
  });
}

Setting value(const std::string& key, Setting::Value of) { return {std::move(of), "model." + key, {}}; }

TEST(DiffusionUnet, RefusesWhatItCannotBuild) {
  const auto with = [](const std::string& key, Setting::Value of, int64_t side = 8) {
    Setting::Table keys{{"sample_size", value("sample_size", side)}};
    keys.emplace_back(key, value(key, std::move(of)));
    return keys;
  };
  const auto list = [](std::vector<int64_t> numbers) {
    Setting::Array items;
    for (const int64_t one : numbers) items.emplace_back(one, "", Position{});
    return items;
  };
  EXPECT_THAT(refused(with("dropout", 0.1, 16)), HasSubstr("sample_size = 16: expected 8"));
  EXPECT_THAT(refused(with("out_channels", int64_t{2})), HasSubstr("out_channels = 2: expected 1"));
  EXPECT_THAT(refused(with("dropout", 0.1), {1, 8, 6}), HasSubstr("expected 'input' as square images"));
  EXPECT_THAT(refused(with("block_out_channels", list({32, 64}))), HasSubstr("expected 2 types"));
  EXPECT_THAT(refused(with("block_out_channels", list({32, 64, 96, 100}))),
              HasSubstr("norm_num_groups = 32: expected a divisor"));
  EXPECT_THAT(refused(with("attention_head_dim", int64_t{5})), HasSubstr("attention_head_dim = 5"));
  EXPECT_THAT(refused(with("freq_shift", 112.0)), HasSubstr("freq_shift"));
  EXPECT_THAT(refused(with("dropout", 0.1, 4), {1, 4, 4}), HasSubstr("cannot be halved 3 times"));
}

}  // namespace
}  // namespace tutti

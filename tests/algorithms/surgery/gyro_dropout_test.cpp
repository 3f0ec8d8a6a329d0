#include "algorithms/surgery/gyro_dropout.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/zoo/mlp.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr int64_t kFeatures = 40, kBatch = 12;
constexpr GyroDropoutOptions kGyro{.p = 0.4, .sigma = 8, .tau = 3};

// 12 samples a batch, 54 an epoch of 5 batches, 8 epochs: masks are chosen every 15 steps.
State gyro_state(int64_t step) {
  State state;
  state.seed = 7;
  state.max_duration = Time(8, TimeUnit::kEpoch);
  state.dataloader_len = 5;
  state.global_batch = kBatch;
  state.train_samples = 54;
  state.timestamp.batch = step;
  state.timestamp.batch_in_epoch = step % 5;
  return state;
}

// The output of a new layer for ones, from the `first` sample of the batch on.
at::Tensor masks_in(const State& state, int64_t first = 0, int64_t samples = kBatch) {
  Sequential net({std::make_shared<Dropout>(0.5)});
  apply_gyro_dropout(net, 5, 8, kGyro, &state);
  const ForwardContext context{.first_sample = first};
  set_context(net, &context);
  return net.forward(at::ones({samples, kFeatures})).tensor();
}

at::Tensor masks_at(int64_t step, int64_t first = 0, int64_t samples = kBatch, uint64_t seed = 7) {
  State state = gyro_state(step);
  state.seed = seed;
  return masks_in(state, first, samples);
}

// A third of the batch has one mask.
TEST(GyroDropoutTest, ABatchHasTauMasks) {
  const at::Tensor y = masks_at(0);
  for (const int64_t part : {0, 4, 8})
    for (int64_t i = 1; i < 4; ++i) EXPECT_TRUE(y[part].equal(y[part + i]));
  const at::Tensor kept = y.masked_select(y.ne(0));
  EXPECT_TRUE(at::allclose(kept, at::full_like(kept, 1 / 0.6)));
  EXPECT_GT(kept.numel(), 0.3 * static_cast<double>(y.numel()));
  EXPECT_LT(kept.numel(), 0.9 * static_cast<double>(y.numel()));
}

TEST(GyroDropoutTest, AChoiceOfMasksHoldsForManySteps) {
  for (const int64_t step : {1, 7, 13}) EXPECT_TRUE(masks_at(step).equal(masks_at(0))) << step;
  EXPECT_FALSE(masks_at(15).equal(masks_at(0)));
  EXPECT_FALSE(masks_at(0, 0, kBatch, 8).equal(masks_at(0))) << "another seed";
}

// Ranks and microbatches see parts of a batch; a resumed run begins at any step.
TEST(GyroDropoutTest, ASampleHasTheMaskOfItsPlace) {
  const at::Tensor whole = masks_at(20);
  for (const auto& [first, samples] : std::vector<std::pair<int64_t, int64_t>>{{0, 5}, {5, 7}, {11, 1}})
    EXPECT_TRUE(masks_at(20, first, samples).equal(whole.narrow(0, first, samples))) << first;
}

// Two texts a sample: their masks go with the sample, and are those of neighbouring parts.
TEST(GyroDropoutTest, TheTextsOfAPairHaveTheMasksOfTheirPlace) {
  const State state = gyro_state(20);
  Sequential net({std::make_shared<Dropout>(0.5)});
  apply_gyro_dropout(net, 5, 8, kGyro, &state);
  const auto masks_of = [&](int64_t first, int64_t samples) {
    const ForwardContext context{.first_sample = first, .rows_of_sample = 2};
    const ContextScope scope(net, context);
    return net.forward(at::ones({2 * samples, kFeatures})).tensor().unflatten(0, {samples, 2});
  };
  const at::Tensor pairs = masks_of(0, kBatch), single = masks_at(20);
  EXPECT_TRUE(pairs.select(1, 0).equal(single));
  EXPECT_TRUE(pairs.select(1, 1).equal(single.roll(-4, 0))) << "a part is 4 samples";
  EXPECT_TRUE(masks_of(5, 7).equal(pairs.narrow(0, 5, 7)));
}

// The fifth batch of an epoch has 6 samples.
TEST(GyroDropoutTest, ASmallerBatchHasThemToo) {
  const at::Tensor y = masks_at(4, 0, 6), full = masks_at(3);
  for (int64_t i = 0; i < 6; ++i) EXPECT_TRUE(y[i].equal(full[2 * i])) << i;
}

// The second of two ranks, with places 6 to 11, has kept three of its samples.
TEST(GyroDropoutTest, SamplesThatAreKeptHaveAllMasksOfTheirRank) {
  State state = gyro_state(3);
  state.topology.data_rank = 1;
  state.topology.data_world = 2;
  state.kept_samples = 0.5;
  const at::Tensor y = masks_in(state, 6, 3), whole = masks_at(3);
  for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(y[i].equal(whole[6 + 2 * i])) << i;
  EXPECT_FALSE(whole[6].equal(whole[10]));
}

TEST(GyroDropoutTest, TheMasksOfTheTrainingAreFew) {
  std::set<std::vector<float>> seen;
  for (int64_t step = 0; step < 40; ++step) {
    const at::Tensor y = masks_at(step);
    for (int64_t i = 0; i < y.size(0); ++i)
      seen.emplace(y[i].const_data_ptr<float>(), y[i].const_data_ptr<float>() + kFeatures);
  }
  EXPECT_LE(seen.size(), 8U);
  EXPECT_GT(seen.size(), 3U);
}

TEST(GyroDropoutTest, SequencesAndImagesLoseFeatures) {
  Sequential net({std::make_shared<Dropout>(0.5)});
  apply_gyro_dropout(net, 5, 8, kGyro);
  const at::Tensor tokens = net.forward(at::ones({3, 7, 40})).tensor();
  EXPECT_TRUE(tokens.equal(tokens.narrow(1, 0, 1).expand({3, 7, 40})));
  EXPECT_FALSE(tokens.equal(tokens.narrow(2, 0, 1).expand({3, 7, 40})));
  const at::Tensor images = net.forward(at::ones({3, 40, 5, 6})).tensor();
  EXPECT_TRUE(images.equal(images.narrow(2, 0, 1).narrow(3, 0, 1).expand({3, 40, 5, 6})));
  EXPECT_EQ(net.forward(at::ones({0, 40})).tensor().size(0), 0);
}

TEST(GyroDropoutTest, ActsOnceAtFitStart) {
  State state = gyro_state(0);
  std::vector<std::string> warnings;
  state.services->on_warning = [&](const std::string& what) { warnings.push_back(what); };
  state.model = std::make_shared<SequentialNet>(std::vector<std::string>{"Linear(2, 2)", "Dropout(p=0.1)"});
  Logger logger;
  GyroDropout gyro(kGyro);
  EXPECT_TRUE(gyro.match(Event::kFitStart, state));
  gyro.apply(Event::kFitStart, state, logger);
  EXPECT_STREQ(slots(*state.model)[1].slot->layer().kind(), "GyroDropoutLayer");
  gyro.apply(Event::kFitStart, state, logger);
  EXPECT_TRUE(warnings.empty()) << "it trains on";
  GyroDropout(kGyro).apply(Event::kFitStart, state, logger);
  EXPECT_THAT(warnings, testing::ElementsAre("GyroDropout has no effect: SequentialNet has no Dropout"));
}

TEST(GyroDropoutTest, ATrainingThatIsTooShortIsRefusedBeforeItBegins) {
  State state = gyro_state(0);
  GyroDropout(kGyro).require(state);
  EXPECT_THAT(
      [&] { GyroDropout({.sigma = 41}).require(state); },
      ThrowsMessage<UserError>(HasSubstr("sigma = 41 masks are more than the training has steps: 40")));
  state.max_duration = Time(40, TimeUnit::kBatch);
  GyroDropout({.sigma = 40}).require(state);
  EXPECT_THROW(GyroDropout({.sigma = 41}).require(state), UserError);
  state.max_duration = Time(4000, TimeUnit::kSample);
  EXPECT_THAT([&] { GyroDropout(kGyro).require(state); },
              ThrowsMessage<UserError>(HasSubstr("expected a max_duration in epochs or batches")));
}

}  // namespace
}  // namespace tutti

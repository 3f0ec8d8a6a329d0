#include "algorithms/loop/selective_backprop.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "models/model.h"
#include "tests/algorithms/batch_algorithms.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using enum Event;

// The loss of a sample is its first number.
class FirstNumber final : public Model {
 public:
  TensorTree forward(const TensorTree& batch) override {
    EXPECT_FALSE(at::GradMode::is_enabled());
    EXPECT_TRUE(context().training);
    parts.push_back(batch.samples());
    places.push_back(context().first_sample);
    width = batch["input"].size(3);
    return batch["input"].flatten(1).select(1, 0);
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
  at::Tensor losses(const Outputs& outputs, const Batch&) override { return outputs.tensor(); }
  const char* kind() const override { return "FirstNumber"; }

  std::vector<int64_t> parts, places;
  int64_t width = 0;
};

State modelled_state(int64_t samples, int64_t first_sample = 0,
                     const std::shared_ptr<Model>& model = std::make_shared<FirstNumber>()) {
  State state = image_state(60, first_sample, samples);
  state.batch.set("number", at::arange(samples));
  state.model = model;
  return state;
}

// Batches 50 to 89 of 100 but for every second one.
TEST(SelectiveBackpropTest, ActsInItsPartOfTheTraining) {
  const SelectiveBackprop selection({});
  EXPECT_TRUE(selection.needs().first);
  for (const int64_t step : {0, 49, 51, 89, 90}) EXPECT_TRUE(events_of(selection, image_state(step)).empty());
  for (const int64_t step : {50, 52, 88})
    EXPECT_EQ(events_of(selection, image_state(step)), std::set{kAfterDataloader}) << step;
  EXPECT_EQ(events_of(SelectiveBackprop({.interrupt = 0}), image_state(51)), std::set{kAfterDataloader});
  EXPECT_TRUE(events_of(SelectiveBackprop({.keep = 1.0}), image_state(50)).empty());
}

struct NeverActing {
  SelectiveBackprop::Options options;
  Time max_duration;
  std::string why;  // "": it acts
};

TEST(SelectiveBackpropTest, AScheduleWithoutAPrunedBatchIsAWarning) {
  const Time hundred(100, TimeUnit::kBatch), three(3, TimeUnit::kEpoch);
  for (const auto& [options, whole, why] : std::vector<NeverActing>{
           {{}, hundred, ""},
           {{.start = 0.9, .end = 0.5},
            hundred,
            "no step of a training of 100ba is from start = 0.9 to end = 0.5"},
           {{.start = 0.5, .end = 0.5}, Time(9, TimeUnit::kToken), "end = 0.5 of it"},
           {{.start = 1.0, .end = 1.0}, Time(9, TimeUnit::kToken), "start = 1 to end = 1 of it"},
           {{.start = 0.3, .end = 0.31}, Time(10, TimeUnit::kBatch), ""},
           {{.start = 0.31, .end = 0.39}, Time(10, TimeUnit::kBatch), "no step"},
           {{.start = 0.5, .end = 0.9}, three, ""},
           {{.start = 0.7, .end = 0.9}, three, "a training of 3ep"},
           {{.start = 0.5, .end = 0.9}, Time(1, TimeUnit::kEpoch), "a training of 1ep"},
           {{.keep = 1.0}, hundred, "keep is 1"},
           {{.interrupt = 1}, hundred, "interrupt = 1 leaves out every batch"}}) {
    std::vector<std::string> warned;
    State state;
    state.max_duration = whole;
    state.services->on_warning = [&](const std::string& what) { warned.push_back(what); };
    SelectiveBackprop(options).require(state);
    ASSERT_EQ(warned.size(), why.empty() ? 0U : 1U) << why;
    if (!why.empty()) {
      EXPECT_THAT(warned[0], AllOf(StartsWith("SelectiveBackprop has no effect: "), HasSubstr(why)));
    }
  }
}

TEST(SelectiveBackpropTest, KeepsSamplesInAllArrays) {
  State state = modelled_state(20);
  const Batch given = state.batch;
  SelectiveBackprop selection({.keep = 0.4});
  run(selection, state, {kAfterDataloader});
  const at::Tensor chosen = state.batch["number"];
  EXPECT_EQ(chosen.size(0), 8);
  EXPECT_EQ(state.kept_samples, 0.4);
  EXPECT_EQ(std::get<0>(at::_unique(chosen)).size(0), 8);
  EXPECT_TRUE(at::equal(state.batch["input"], given["input"].index_select(0, chosen)));
  EXPECT_TRUE(at::equal(state.batch["target"], given["target"].index_select(0, chosen)));
}

// Later samples have higher losses: of a thousand the upper half is chosen about three times as often.
TEST(SelectiveBackpropTest, PrefersHighLosses) {
  State state = modelled_state(1000);
  SelectiveBackprop selection({.keep = 0.5});
  run(selection, state, {kAfterDataloader});
  EXPECT_GT(state.batch["number"].ge(500).sum().item<int64_t>(), 300);
  EXPECT_LT(state.batch["number"].ge(500).sum().item<int64_t>(), 400);
}

TEST(SelectiveBackpropTest, KeepsOneSampleAtLeast) {
  const auto draws = make_draws(1, {.name = "SelectiveBackprop"});
  EXPECT_TRUE(choose_by_loss(at::ones({1}), 0.5, *draws).equal(at::zeros({1}, at::kLong)));
  EXPECT_EQ(choose_by_loss(at::empty({0}), 0.5, *draws).numel(), 0);
}

TEST(SelectiveBackpropTest, EachRankChoosesByItself) {
  const auto chosen = [](int64_t first_sample) {
    State state = modelled_state(30, first_sample);
    SelectiveBackprop selection({});
    run(selection, state, {kAfterDataloader});
    return state.batch["number"];
  };
  EXPECT_TRUE(at::equal(chosen(0), chosen(0)));
  EXPECT_FALSE(at::equal(chosen(0), chosen(30)));
}

// 20 samples in 3 parts are 7, 7 and 6. 8 microbatches of the 10 samples that are kept are 5 of 2 and 3 of
// none.
TEST(SelectiveBackpropTest, LooksAtSamplesInAsManyPartsAsThereAreMicrobatches) {
  State whole = modelled_state(20);
  SelectiveBackprop selection({});
  run(selection, whole, {kAfterDataloader});
  for (const auto& [count, parts] :
       std::map<int, std::vector<int64_t>>{{3, {7, 7, 6}}, {8, {4, 4, 4, 4, 4}}}) {
    const auto model = std::make_shared<FirstNumber>();
    State state = modelled_state(20, 0, model);
    state.grad_accum = count;
    run(selection, state, {kAfterDataloader});
    EXPECT_EQ(model->parts, parts);
    int64_t place = 0;
    for (std::size_t part = 0; part < parts.size(); place += parts[part++])
      EXPECT_EQ(model->places.at(part), place);
    EXPECT_EQ(model->context().first_sample, 0);
    EXPECT_TRUE(at::equal(state.batch["number"], whole.batch["number"]));
  }
}

TEST(SelectiveBackpropTest, LooksAtSmallImagesAndKeepsLargeOnes) {
  const auto model = std::make_shared<FirstNumber>();
  State state = modelled_state(20, 0, model);
  SelectiveBackprop selection({.scale_factor = 0.5});
  run(selection, state, {kAfterDataloader});
  EXPECT_EQ(model->width, 5);
  EXPECT_EQ(state.batch["input"].size(3), 10);
}

TEST(SelectiveBackpropTest, ARankMayHaveNoSamples) {
  State state = modelled_state(0);
  SelectiveBackprop selection({});
  run(selection, state, {kAfterDataloader});
  EXPECT_EQ(state.batch.samples(), 0);
}

}  // namespace
}  // namespace tutti

#include "models/zoo/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using GivenKeys = std::vector<std::pair<std::string, Setting::Value>>;

Setting model_with(const std::string& loss, GivenKeys more = {}) {
  GivenKeys keys{{"kind", std::string("any")}, {"layers", std::string("any")}};
  if (loss == "dice")
    keys.emplace_back("loss", section_with({{"kind", loss}, {"sigmoid", true}}).value);
  else if (!loss.empty())
    keys.emplace_back("loss", loss);
  for (auto& one : more) keys.push_back(std::move(one));
  return section_with(std::move(keys));
}

SampleSpec targets(const Shape& shape, at::ScalarType dtype, int64_t classes = 0) {
  return {{{"input", {8}}, {"target", shape}}, classes, {{"input", at::kFloat}, {"target", dtype}}};
}

std::string refusal(const Setting& section, const SampleSpec& samples) {
  return message_of<UserError>([&] { plan_targets(section, samples); });
}

std::string refusal(const Setting& section, const SampleSpec& samples, const Shape& outputs) {
  return message_of<UserError>([&] { plan_targets(section, samples, outputs); });
}

void expect_plan(const TargetPlan& plan, int64_t outputs, bool has_labels) {
  EXPECT_EQ(plan.outputs, outputs);
  EXPECT_EQ(plan.has_labels, has_labels);
}

const SampleSpec kClasses = targets({}, at::kLong, 4);

TEST(Targets, OfClassesNeedAScoreForEach) {
  for (const char* loss : {"", "cross_entropy", "bce_with_logits", "focal", "dice"})
    expect_plan(plan_targets(model_with(loss), kClasses), 4, false);
  EXPECT_THAT(refusal(model_with("", {{"num_classes", int64_t{3}}}), kClasses), HasSubstr("at least 4"));
}

TEST(Targets, OfValuesNeedAnOutputForEach) {
  for (const char* loss : {"mse", "l1", "smooth_l1"}) {
    expect_plan(plan_targets(model_with(loss), targets({}, at::kFloat)), 1, false);
    expect_plan(plan_targets(model_with(loss), targets({3}, at::kFloat)), 3, false);
    expect_plan(plan_targets(model_with(loss), targets({}, at::kLong, 40)), 1, false);
  }
  EXPECT_THAT(refusal(model_with("mse", {{"num_classes", int64_t{2}}}), targets({3}, at::kFloat)),
              HasSubstr("num_classes = 2: expected 3: the data has 3 targets a sample"));
  EXPECT_THAT(refusal(model_with("mse"), targets({3, 2}, at::kFloat)), HasSubstr("float32 [3, 2]"));
}

TEST(Targets, OfSeveralLabelsNeedAScoreForEach) {
  for (const at::ScalarType dtype : {at::kLong, at::kFloat})
    for (const char* loss : {"binary_cross_entropy_with_logits", "bce_with_logits", "focal", "dice"})
      expect_plan(plan_targets(model_with(loss), targets({5}, dtype, 2)), 5, true);
  EXPECT_THAT(refusal(model_with("focal"), targets({5}, at::kLong, 3)),
              HasSubstr("expected targets of 0 and 1: the data has targets up to 2"));
}

TEST(Targets, OfDiceNeedProbabilitiesOfModelsThatGiveScores) {
  const Setting plain = section_with({{"loss", std::string("dice")}, {"layers", std::string("any")}});
  EXPECT_THAT(refusal(plain, kClasses), HasSubstr("expected sigmoid = true or softmax = true"));
  expect_plan(plan_targets(plain, targets({2}, at::kFloat), {2}), 2, true);
}

TEST(Targets, OfOneLabelMayHaveOneScore) {
  const Setting one = model_with("bce_with_logits", {{"num_classes", int64_t{1}}});
  expect_plan(plan_targets(one, targets({}, at::kLong, 2)), 1, true);
  expect_plan(plan_targets(one, targets({}, at::kFloat)), 1, true);
  expect_plan(plan_targets(model_with("bce_with_logits"), targets({}, at::kLong, 2)), 2, false);
  EXPECT_THAT(refusal(one, kClasses), HasSubstr("up to 3"));
}

TEST(Targets, OfProbabilitiesAreForCrossEntropyToo) {
  expect_plan(plan_targets(model_with(""), targets({5}, at::kFloat)), 5, true);
}

TEST(Targets, OfAnotherLossAreAUserErrorThatNamesIt) {
  EXPECT_THAT(refusal(model_with(""), targets({}, at::kFloat)),
              HasSubstr("model.loss = \"mse\" takes values"));
  EXPECT_THAT(refusal(model_with(""), targets({5}, at::kLong, 2)),
              HasSubstr("model.loss = \"bce_with_logits\" takes several labels"));
  EXPECT_THAT(refusal(model_with(""), targets({4, 4}, at::kLong, 3)),
              HasSubstr("int64 [4, 4] a sample; model.kind = \"unet\" takes a class for each pixel"));
}

TEST(Targets, OfPixelsNeedScoresForEach) {
  const SampleSpec masks = targets({6, 7}, at::kLong, 3);
  expect_plan(plan_targets(model_with(""), masks, {3, 6, 7}), 3, false);
  expect_plan(plan_targets(model_with("dice"), masks, {4, 6, 7}), 4, false);
  EXPECT_THAT(refusal(model_with(""), masks, {2, 6, 7}), HasSubstr("has targets up to 2"));
  EXPECT_THAT(refusal(model_with(""), masks, {3, 6, 6}),
              HasSubstr("they end in [3, 6, 6] a sample, not in scores of classes for each of [6, 7]"));
  const SampleSpec mask = targets({6, 7}, at::kLong, 2);
  expect_plan(plan_targets(model_with("dice"), mask, {1, 6, 7}), 1, true);
  expect_plan(plan_targets(model_with("focal"), targets({3, 6, 7}, at::kByte, 2), {3, 6, 7}), 3, true);
}

TEST(Targets, OfLayersThatEndInAnotherShapeAreAUserError) {
  expect_plan(plan_targets(model_with("mse"), targets({2, 3}, at::kFloat), {2, 3}), 2, false);
  EXPECT_THAT(refusal(model_with("mse"), targets({2, 3}, at::kFloat), {6}),
              HasSubstr("they end in [6] a sample, not in outputs [2, 3], as the targets are"));
  EXPECT_THAT(refusal(model_with(""), kClasses, {4, 2}),
              HasSubstr("they end in [4, 2] a sample, not in scores of classes"));
}

TEST(Targets, NeedAsManyClassesAsTheLossHasWeights) {
  const auto weighted = [](const char* kind, const char* key) {
    Setting section = model_with("");
    section.table().emplace_back("loss",
                                 section_with({{"kind", std::string(kind)}, {key, list_value({1.0, 2.0})}}));
    return section;
  };
  EXPECT_THAT(refusal(weighted("cross_entropy", "weight"), kClasses),
              HasSubstr("it has 2 weights; the model has 4 classes"));
  expect_plan(plan_targets(weighted("bce_with_logits", "pos_weight"), targets({2}, at::kFloat)), 2, true);
}

}  // namespace
}  // namespace tutti

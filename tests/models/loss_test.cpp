#include "models/loss.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipe/catalog.h"
#include "runtime/error.h"
#include "tensors/ignored_target.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

LossPtr loss_named(const std::string& kind) { return make_loss(Setting(kind, "model.loss", {})); }

const char* const kValueLosses[] = {"mse", "l1", "smooth_l1"};
const char* const kLabelLosses[] = {"binary_cross_entropy_with_logits", "bce_with_logits", "dice", "focal"};

TEST(ChosenLoss, LossesOfSamplesAverageToItsMean) {
  const at::Tensor outputs = at::linspace(0.1, 0.9, 24).view({4, 6});
  const at::Tensor target = outputs.flip({0, 1}).gt(0.4).to(at::kFloat);
  for (const std::string& kind : own_kinds(loss_catalog())) {
    const LossPtr loss = loss_named(kind);
    const at::Tensor dense = kind == "cross_entropy" ? target.softmax(1) : target;
    const at::Tensor losses = loss->of_samples(outputs, dense);
    EXPECT_EQ(losses.sizes(), at::IntArrayRef({4})) << kind;
    EXPECT_TRUE(at::allclose(losses.mean(), loss->mean(outputs, dense))) << kind;
    EXPECT_EQ(loss->items(dense), 4) << kind;
  }
}

TEST(ChosenLoss, OfPixelsIsAMeanOverThoseThatCount) {
  const at::Tensor scores = at::linspace(-3, 3, 36).view({2, 3, 6});
  const at::Tensor target =
      at::tensor({0, 1, -100, -100, 2, 1, -100, -100, -100, 0, 2, -100}, at::kLong).view({2, 6});
  const LossPtr loss = loss_named("cross_entropy");
  EXPECT_EQ(loss->items(target), 6);
  const at::Tensor losses = loss->of_samples(scores, target);
  EXPECT_TRUE(at::allclose((losses[0] * 4 + losses[1] * 2) / 6, loss->mean(scores, target)));
}

TEST(ChosenLoss, OfASampleWithoutTargetsThatCountIsNothing) {
  const at::Tensor scores = at::linspace(-3, 3, 36).view({2, 3, 6});
  at::Tensor target = at::ones({2, 6}, at::kLong);
  target[1].fill_(-100);
  EXPECT_EQ(loss_named("cross_entropy")->of_samples(scores, target)[1].item<double>(), 0.0);
}

TEST(ChosenLoss, OfPixelsOfProbabilitiesIsAMeanOverTheirSums) {
  const at::Tensor scores = at::linspace(-3, 3, 36).view({2, 3, 6});
  at::Tensor target = at::full({2, 3, 6}, 1.0F / 3);
  target[0].narrow(1, 2, 4).zero_();  // two pixels of six count
  const LossPtr loss = loss_named("cross_entropy");
  EXPECT_EQ(loss->items(target), 8);
  const at::Tensor losses = loss->of_samples(scores, target);
  EXPECT_TRUE(at::allclose((losses[0] * 2 + losses[1] * 6) / 8, loss->mean(scores, target)));
}

TEST(ChosenLoss, OfClassesWithWeightsCountsTheirWeights) {
  const LossPtr loss = make_loss(
      section_with({{"kind", std::string("cross_entropy")}, {"weight", list_value({0.5, 2.0, 0.0})}}));
  EXPECT_EQ(loss->items(at::tensor({0, 1, -100, 1, 2}, at::kLong)), 4.5);
  EXPECT_EQ(loss->classes(), 3);
  EXPECT_EQ(loss->items(at::full({4, 3}, 0.25)), 3) << "of probabilities it is their sum, as torch's and "
                                                       "Composer's means over samples";
}

TEST(ChosenLoss, OfClassesWithWeightsNamesATargetThatIsNoClass) {
  const LossPtr loss = make_loss(
      section_with({{"kind", std::string("cross_entropy")}, {"weight", list_value({0.5, 2.0, 0.0})}}));
  EXPECT_THAT(message_of<UserError>([&] {
                loss->items(at::tensor({0, 3, -100}, at::kLong));
              }),
              HasSubstr("a target is 3, which is not in [0, 3)"));
}

TEST(ChosenLoss, OfLabelsOrValuesRefusesIntegersBelowZero) {
  const at::Tensor outputs = at::linspace(0.1, 0.9, 6).view({2, 3});
  const at::Tensor target = at::tensor({0, 1, -100, 1, 1, 0}, at::kLong).view({2, 3});
  for (const auto& kinds : {std::vector<const char*>(std::begin(kValueLosses), std::end(kValueLosses)),
                            std::vector<const char*>(std::begin(kLabelLosses), std::end(kLabelLosses))})
    for (const char* kind : kinds) {
      EXPECT_THAT(message_of<UserError>([&] { loss_named(kind)->mean(outputs, target); }),
                  HasSubstr("a target is -100"))
          << kind;
      EXPECT_TRUE(loss_named(kind)->mean(outputs, target.abs().clamp_max(1)).isfinite().item<bool>()) << kind;
    }
}

// torch computes with any number.
TEST(ChosenLoss, OfLabelsRefusesOtherNumbersThanThoseFrom0To1) {
  const at::Tensor outputs = at::linspace(0.1, 0.9, 6).view({2, 3});
  for (const std::string kind : kLabelLosses) {
    const LossPtr loss = loss_named(kind);
    for (const auto& [wrong, text] : {std::pair(7.0, "a label is 7"), {-0.5, "a label is -0.5"}}) {
      at::Tensor labels = at::tensor({0.0, 1.0, 0.5, 0.0, 0.0, wrong}).to(at::kFloat).view({2, 3});
      for (const at::Tensor& target : {labels, labels.to(at::kLong)}) {
        if (wrong < 0 && !target.is_floating_point()) continue;
        EXPECT_THAT(message_of<UserError>([&] { loss->mean(outputs, target); }), HasSubstr(text)) << kind;
        EXPECT_THAT(message_of<UserError>([&] { loss->of_samples(outputs, target); }), HasSubstr(text));
      }
    }
    const at::Tensor one = at::tensor({3, 1}, at::kLong), score = outputs.narrow(1, 0, 1);
    EXPECT_THAT(message_of<UserError>([&] { loss->mean(score, one); }), HasSubstr("a label is 3")) << kind;
  }
}

TEST(ChosenLoss, OfValuesDoesNotBroadcast) {
  const at::Tensor outputs = at::linspace(0, 1, 5).view({5, 1}), target = at::linspace(1, 0, 5);
  for (const char* kind : kValueLosses) {
    const LossPtr loss = loss_named(kind);
    EXPECT_TRUE(at::equal(loss->mean(outputs, target), loss->mean(outputs, target.view({5, 1})))) << kind;
    EXPECT_THAT(message_of<UserError>([&] {
                  loss->mean(outputs.view({5}), target.view({5, 1}));
                }),
                HasSubstr("a target of shape [5, 1] does not fit outputs of shape [5]"));
    EXPECT_THROW(loss->mean(outputs.expand({5, 2}), target), UserError) << kind;
  }
}

TEST(ChosenLoss, OfOneScoreASampleTakesItsLabel) {
  const at::Tensor scores = at::linspace(0.2, 0.8, 5).view({5, 1});
  const at::Tensor target = at::tensor({0, 1, 1, 0, 1}, at::kLong);
  for (const char* kind : kLabelLosses)
    EXPECT_TRUE(at::equal(loss_named(kind)->mean(scores, target),
                          loss_named(kind)->mean(scores, target.view({5, 1}).to(at::kFloat))))
        << kind;
}

TEST(ChosenLoss, OfValuesAloneTakesNoWeightForEachClass) {
  for (const char* kind : kValueLosses) EXPECT_FALSE(loss_named(kind)->takes_dense_targets()) << kind;
  for (const char* kind : kLabelLosses) EXPECT_TRUE(loss_named(kind)->takes_dense_targets()) << kind;
  EXPECT_TRUE(default_loss()->takes_dense_targets());
}

TEST(ChosenLoss, HasComposersNameToo) {
  const at::Tensor scores = at::linspace(-1, 1, 6).view({2, 3}), target = at::tensor({2, 0}, at::kLong);
  EXPECT_TRUE(at::equal(loss_named("soft_cross_entropy")->mean(scores, target),
                        default_loss()->mean(scores, target)));
}

TEST(ChosenLoss, OfAWrongNameOrKeyIsAUserError) {
  EXPECT_THAT(message_of<UserError>([] { loss_named("focall"); }), HasSubstr("did you mean focal?"));
  const auto making = [](const std::string& kind, const std::string& key, Setting::Value value) {
    return message_of<UserError>([&] { make_loss(section_with({{"kind", kind}, {key, value}})); });
  };
  EXPECT_THAT(making("focal", "alpha", 1.5), HasSubstr("section.alpha = 1.5: expected a number <= 1"));
  EXPECT_THAT(making("mse", "beta", 1.0), HasSubstr("unknown key of loss mse"));
  EXPECT_THAT(making("dice", "batch", true), HasSubstr("no mean over samples"));
  EXPECT_THAT(
      message_of<UserError>([] {
        make_loss(section_with({{"kind", std::string("dice")}, {"softmax", true}, {"sigmoid", true}}));
      }),
      HasSubstr("excludes sigmoid"));
}

}  // namespace
}  // namespace tutti

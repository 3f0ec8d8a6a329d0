#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

TEST(Metric, SumsOfRanksAddUpToTheWhole) {
  const at::Tensor scores = at::eye(4);
  const at::Tensor target = at::tensor({0, 1, 0, 0}, at::kLong);
  const MetricPtr whole = make_metric("MulticlassAccuracy");
  whole->update(scores, target);
  const MetricPtr parts[2] = {make_metric("MulticlassAccuracy"), make_metric("MulticlassAccuracy")};
  parts[0]->update(scores.narrow(0, 0, 3), target.narrow(0, 0, 3));
  parts[1]->update(scores.narrow(0, 3, 1), target.narrow(0, 3, 1));
  for (size_t i = 0; i < parts[0]->sums().size(); ++i) parts[0]->sums()[i] += parts[1]->sums()[i];
  EXPECT_EQ(parts[0]->compute(), whole->compute());
  EXPECT_EQ(whole->compute(), 0.5);
}

TEST(Metric, AccuracyOfNothingIsNothing) {
  for (const bool macro : {false, true}) {
    const MetricPtr metric = make_metric(section_with({{"kind", std::string("MulticlassAccuracy")},
                                                       {"average", std::string(macro ? "macro" : "micro")},
                                                       {"num_classes", int64_t{3}}}));
    metric->update(at::rand({2, 3}), at::full({2}, -100, at::kLong));
    EXPECT_EQ(metric->compute(), 0.0) << macro;
  }
}

// Rows of float are counted without tensors, of double with them.
TEST(Metric, AccuracyOfTiesAndOfNoNumbersIsThatOfArgmax) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor scores =
      at::tensor({1.0F, 2.0F, 2.0F, nan, 9.0F, nan, 3.0F, 3.0F, 1.0F, 5.0F, nan, 7.0F, 0.0F, 1.0F, 2.0F})
          .view({5, 3});
  const MetricPtr rows = make_metric("MulticlassAccuracy"), tensors = make_metric("MulticlassAccuracy");
  for (int64_t guess = 0; guess < 3; ++guess) {
    const at::Tensor target = at::tensor({guess, guess, guess, guess, int64_t{-100}}, at::kLong);
    rows->update(scores, target);
    tensors->update(scores.to(at::kDouble), target);
    EXPECT_EQ(rows->sums(), tensors->sums()) << guess;
  }
  EXPECT_THAT(rows->sums(), testing::ElementsAre(4, 12, 12));
}

TEST(Metric, ResetForgetsEverything) {
  const MetricPtr metric = make_metric("CrossEntropy");
  metric->update(at::eye(4), at::tensor({0, 1, 0, 0}, at::kLong));
  metric->reset();
  EXPECT_THAT(metric->sums(), testing::Each(0.0));
}

// Scores of three samples, the first two of class 0.
const at::Tensor& scores() {
  static const at::Tensor some = at::tensor({4.0F, 1.0F, 0.0F, 3.0F, 0.0F, 1.0F}).view({3, 2});
  return some;
}
at::Tensor rows(int64_t begin, int64_t end) { return scores().slice(0, begin, end); }
at::Tensor classes(std::vector<int64_t> labels) { return at::tensor(labels); }

MetricPtr metric(const char* kind, std::pair<std::string, Setting::Value> key) {
  return make_metric(section_with({{"kind", std::string(kind)}, std::move(key)}));
}

// One batch of two samples and one of one: the mean over samples, unless batch means are asked for.
double over_uneven_batches(Metric& metric) {
  metric.begin_batch(0, 2);
  metric.update(rows(0, 2), classes({0, 0}));
  metric.begin_batch(1, 2);
  metric.update(rows(2, 3), classes({0}));
  return metric.compute();
}

double cross_entropy_of(int64_t row) {
  return at::cross_entropy_loss(rows(row, row + 1), classes({0})).item<double>();
}

double mean_over_samples() { return (cross_entropy_of(0) + cross_entropy_of(1) + cross_entropy_of(2)) / 3; }

double mean_over_batches() {
  return ((cross_entropy_of(0) + cross_entropy_of(1)) / 2 + cross_entropy_of(2)) / 2;
}

TEST(Metric, CrossEntropyWeighsEverySampleTheSame) {
  EXPECT_NEAR(over_uneven_batches(*make_metric("CrossEntropy")), mean_over_samples(), 1e-6);
  EXPECT_NEAR(over_uneven_batches(*metric("CrossEntropy", {"batch_means", true})), mean_over_batches(), 1e-6);
}

TEST(Metric, ComposersWayIsThatOfMetricsWhichDoNotSay) {
  const auto in_composers_way = [](const Setting& setting) {
    return over_uneven_batches(*make_metric(setting, /*composer=*/true));
  };
  EXPECT_NEAR(in_composers_way(Setting("CrossEntropy", "metric", {})), mean_over_batches(), 1e-6);
  const auto kind = std::pair{std::string("kind"), Setting::Value(std::string("CrossEntropy"))};
  EXPECT_NEAR(in_composers_way(section_with({kind})), mean_over_batches(), 1e-6);
  EXPECT_NEAR(in_composers_way(section_with({kind, {"batch_means", false}})), mean_over_samples(), 1e-6);
}

TEST(Metric, LossMetricWeighsEverySampleTheSame) {
  for (const bool batch_means : {false, true}) {
    const MetricPtr metric = make_metric(section_with({{"kind", std::string("LossMetric")},
                                                       {"loss", std::string("soft_cross_entropy")},
                                                       {"batch_means", batch_means}}));
    EXPECT_NEAR(over_uneven_batches(*metric), batch_means ? mean_over_batches() : mean_over_samples(), 1e-6);
  }
}

// As torch.nn's losses, by their formulas.
TEST(Metric, LossMetricKnowsTorchsLosses) {
  const at::Tensor x = at::tensor({-2.0F, 0.25F, 1.0F}).view({3, 1}),
                   y = at::tensor({1.0F, 0.0F, 1.0F}).view({3, 1});
  const std::vector<std::pair<std::string, double>> losses = {
      {"mse", (9 + 0.0625) / 3},
      {"l1", 3.25 / 3},
      {"smooth_l1", (3 - 0.5 + 0.5 * 0.0625) / 3},
      {"bce_with_logits",
       (std::log1p(std::exp(2.0)) + std::log1p(std::exp(0.25)) + std::log1p(std::exp(-1.0))) / 3}};
  for (const auto& [loss, value] : losses) {
    const MetricPtr metric = make_metric(section_with({{"kind", std::string("LossMetric")}, {"loss", loss}}));
    metric->update(x, y);
    EXPECT_NEAR(metric->compute(), value, 1e-6) << loss;
  }
}

TEST(Metric, IgnoredTargetsDoNotCount) {
  for (const char* kind : {"MulticlassAccuracy", "CrossEntropy", "LanguageCrossEntropy", "MaskedAccuracy"}) {
    const MetricPtr all = metric(kind, {"ignore_index", int64_t{1}});
    all->update(scores(), classes({0, 1, 0}));
    const MetricPtr counted = metric(kind, {"ignore_index", int64_t{1}});
    counted->update(rows(0, 1), classes({0}));
    counted->update(rows(2, 3), classes({0}));
    EXPECT_NEAR(all->compute(), counted->compute(), 1e-6) << kind;
  }
}

// The mean of a batch is over its targets that count, wherever its parts were measured; a batch without any
// has no mean.
TEST(Metric, PartsOfABatchGiveItsValue) {
  const at::Tensor some = at::linspace(-2, 3, 24).sin().view({8, 3});
  const at::Tensor target = classes({0, -100, 2, -100, -100, 1, -100, -100});
  const auto mean = [&](int64_t first, int64_t last) {
    return at::cross_entropy_loss(some.slice(0, first, last), target.slice(0, first, last)).item<double>();
  };
  const std::pair<std::string, Setting::Value> cross_entropy{"loss", std::string("soft_cross_entropy")};
  for (const auto& [kind, key] :
       {std::pair{"CrossEntropy", std::pair{std::string("ignore_index"), Setting::Value(int64_t{-100})}},
        std::pair{"LossMetric", cross_entropy}})
    for (const bool means : {false, true}) {
      const auto made = [&, kind = kind, key = key] {
        return make_metric(
            section_with({{"kind", std::string(kind)}, key, {"batch_means", Setting::Value(means)}}));
      };
      const MetricPtr ranks[2] = {made(), made()};
      const std::pair<int64_t, int64_t> parts[] = {{0, 1}, {1, 2}, {2, 4}, {4, 5}, {5, 6}, {6, 8}};
      for (const auto& [first, last] : parts) {  // batches of 4, 2 and 2
        Metric& rank = *ranks[first % 2];
        rank.begin_batch(first < 4 ? 0 : first < 6 ? 1 : 2, 3);
        rank.update(some.slice(0, first, last), target.slice(0, first, last));
      }
      for (auto& rank : ranks) rank->begin_batch(0, 3);
      for (size_t i = 0; i < ranks[0]->sums().size(); ++i) ranks[0]->sums()[i] += ranks[1]->sums()[i];
      EXPECT_NEAR(ranks[0]->compute(), means ? (mean(0, 4) + mean(4, 6)) / 2 : mean(0, 8), 1e-6)
          << kind << means;
    }
}

TEST(Metric, MIoUIsOfTheClassesThatOccur) {
  const MetricPtr miou = metric("MIoU", {"num_classes", int64_t{4}});
  miou->update(at::eye(4).slice(0, 0, 2), classes({0, 0}));
  EXPECT_DOUBLE_EQ(miou->compute(), 100 * (1.0 / 2 + 0.0) / 2);
}

TEST(Metric, DiceIsOfAllSamplesTogether) {
  const MetricPtr dice = metric("Dice", {"num_classes", int64_t{2}});
  dice->update(rows(1, 3), classes({1, 0}));
  dice->update(rows(0, 1), classes({1}));
  EXPECT_DOUBLE_EQ(dice->compute(), 100.0 * 2 * 1 / (2 + 2));
  const MetricPtr of_batches = make_metric(
      section_with({{"kind", std::string("Dice")}, {"num_classes", int64_t{2}}, {"batch_means", true}}));
  of_batches->begin_batch(0, 2);
  of_batches->update(rows(1, 3), classes({1, 0}));
  of_batches->begin_batch(1, 2);
  of_batches->update(rows(0, 1), classes({1}));
  EXPECT_DOUBLE_EQ(of_batches->compute(), 100.0 * (2.0 * 1 / (2 + 1) + 0.0) / 2);
}

TEST(Metric, MacroAccuracyIsTheMeanOverClassesThatOccur) {
  const MetricPtr macro = make_metric(section_with({{"kind", std::string("MulticlassAccuracy")},
                                                    {"average", std::string("macro")},
                                                    {"num_classes", int64_t{4}}}));
  macro->update(at::eye(4).slice(0, 0, 3), classes({0, 0, 0}));
  EXPECT_DOUBLE_EQ(macro->compute(), (1.0 / 3 + 0.0 + 0.0) / 3);
}

TEST(Metric, MacroAccuracyNeedsToKnowTheClasses) {
  EXPECT_THAT(
      [] {
        metric("MulticlassAccuracy", {"average", std::string("macro")});
      },
      testing::ThrowsMessage<UserError>(testing::HasSubstr("needs num_classes")));
}

TEST(Metric, OtherClassesThanTheModelHasAreAUserError) {
  EXPECT_THAT(
      [] {
        metric("MIoU", {"num_classes", int64_t{3}})->update(rows(0, 2), classes({0, 0}));
      },
      testing::ThrowsMessage<UserError>(testing::HasSubstr("num_classes is 3")));
}

std::string message_of_update(const MetricPtr& metric, const at::Tensor& outputs, const at::Tensor& target) {
  try {
    metric->update(outputs, target);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Metric, AccuracyRefusesTargetsThatAreNotOneForEachRowOfScores) {
  const auto refusal = [](at::IntArrayRef outputs, at::IntArrayRef target) {
    return message_of_update(make_metric("MulticlassAccuracy"), at::rand(outputs),
                             at::zeros(target, at::kLong));
  };
  EXPECT_EQ(refusal({2, 5}, {2}), "");
  EXPECT_EQ(refusal({2, 5, 3}, {2, 3}), "");
  EXPECT_THAT(refusal({2, 3, 5}, {2, 3}), testing::HasSubstr("[2, 3, 5] and [2, 3]"));
  EXPECT_THAT(refusal({2, 5}, {3}), testing::HasSubstr("[2, 5] and [3]"));
  EXPECT_THAT(refusal({2, 5}, {2, 1}), testing::HasSubstr("[2, 5] and [2, 1]"));
}

TEST(Metric, MeanSquaredLossRefusesTargetsOfAnotherShape) {
  const auto refusal = [](at::IntArrayRef outputs, at::IntArrayRef target) {
    return message_of_update(metric("LossMetric", {"loss", std::string("mse")}), at::rand(outputs),
                             at::rand(target));
  };
  EXPECT_EQ(refusal({4, 1}, {4, 1}), "");
  EXPECT_EQ(refusal({4, 1}, {4}), "");
  EXPECT_THAT(refusal({4, 2}, {4}),
              testing::HasSubstr("a target of shape [4] does not fit outputs of shape [4, 2]"));
  EXPECT_THAT(refusal({4}, {4, 1}), testing::HasSubstr("[4, 1] does not fit outputs of shape [4]"));
}

TEST(Metric, OfValuesTakesOneASampleAndRefusesOtherShapes) {
  for (const char* kind : {"MeanSquaredError", "MeanAbsoluteError", "R2Score"}) {
    EXPECT_EQ(message_of_update(make_metric(kind), at::rand({4, 1}), at::rand({4})), "") << kind;
    EXPECT_THAT(message_of_update(make_metric(kind), at::rand({4, 2}), at::rand({4})),
                testing::HasSubstr("does not fit outputs"))
        << kind;
  }
  EXPECT_THAT(message_of_update(make_metric("R2Score"), at::rand({4, 2}), at::rand({4, 2})),
              testing::HasSubstr("num_outputs is 1"));
}

TEST(Metric, OfLabelsRefusesTargetsOfOtherShapes) {
  const auto refusal = [](const char* kind, at::IntArrayRef outputs, at::IntArrayRef target) {
    return message_of_update(metric(kind, {"num_labels", int64_t{3}}), at::rand(outputs),
                             at::ones(target, at::kLong));
  };
  for (const char* kind : {"MultilabelF1Score", "MultilabelAUROC"}) {
    EXPECT_EQ(refusal(kind, {4, 3}, {4, 3}), "") << kind;
    EXPECT_THAT(refusal(kind, {4, 3}, {4}), testing::HasSubstr("[4, 3] and [4]")) << kind;
    EXPECT_THAT(refusal(kind, {4, 2}, {4, 2}), testing::HasSubstr("num_labels is 3")) << kind;
  }
  EXPECT_THAT(message_of_update(make_metric("BinaryRecall"), at::rand({4, 3}), at::ones({4}, at::kLong)),
              testing::HasSubstr("[4, 3] and [4]"));
}

TEST(Metric, ConfusionMatrixHasANumberForEachPairOfClasses) {
  const MetricPtr matrix = metric("ConfusionMatrix", {"num_classes", int64_t{2}});
  matrix->update(at::eye(2).index_select(0, classes({0, 1, 1})), classes({0, 0, 1}));
  EXPECT_EQ(matrix->parts(), (std::vector<std::string>{"/0/0", "/0/1", "/1/0", "/1/1"}));
  EXPECT_EQ(matrix->values(), (std::vector<double>{1, 1, 0, 1}));
}

TEST(Metric, ConfusionMatrixTakesBytes) {
  const int64_t classes = 21;
  const at::Tensor target = at::arange(classes, at::kLong);
  const MetricPtr of_bytes = metric("ConfusionMatrix", {"num_classes", classes});
  of_bytes->update(at::eye(classes), target.to(at::kByte));
  EXPECT_EQ(of_bytes->compute(), 1.0);
}

// Of tokens: [N, T, classes], or with classes in dim 1.
TEST(Metric, OfTokensTakesClassesInDimensionOneToo) {
  const at::Tensor scores = at::linspace(-2, 3, 24).sin().view({2, 4, 3});
  const at::Tensor target = at::tensor({0, 2, -100, 1, 1, 0, 2, 2}, at::kLong).view({2, 4});
  for (const char* kind : {"MaskedAccuracy", "LanguageCrossEntropy", "LanguagePerplexity"}) {
    const MetricPtr last = make_metric(kind), second = make_metric(kind);
    last->update(scores, target);
    second->update(scores.movedim(-1, 1), target);
    EXPECT_EQ(last->compute(), second->compute()) << kind;
    EXPECT_THAT(message_of_update(last, at::rand({4, 1}), at::ones({4, 1}, at::kLong)),
                testing::HasSubstr("[4, 1] and [4, 1]"))
        << kind << " does not broadcast";
  }
}

TEST(Metric, OfPixelsNamesTheShapesThatDoNotFit) {
  for (const char* kind : {"MIoU", "Dice"})
    EXPECT_THAT(message_of_update(metric(kind, {"num_classes", int64_t{3}}), at::rand({1, 3, 2, 2}),
                                  at::ones({1, 1, 2, 2}, at::kLong)),
                testing::HasSubstr("[1, 3, 2, 2] and [1, 1, 2, 2]"))
        << kind;
}

MetricPtr of_keys(const char* kind, std::vector<std::pair<std::string, Setting::Value>> keys) {
  keys.emplace_back("kind", std::string(kind));
  return make_metric(section_with(keys));
}

// An index that is a class, too.
TEST(Metric, OfClassesLeavesOutTargetsOfTheIgnoredIndex) {
  const at::Tensor scores = at::eye(3).index_select(0, classes({0, 1, 1, 2, 1})).view({5, 3, 1});
  const at::Tensor target = classes({0, 1, 0, 1, 2}).view({5, 1});
  const at::Tensor counted = classes({0, 2, 4});
  for (const char* kind : {"ConfusionMatrix", "MulticlassPrecision", "MulticlassAccuracy"}) {
    const auto made = [&](int64_t ignored) {
      return of_keys(kind, {{"num_classes", int64_t{3}}, {"ignore_index", ignored}});
    };
    const MetricPtr all = made(1), rest = made(-100);
    all->update(scores, target);
    rest->update(scores.index_select(0, counted), target.index_select(0, counted));
    EXPECT_EQ(all->values(), rest->values()) << kind;
  }
}

TEST(Metric, OfLabelsLeavesOutTargetsOfTheIgnoredIndex) {
  const at::Tensor scores = at::tensor({2.0F, -1.0F, 1.0F, 3.0F, -2.0F, 0.5F, -3.0F, -1.0F}).view({4, 2});
  const at::Tensor target = classes({1, 0, 1, 0, 0, 1, -100, -100}).view({4, 2});
  for (const char* kind :
       {"MultilabelRecall", "MultilabelPrecision", "MultilabelAUROC", "MultilabelAveragePrecision"}) {
    const MetricPtr all = of_keys(kind, {{"num_labels", int64_t{2}}}),
                    rest = of_keys(kind, {{"num_labels", int64_t{2}}});
    all->update(scores * classes({1, 1, 1, -1}).unsqueeze(1), target);
    rest->update(scores.narrow(0, 0, 3), target.narrow(0, 0, 3));
    EXPECT_EQ(all->compute(), rest->compute()) << kind;
  }
}

// torchmetrics.classification.MulticlassAccuracy(4, average="macro", top_k=2): classes 0 and 1.
TEST(Metric, MacroAccuracyOfSeveralHighestIsOfTheClassesThatAreTargets) {
  const MetricPtr macro =
      of_keys("MulticlassAccuracy",
              {{"average", std::string("macro")}, {"num_classes", int64_t{4}}, {"top_k", int64_t{2}}});
  macro->update(
      at::tensor({0.5F, 0.3F, 0.2F, 0.0F, 0.5F, 0.3F, 0.2F, 0.0F, 0.1F, 0.2F, 0.3F, 0.4F}).view({3, 4}),
      classes({0, 1, 0}));
  EXPECT_DOUBLE_EQ(macro->compute(), (0.5 + 1.0) / 2);
}

TEST(Metric, AccuracyOfMoreHighestThanClassesIsWhole) {
  const MetricPtr all = metric("MulticlassAccuracy", {"top_k", int64_t{9}});
  all->update(rows(0, 3), classes({0, 1, 0}));
  EXPECT_EQ(all->compute(), 1.0);
}

TEST(Metric, ConfusionMatrixIsLoggedAsAPartToo) {
  const MetricPtr matrix = metric("ConfusionMatrix", {"num_classes", int64_t{3}});
  matrix->update(at::eye(3).index_select(0, classes({0, 1, 2, 2})), classes({0, 1, 0, 2}));
  EXPECT_DOUBLE_EQ(matrix->compute(), 0.75);
}

// torchmetrics' values: a probability that is a threshold is at or above it, and the curve of AUROC has no
// point beyond the last threshold.
TEST(Metric, AreasCountProbabilitiesAtThresholds) {
  const auto area = [](const char* kind, int64_t thresholds, std::vector<float> scores) {
    const MetricPtr made = metric(kind, {"thresholds", thresholds});
    made->update(at::tensor(scores), classes({1, 0, 0}));
    return made->compute();
  };
  EXPECT_DOUBLE_EQ(area("BinaryAUROC", 3, {0.0F, 0.0F, -2.0F}), 0.75);
  EXPECT_DOUBLE_EQ(area("BinaryAveragePrecision", 3, {0.0F, -2.0F, 2.0F}), 0.5);
  EXPECT_DOUBLE_EQ(area("BinaryAUROC", 5, {100.0F, 100.0F, -2.0F}), 0.5);
}

TEST(Metric, R2OfTargetsWithoutVarianceIsOneOrNothing) {
  const auto r2 = [](double difference, double deviation) {
    const MetricPtr made = make_metric("R2Score");
    const at::Tensor target = at::tensor({1.0, 1.0 + deviation}, at::kDouble);
    made->update(target + difference, target);
    return made->compute();
  };
  EXPECT_EQ(r2(0, 0), 1.0);
  EXPECT_EQ(r2(0, 2), 1.0);
  EXPECT_EQ(r2(1, 0), 0.0);
  EXPECT_EQ(r2(1, 1e-3), 0.0) << "a sum of squares of 5e-7 is none";
  EXPECT_EQ(r2(1e-5, 1), 1.0) << "nor is one of 2e-10";
  EXPECT_NEAR(r2(1, 2), 0.0, 1e-12);
  EXPECT_NEAR(r2(0.5, 2), 0.75, 1e-12);
}

TEST(Metric, ProbabilitiesAreComputedInFloat) {
  const at::Tensor scores = at::linspace(0.01, 0.99, 64).view({64, 1}).logit().to(at::kBFloat16);
  const at::Tensor target = at::arange(64).remainder(2);
  const MetricPtr half = make_metric("BinaryAUROC"), whole = make_metric("BinaryAUROC");
  half->update(scores, target);
  whole->update(scores.to(at::kFloat), target);
  EXPECT_EQ(half->sums(), whole->sums());
}

TEST(Metric, RecallOfSkippedSamplesAloneIsNothing) {
  const MetricPtr recall = make_metric(section_with({{"kind", std::string("RetrievalRecall")},
                                                     {"top_k", int64_t{1}},
                                                     {"empty_target_action", std::string("skip")}}));
  recall->update(at::rand({2, 3}), at::zeros({2, 3}, at::kLong));
  EXPECT_EQ(recall->compute(), 0.0);
}

// As where torchmetrics compares with each threshold.
TEST(Metric, ScoresThatAreNoNumbersAreBelowAllThresholds) {
  const at::Tensor scores = at::full({4, 1}, std::numeric_limits<float>::quiet_NaN());
  for (const char* kind : {"BinaryAUROC", "BinaryAveragePrecision"}) {
    const MetricPtr area = make_metric(kind);
    area->update(scores, classes({1, 0, 1, 1}));
    EXPECT_EQ(area->compute(), 0.0) << kind;
  }
}

TEST(Metric, LossMetricRefusesWeightsOfOtherClasses) {
  const Setting::Value loss =
      section_with({{"kind", std::string("cross_entropy")}, {"weight", list_value({1.0, 2.0, 3.0})}}).value;
  EXPECT_THAT(message_of_update(metric("LossMetric", {"loss", loss}), rows(0, 3), classes({0, 1, 0})),
              testing::HasSubstr("the loss has 3 weights, but the model has 2 outputs"));
}

// As a metric of a plugin may be.
struct Overflowing final : Metric {
  std::string name() const override { return "Overflowing"; }
  void update(const at::Tensor& outputs, const at::Tensor&) override { add(0, outputs.sum(1)); }
};

TEST(Metric, AnUpdateOfMoreNumbersThanItHasIsAUserError) {
  Overflowing metric;
  metric.update(rows(0, 2), classes({0, 0}));
  EXPECT_THAT(message_of<UserError>([&] {
                metric.update(rows(0, 3), classes({0, 0, 0}));
              }),
              testing::HasSubstr("the metric Overflowing adds 3 numbers to its sums from 0 on; it has 2"));
}

TEST(Metric, NameOfATableIsWhatItIsMeasuredUnder) {
  EXPECT_EQ(metric("CrossEntropy", {"name", std::string("mine")})->measured_name(), "mine");
  EXPECT_EQ(make_metric("CrossEntropy")->measured_name(), "CrossEntropy");
  EXPECT_THAT(
      [] {
        metric("CrossEntropy", {"name", std::string()});
      },
      testing::ThrowsMessage<UserError>(testing::HasSubstr("not empty")));
}

TEST(Metric, RootOfTheMeanSquaredErrorIsHadByItsKey) {
  const MetricPtr root = metric("MeanSquaredError", {"squared", false});
  root->update(at::ones({2, 3}), at::full({2, 3}, 4.0));
  EXPECT_DOUBLE_EQ(root->compute(), 3.0);
}

TEST(Metric, UnknownKeyIsAUserErrorThatSuggestsTheNearest) {
  EXPECT_THAT(
      [] {
        metric("MulticlassAccuracy", {"topk", int64_t{2}});
      },
      testing::ThrowsMessage<UserError>(testing::HasSubstr("did you mean top_k?")));
}

TEST(Metric, MissingKeyIsNamed) {
  EXPECT_THAT([] { make_metric("MIoU"); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("expected num_classes")));
}

TEST(Metric, UnknownNameIsAUserErrorThatSuggestsTheNearest) {
  EXPECT_THAT([] { make_metric("CrossEntrpy"); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("did you mean CrossEntropy?")));
}

}  // namespace
}  // namespace tutti

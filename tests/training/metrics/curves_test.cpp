#include "training/metrics/curves.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

using Keys = std::vector<std::pair<std::string, Setting::Value>>;

MetricPtr area(const char* kind, Keys keys = {}) {
  keys.emplace_back("kind", std::string(kind));
  return make_metric(section_with(keys));
}

// The part of the pairs of a positive and a negative in which the positive has the higher score.
double auroc(const at::Tensor& scores, const at::Tensor& truth) {
  const at::Tensor positive = scores.masked_select(truth),
                   negative = scores.masked_select(truth.logical_not());
  const at::Tensor difference = positive.unsqueeze(1) - negative.unsqueeze(0);
  return (difference.gt(0).to(at::kDouble) + difference.eq(0).to(at::kDouble) / 2).mean().item<double>();
}

// The mean over the positives of the precision of all scores from theirs on.
double average_precision(const at::Tensor& scores, const at::Tensor& truth) {
  const at::Tensor positive = scores.masked_select(truth);
  const at::Tensor above = scores.unsqueeze(0).ge(positive.unsqueeze(1));
  return (above.logical_and(truth).sum(1).to(at::kDouble) / above.sum(1)).mean().item<double>();
}

using Formula = double (*)(const at::Tensor&, const at::Tensor&);
const std::pair<const char*, Formula> kAreas[] = {{"AUROC", auroc}, {"AveragePrecision", average_precision}};

// Of which few are positive, with probabilities near 0 and equal scores.
at::Tensor rare_scores(at::IntArrayRef shape) {
  return at::arange(400).sin().mul(60).round().div(4).sub(12).view(shape);
}
at::Tensor rare_truth(at::IntArrayRef shape) { return at::arange(400).mul(7).cos().gt(0.9).view(shape); }

TEST(AreaUnderCurve, GoesThroughAllScores) {
  const at::Tensor scores = rare_scores({400}), truth = rare_truth({400});
  for (const auto& [kind, formula] : kAreas) {
    const MetricPtr whole = area((std::string("Binary") + kind).c_str());
    for (int64_t first = 0; first < 400; first += 100)
      whole->update(scores.narrow(0, first, 100), truth.narrow(0, first, 100).to(at::kLong));
    EXPECT_NEAR(whole->compute(), formula(scores, truth), 1e-12) << kind;
  }
}

TEST(AreaUnderCurve, OfLabelsIsAveraged) {
  const at::Tensor scores = rare_scores({100, 4}), truth = rare_truth({100, 4});
  for (const auto& [kind, formula] : kAreas) {
    const auto value = [&, kind = kind](const char* average) {
      const MetricPtr made = area((std::string("Multilabel") + kind).c_str(),
                                  {{"num_labels", int64_t{4}}, {"average", std::string(average)}});
      made->update(scores, truth.to(at::kLong));
      return made->compute();
    };
    double sum = 0, weighted = 0;
    for (int64_t label = 0; label < 4; ++label) {
      const at::Tensor column = truth.select(1, label);
      const double one = formula(scores.select(1, label), column);
      sum += one;
      weighted += one * column.sum().item<double>();
    }
    EXPECT_NEAR(value("macro"), sum / 4, 1e-12) << kind;
    EXPECT_NEAR(value("weighted"), weighted / truth.sum().item<double>(), 1e-12) << kind;
    EXPECT_NEAR(value("micro"), formula(scores.flatten(), truth.flatten()), 1e-12) << kind;
  }
}

TEST(AreaUnderCurve, OfClassesIsOfEachAgainstTheOthers) {
  const at::Tensor scores = rare_scores({100, 4}), target = at::arange(100).mul(3).remainder(4);
  const at::Tensor probability = scores.to(at::kDouble).softmax(1);
  for (const auto& [kind, formula] : kAreas) {
    const MetricPtr made = area((std::string("Multiclass") + kind).c_str(),
                                {{"num_classes", int64_t{4}}, {"average", std::string("none")}});
    made->update(scores, target);
    for (int64_t c = 0; c < 4; ++c)
      EXPECT_NEAR(made->values()[static_cast<std::size_t>(c)],
                  formula(probability.select(1, c), target.eq(c)), 1e-9)
          << kind << c;
  }
}

// Gathers the sums of all ranks into those of the first.
Metric& gathered(std::vector<MetricPtr>& ranks) {
  std::vector<double> counts;
  for (const MetricPtr& one : ranks) {
    const std::vector<double>& sums = one->sums();
    counts.push_back(sums[0] > 0 ? 2.0 * AreaUnderCurve::kMostScores : static_cast<double>(sums.size() / 2));
  }
  const auto world = static_cast<int>(ranks.size());
  for (int rank = 0; rank < world; ++rank)
    ranks[static_cast<std::size_t>(rank)]->gather(
        [&](const at::Tensor& sum) { sum.copy_(at::tensor(counts, at::kDouble)); }, rank, world);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    EXPECT_EQ(ranks[rank]->sums().size(), ranks[0]->sums().size());
    for (std::size_t i = 0; i < ranks[0]->sums().size(); ++i) ranks[0]->sums()[i] += ranks[rank]->sums()[i];
  }
  return *ranks[0];
}

// `samples` of `scores`, each on another of the ranks, of which the last has none.
double of_ranks(const char* kind, int world, const at::Tensor& scores, const at::Tensor& truth) {
  std::vector<MetricPtr> ranks;
  for (int rank = 0; rank < world; ++rank) ranks.push_back(area(kind));
  const int64_t used = std::max(1, world - 1), part = (scores.size(0) + used - 1) / used;
  for (int64_t first = 0; first < scores.size(0); first += part) {
    const int64_t count = std::min(part, scores.size(0) - first);
    ranks[static_cast<std::size_t>(first / part)]->update(scores.narrow(0, first, count),
                                                          truth.narrow(0, first, count).to(at::kLong));
  }
  return gathered(ranks).compute();
}

TEST(AreaUnderCurve, HasTheBitsOfOneRankOnSeveral) {
  const int64_t many = AreaUnderCurve::kMostScores + 1000;  // more than are kept
  const at::Tensor most = at::arange(many).sin().mul(6), of_most = at::arange(many).remainder(17).eq(3);
  for (const char* kind : {"BinaryAUROC", "BinaryAveragePrecision"})
    for (const int world : {2, 3, 5}) {
      EXPECT_EQ(of_ranks(kind, world, rare_scores({400}), rare_truth({400})),
                of_ranks(kind, 1, rare_scores({400}), rare_truth({400})))
          << kind << world;
      EXPECT_EQ(of_ranks(kind, world, most, of_most), of_ranks(kind, 1, most, of_most)) << kind << world;
    }
}

// Scores of positives are higher by one: the area is P(x + 1 > y) of two normal numbers.
TEST(AreaUnderCurve, OfTooManyScoresIsSaidToBeBinnedAndNear) {
  const int64_t many = AreaUnderCurve::kMostScores + 1000;
  at::Generator generator = at::detail::createCPUGenerator(7);
  const at::Tensor truth = at::arange(many).remainder(10).eq(0);
  const at::Tensor scores = at::randn({many}, generator) + truth.to(at::kFloat) - 5;
  const MetricPtr made = area("BinaryAUROC");
  made->update(scores.narrow(0, 0, 1000), truth.narrow(0, 0, 1000).to(at::kLong));
  EXPECT_EQ(made->note(), "");
  made->update(scores, truth.to(at::kLong));
  EXPECT_THAT(made->note(), testing::HasSubstr("BinaryAUROC is not exact"));
  EXPECT_NEAR(made->compute(), 0.5 * std::erfc(-0.5), 6e-3);
}

TEST(AreaUnderCurve, OfALabelWithoutACurveIsNoted) {
  const at::Tensor scores = rare_scores({100, 4}), two = at::arange(100).remainder(2),
                   one = at::zeros({100}, at::kLong);
  const auto note = [&](const char* kind, const char* average, const at::Tensor& target,
                        int64_t thresholds = 0) {
    Keys keys{{"num_classes", int64_t{4}}, {"average", std::string(average)}};
    if (thresholds > 0) keys.emplace_back("thresholds", thresholds);
    const MetricPtr made = area(kind, keys);
    made->update(scores, target);
    return made->note();
  };
  const std::string alike = ", of which the targets are all alike", none = ", of which no target is positive";
  EXPECT_EQ(note("MulticlassAUROC", "macro", two), "MulticlassAUROC counts 0 for labels 2, 3" + alike);
  EXPECT_EQ(note("MulticlassAUROC", "none", two), "MulticlassAUROC counts 0 for labels 2, 3" + alike);
  EXPECT_EQ(note("MulticlassAUROC", "macro", one), "MulticlassAUROC counts 0 for labels 0, 1, 2, 3" + alike);
  EXPECT_EQ(note("MulticlassAUROC", "macro", one, 50),
            "MulticlassAUROC counts 0 for labels 0, 1, 2, 3" + alike);
  EXPECT_EQ(note("MulticlassAUROC", "weighted", two), "MulticlassAUROC leaves out labels 2, 3" + alike);
  EXPECT_EQ(note("MulticlassAUROC", "weighted", two, 50), "MulticlassAUROC leaves out labels 2, 3" + alike);
  EXPECT_EQ(note("MulticlassAUROC", "weighted", one),
            "MulticlassAUROC leaves out labels 1, 2, 3, and counts 0 for label 0" + alike);
  EXPECT_EQ(note("MulticlassAveragePrecision", "weighted", two, 50),
            "MulticlassAveragePrecision leaves out labels 2, 3" + none);
  EXPECT_EQ(note("MulticlassAUROC", "macro", at::arange(100).remainder(4)), "");
  EXPECT_EQ(note("MulticlassAveragePrecision", "macro", two),
            "MulticlassAveragePrecision leaves out labels 2, 3" + none);
  EXPECT_EQ(note("MulticlassAveragePrecision", "macro", two, 50),
            "MulticlassAveragePrecision counts 0 for labels 2, 3" + none);
  for (const auto& [kind, words] : {std::pair("BinaryAUROC", " is 0: the targets are all alike"),
                                    std::pair("BinaryAveragePrecision", " is 0: no target is positive")}) {
    const MetricPtr made = area(kind);
    made->update(rare_scores({400}), at::zeros({400}, at::kLong));
    EXPECT_EQ(made->note(), std::string(kind) + words);
  }
}

TEST(AreaUnderCurve, InTrainingKeepsTheNumberOfItsSums) {
  const MetricPtr made = area("BinaryAveragePrecision");
  made->fix_size();
  const std::size_t sums = made->sums().size();
  for (int i = 0; i < 2; ++i) {
    made->reset();
    made->update(rare_scores({400}), rare_truth({400}).to(at::kLong));
    EXPECT_EQ(made->sums().size(), sums);
    EXPECT_NEAR(made->compute(), average_precision(rare_scores({400}), rare_truth({400})), 1e-3);
  }
}

TEST(AreaUnderCurve, IsNothingOfScoresThatAreNoNumbers) {
  const at::Tensor scores = at::full({4}, std::nanf(""));
  for (const char* kind : {"BinaryAUROC", "BinaryAveragePrecision"}) {
    const MetricPtr kept = area(kind), binned = area(kind);
    binned->fix_size();
    for (const MetricPtr* one : {&kept, &binned}) {
      (*one)->update(scores, at::tensor({1, 0, 1, 1}));
      EXPECT_EQ((*one)->compute(), 0.0) << kind;
    }
  }
}

TEST(MetricCounts, ComeFromTheDataWhereTheTableHasNone) {
  const DataCounts counts{.classes = 3, .labels = 2};
  const auto parts = [&](const char* kind, Keys keys) {
    keys.emplace_back("kind", std::string(kind));
    return make_metric(section_with(keys), /*composer=*/false, counts)->parts().size();
  };
  const std::pair<std::string, Setting::Value> each{"average", std::string("none")};
  EXPECT_EQ(parts("MulticlassRecall", {each}), 3U);
  EXPECT_EQ(parts("MulticlassRecall", {each, {"num_classes", int64_t{5}}}), 5U);
  EXPECT_EQ(parts("MultilabelAUROC", {each}), 2U);
  EXPECT_EQ(parts("ConfusionMatrix", {}), 9U);
  for (const char* kind : {"MIoU", "Dice", "MulticlassF1Score", "MulticlassAUROC", "ConfusionMatrix"})
    EXPECT_THAT([&] { area(kind); },
                testing::ThrowsMessage<UserError>(testing::HasSubstr("expected num_classes")))
        << kind;
}

}  // namespace
}  // namespace tutti

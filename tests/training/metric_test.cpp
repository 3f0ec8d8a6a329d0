#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/golden/golden_file.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

struct Case {
  const char* group;
  const char* metric;
};

class GoldenMetric : public testing::TestWithParam<Case> {};

TEST_P(GoldenMetric, GivesComposersValueAfterEveryUpdate) {
  const GoldenCase c("metrics.h5", GetParam().group);
  const MetricPtr metric = make_metric(GetParam().metric);
  at::Tensor running = at::empty({3}, at::kDouble);
  for (int i = 0; i < 3; ++i) {
    metric->update(c.tensor("in/preds_" + std::to_string(i)), c.tensor("in/target_" + std::to_string(i)));
    running[i] = metric->compute();
  }
  c.expect_close(running, "out/running");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenMetric,
                         testing::Values(Case{"case_0", "MulticlassAccuracy"}, Case{"case_3", "CrossEntropy"},
                                         Case{"case_4", "CrossEntropy"}, Case{"case_5", "CrossEntropy"},
                                         Case{"case_6", "LanguageCrossEntropy"},
                                         Case{"case_7", "LanguagePerplexity"}),
                         [](const auto& info) {
                           return std::string(info.param.metric) + "_" + info.param.group;
                         });

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

TEST(Metric, ResetForgetsEverything) {
  const MetricPtr metric = make_metric("CrossEntropy");
  metric->update(at::eye(4), at::tensor({0, 1, 0, 0}, at::kLong));
  metric->reset();
  EXPECT_THAT(metric->sums(), testing::Each(0.0));
}

TEST(Metric, UnknownNameIsAUserErrorThatSuggestsTheNearest) {
  EXPECT_THAT([] { make_metric("CrossEntrpy"); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("did you mean CrossEntropy?")));
}

}  // namespace
}  // namespace tutti

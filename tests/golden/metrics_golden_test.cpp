#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/golden/golden_file.h"
#include "tests/recipe/section.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

using Keys = std::vector<std::pair<std::string, Setting::Value>>;

constexpr const char* kAccuracy = "torchmetrics.classification.MulticlassAccuracy";

const std::map<std::string, std::string> kMetricKinds = {
    {kAccuracy, "MulticlassAccuracy"},
    {"torchmetrics.text.Perplexity", "LanguagePerplexity"},
    {"torchmetrics.MeanSquaredError", "MeanSquaredError"},
    {"composer.metrics.CrossEntropy", "CrossEntropy"},
    {"composer.metrics.LanguageCrossEntropy", "LanguageCrossEntropy"},
    {"composer.metrics.LanguagePerplexity", "LanguagePerplexity"},
    {"composer.metrics.MaskedAccuracy", "MaskedAccuracy"},
    {"composer.metrics.BinaryF1Score", "BinaryF1Score"},
    {"composer.metrics.MIoU", "MIoU"},
    {"composer.metrics.Dice", "Dice"},
    {"composer.metrics.LossMetric", "LossMetric"},
};

// A case names its loss in its title alone: "LossMetric(MSELoss)".
const std::map<std::string, std::string> kLossKinds = {
    {"MSELoss", "mse"},
    {"L1Loss", "l1"},
    {"SmoothL1Loss", "smooth_l1"},
    {"BCEWithLogitsLoss", "bce_with_logits"},
    {"CrossEntropyLoss", "soft_cross_entropy"},
    {"soft_cross_entropy", "soft_cross_entropy"},
    {"binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits"},
    {"DiceLoss", "dice"}};

std::string in_parentheses(const std::string& title) {
  const size_t open = title.find('(');
  return open == std::string::npos ? "" : title.substr(open + 1, title.find(')', open) - open - 1);
}

// Keys for Composer's treatment of batches and classes, where tutti's default differs (docs/compat.md).
void add_compatible_keys(const GoldenCase& c, const std::string& kind, Keys& keys) {
  if (kind == "CrossEntropy" || kind == "LossMetric" || kind == "Dice")
    keys.emplace_back("batch_means", true);
  if (kind == "LossMetric")
    keys.emplace_back("loss", known(kLossKinds, in_parentheses(c.text("title")), "loss of a LossMetric"));
  if (kind == "Dice") keys.emplace_back("num_classes", static_cast<int64_t>(c.number("num_classes")) + 1);
}

MetricPtr metric_of(const GoldenCase& c) {
  const std::string kind = known(kMetricKinds, c.text("composer_api"), "metric");
  Keys keys = {{"kind", kind}};
  add_compatible_keys(c, kind, keys);
  for (const char* key : {"num_classes", "top_k", "ignore_index"})
    if (c.has(key) && kind != "Dice") keys.emplace_back(key, static_cast<int64_t>(c.number(key)));
  if (kind == "MulticlassAccuracy")
    keys.emplace_back("average", c.has("average") ? c.text("average") : "macro");
  if (c.has("squared")) keys.emplace_back("squared", c.number("squared") != 0.0);
  return make_metric(section_with(keys));
}

// The number of updates of the metric in the case: "in" holds preds_<k> and target_<k> for update k, and
// nothing else.
int64_t updates_of(const GoldenCase& c) {
  int64_t updates = 0;
  std::set<std::string> inputs;
  for (; c.holds("in/preds_" + std::to_string(updates)); ++updates)
    for (const char* name : {"preds_", "target_"}) inputs.insert(name + std::to_string(updates));
  inputs.insert("preds_0");
  c.expect_only({"num_classes", "top_k", "ignore_index", "average", "squared", "n_updates"}, inputs);
  if (c.has("n_updates")) {
    EXPECT_EQ(updates, c.number("n_updates")) << c.title();
  }
  return updates;
}

// torchmetrics also takes labels for scores.
at::Tensor scores_of(const GoldenCase& c, const at::Tensor& preds, const at::Tensor& target) {
  if (c.text("composer_api") != kAccuracy || preds.dim() != target.dim()) return preds;
  return at::one_hot(preds.to(at::kLong), static_cast<int64_t>(c.number("num_classes")))
      .movedim(-1, 1)
      .to(at::kFloat);
}

void update(Metric& metric, const GoldenCase& c, int64_t i, int64_t updates) {
  metric.begin_batch(i, updates);
  const at::Tensor target = c.tensor("in/target_" + std::to_string(i));
  metric.update(scores_of(c, c.tensor("in/preds_" + std::to_string(i)), target), target);
}

class GoldenMetric : public testing::TestWithParam<std::string> {
 protected:
  // One rank's value after every update.
  at::Tensor running() const {
    const MetricPtr metric = metric_of(case_);
    at::Tensor values = at::empty({updates_}, at::kDouble);
    for (int64_t i = 0; i < updates_; ++i) {
      update(*metric, case_, i, updates_);
      values[i] = metric->compute();
    }
    return values;
  }

  GoldenCase case_{golden_path("metrics.h5"), GetParam()};
  int64_t updates_ = updates_of(case_);
};

TEST_P(GoldenMetric, GivesComposersValueAfterEveryUpdate) {
  if (case_.has("error")) {
    EXPECT_THROW(running(), UserError) << case_.title();
    return;
  }
  case_.expect_only_outputs({"running", "value"});
  const at::Tensor values = running();
  case_.expect_close(values, "out/running");
  case_.expect_close(values[-1], "out/value");
}

TEST_P(GoldenMetric, GivesItWhenRanksShareTheUpdatesToo) {
  if (case_.has("error")) GTEST_SKIP() << "what is refused needs no second rank";
  const MetricPtr ranks[2] = {metric_of(case_), metric_of(case_)};
  for (int64_t i = 0; i < updates_; ++i) update(*ranks[i % 2], case_, i, updates_);
  for (size_t i = 0; i < ranks[0]->sums().size(); ++i) ranks[0]->sums()[i] += ranks[1]->sums()[i];
  case_.expect_close(at::scalar_tensor(ranks[0]->compute(), at::kDouble), "out/value");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenMetric, testing::ValuesIn(golden_cases(golden_path("metrics.h5"))),
                         [](const auto& info) { return info.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenMetric);

}  // namespace
}  // namespace tutti

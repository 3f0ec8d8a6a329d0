#include "training/metrics/loss_metrics.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/model.h"
#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

// A loss of two parts, the means of columns 0 and 1, over the targets above zero.
struct Parted : Model {
  TensorTree forward(const Batch& batch) override { return batch["input"]; }
  double loss_weight(const Batch& batch) const override { return batch["target"].gt(0).sum().item<double>(); }
  at::Tensor mean(const Batch& batch, int64_t column) const {
    return batch["input"].select(1, column).masked_select(batch["target"].gt(0)).mean();
  }
  at::Tensor loss(const Outputs&, const Batch& batch) override {
    return mean(batch, 0) + 3.0 * mean(batch, 1);
  }
  const char* kind() const override { return "Parted"; }
};
struct PartedByName final : Parted, LossParts {
  std::vector<Part> loss_parts() const override { return {{"a", 1.0}, {"b", 3.0}}; }
  std::vector<at::Tensor> part_means(const Outputs&, const Batch& batch) const override {
    return {mean(batch, 0), mean(batch, 1)};
  }
  Compared compared(const Outputs&, const Batch&, const std::string&, const std::string&) const override {
    return {};
  }
};

struct PartedWithoutMean final : Parted {
  at::Tensor loss(const Outputs&, const Batch& batch) override { return batch["input"].mean(1); }
};

MetricPtr measured_in_two(Model& model, Batch batch) {
  MetricPtr metric = loss_metric(model);
  for (const auto& [first, count] : {std::pair{0, 4}, std::pair{4, 1}, std::pair{5, 1}}) {
    const Batch part = batch.narrow(first, count);
    metric->measure(model, part, model.forward(part));
  }
  return metric;
}

TEST(LossMetrics, OfTheModelsLossWeighsBatchesByWhatCounts) {
  Batch batch;
  batch.set("input", at::tensor({1.0, 9.0, 5.0, 9.0, 2.0, 9.0, 3.0, 9.0, 6.0, 2.0, 0.0, 0.0}).view({6, 2}));
  batch.set("target", at::tensor({1, 0, 0, 0, 1, 0}, at::kLong));  // none in the last batch
  Parted whole;
  EXPECT_DOUBLE_EQ(measured_in_two(whole, batch)->compute(), 3.5 + 3 * 5.5);
  PartedByName parts;
  const MetricPtr found = measured_in_two(parts, batch);
  EXPECT_EQ(found->parts(), (std::vector<std::string>{"", "/a", "/b"}));
  EXPECT_EQ(found->values(), (std::vector<double>{3.5 + 3 * 5.5, 3.5, 5.5}));
}

TEST(LossMetrics, OfALossThatIsNotOneNumberIsAUserError) {
  PartedWithoutMean model;
  const Batch batch = TensorTree::Children{{"input", at::ones({2, 2})}, {"target", at::ones({2}, at::kLong)}};
  EXPECT_THROW(loss_metric(model)->measure(model, batch, batch["input"]), UserError);
}

// At 156 a byte is -100.
TEST(AimedMetric, TakesBytesAsClasses) {
  const at::Tensor classes = at::tensor({0, 156, 3, 156}, at::kLong);
  const at::Tensor outputs = at::one_hot(classes, 157).to(at::kFloat);
  const Batch batch = TensorTree::Children{{"bytes", classes.to(at::kByte)}, {"classes", classes}};
  Parted model;
  for (const char* kind : {"CrossEntropy", "LanguageCrossEntropy", "MulticlassAccuracy"}) {
    const auto found = [&](const std::string& target) {
      const MetricPtr metric = make_metric(section_with({{"kind", std::string(kind)}, {"target", target}}));
      metric->measure(model, batch, outputs);
      return metric->sums();
    };
    EXPECT_EQ(found("bytes"), found("classes")) << kind;
  }
}

}  // namespace
}  // namespace tutti

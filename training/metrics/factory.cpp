#include "training/metrics/factory.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/smooth_l1_loss.h>

#include <sstream>

#include "models/losses.h"
#include "recipe/resolve.h"
#include "runtime/error.h"
#include "training/metrics/classification.h"
#include "training/metrics/loss_metrics.h"
#include "training/metrics/options.h"
#include "training/metrics/segmentation.h"

namespace tutti {
namespace {

// torch would broadcast: [N, 1] and [N] would give a mean over [N, N].
template <class Mean>
auto with_equal_shapes(const std::string& name, const Mean& mean) {
  return [=](const at::Tensor& outputs, const at::Tensor& target) {
    if (outputs.sizes() == target.sizes()) return mean(outputs, target);
    std::ostringstream message;
    message << "LossMetric: " << name << " needs targets of the outputs' shape, " << outputs.sizes()
            << "; they are " << target.sizes();
    throw UserError(message.str());
  };
}

LossMetric::Loss loss_named(const std::string& name) {
  using at::Tensor;
  const auto samples = [](const Tensor& target) { return static_cast<double>(target.size(0)); };
  const auto checked = [&](const auto& mean) {
    return LossMetric::Loss{with_equal_shapes(name, mean), samples};
  };
  if (name == "mse") return checked([](const Tensor& x, const Tensor& y) { return at::mse_loss(x, y); });
  if (name == "l1") return checked([](const Tensor& x, const Tensor& y) { return at::l1_loss(x, y); });
  if (name == "smooth_l1")
    return checked([](const Tensor& x, const Tensor& y) { return at::smooth_l1_loss(x, y); });
  if (name == "bce_with_logits")
    return checked(
        [](const Tensor& x, const Tensor& y) { return at::binary_cross_entropy_with_logits(x, y); });
  if (name == "binary_cross_entropy_with_logits")
    return {[](const Tensor& x, const Tensor& y) { return tutti::binary_cross_entropy_with_logits(x, y); },
            samples};
  if (name == "dice") return {[](const Tensor& x, const Tensor& y) { return dice_loss(x, y); }, samples};
  return {[](const Tensor& x, const Tensor& y) { return soft_cross_entropy(x, y); }, counted_targets};
}

Setting table_of(const Setting& name) {
  Setting table;
  table.value = Setting::Table();
  table.path = name.path;
  table.position = name.position;
  table.table().emplace_back("kind", name);
  return table;
}

}  // namespace

MetricPtr MulticlassAccuracyOptions::make(const Setting& keys, bool) const {
  if (macro && num_classes == 0) keys.at("average").fail("a mean over classes needs num_classes");
  return std::make_unique<MulticlassAccuracy>(*this);
}

MetricPtr CrossEntropyOptions::make(const Setting&, bool composer) const {
  return std::make_unique<CrossEntropy>(ignore_index, batch_means.value_or(composer));
}

MetricPtr BinaryF1ScoreOptions::make(const Setting&, bool) const { return std::make_unique<BinaryF1Score>(); }

MetricPtr MIoUOptions::make(const Setting&, bool) const {
  return std::make_unique<MIoU>(num_classes, ignore_index);
}

MetricPtr DiceOptions::make(const Setting&, bool composer) const {
  return std::make_unique<Dice>(num_classes, batch_means.value_or(composer));
}

MetricPtr LanguageCrossEntropyOptions::make(const Setting&, bool) const {
  return std::make_unique<LanguageCrossEntropy>(ignore_index);
}

MetricPtr LanguagePerplexityOptions::make(const Setting&, bool) const {
  return std::make_unique<LanguagePerplexity>(ignore_index);
}

MetricPtr MaskedAccuracyOptions::make(const Setting&, bool) const {
  return std::make_unique<MaskedAccuracy>(ignore_index);
}

MetricPtr MeanSquaredErrorOptions::make(const Setting&, bool) const {
  return std::make_unique<MeanSquaredError>(squared);
}

MetricPtr LossMetricOptions::make(const Setting&, bool composer) const {
  return std::make_unique<LossMetric>(loss_named(loss), batch_means.value_or(composer));
}

MetricPtr make_metric(const Setting& setting, bool composer) {
  const Setting keys = resolve_section(metric_catalog(), setting.is_text() ? table_of(setting) : setting, {});
  MetricPtr metric = MetricKinds::made<MetricPtr>(keys, composer);
  if (!keys.has("name")) return metric;
  if (keys.at("name").text().empty()) keys.at("name").fail("expected a name that is not empty");
  metric->set_measured_name(keys.at("name").text());
  return metric;
}

MetricPtr make_metric(const std::string& name, bool composer) {
  return make_metric(Setting(name, "metric", {}), composer);
}

}  // namespace tutti

#include "training/metrics/factory.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/smooth_l1_loss.h>

#include <map>
#include <sstream>

#include "models/losses.h"
#include "recipe/resolve.h"
#include "runtime/error.h"
#include "training/metrics/catalog.h"
#include "training/metrics/classification.h"
#include "training/metrics/loss_metrics.h"
#include "training/metrics/segmentation.h"

namespace tutti {
namespace {

MetricPtr multiclass_accuracy(const Setting& keys, bool) {
  MulticlassAccuracy::Options options{.macro = keys.at("average").text() == "macro",
                                      .top_k = keys.at("top_k").integer(),
                                      .ignore_index = keys.at("ignore_index").integer()};
  if (keys.has("num_classes")) options.num_classes = keys.at("num_classes").integer();
  if (options.macro && options.num_classes == 0)
    keys.at("average").fail("a mean over classes needs num_classes");
  return std::make_unique<MulticlassAccuracy>(options);
}

bool batch_means(const Setting& keys, bool composer) {
  return keys.has("batch_means") ? keys.at("batch_means").boolean() : composer;
}

MetricPtr cross_entropy(const Setting& keys, bool composer) {
  return std::make_unique<CrossEntropy>(keys.at("ignore_index").integer(), batch_means(keys, composer));
}

template <class M>
MetricPtr with_ignore_index(const Setting& keys, bool) {
  return std::make_unique<M>(keys.at("ignore_index").integer());
}

MetricPtr binary_f1_score(const Setting&, bool) { return std::make_unique<BinaryF1Score>(); }

MetricPtr miou(const Setting& keys, bool) {
  return std::make_unique<MIoU>(keys.at("num_classes").integer(), keys.at("ignore_index").integer());
}

MetricPtr dice(const Setting& keys, bool composer) {
  return std::make_unique<Dice>(keys.at("num_classes").integer(), batch_means(keys, composer));
}

MetricPtr mean_squared_error(const Setting& keys, bool) {
  return std::make_unique<MeanSquaredError>(keys.at("squared").boolean());
}

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

MetricPtr loss_metric(const Setting& keys, bool composer) {
  return std::make_unique<LossMetric>(loss_named(keys.at("loss").text()), batch_means(keys, composer));
}

using MetricMaker = MetricPtr (*)(const Setting& keys, bool composer);

const std::map<std::string, MetricMaker>& metric_makers() {
  static const std::map<std::string, MetricMaker> all = {
      {"MulticlassAccuracy", multiclass_accuracy},
      {"CrossEntropy", cross_entropy},
      {"LanguageCrossEntropy", with_ignore_index<LanguageCrossEntropy>},
      {"LanguagePerplexity", with_ignore_index<LanguagePerplexity>},
      {"MaskedAccuracy", with_ignore_index<MaskedAccuracy>},
      {"BinaryF1Score", binary_f1_score},
      {"MIoU", miou},
      {"Dice", dice},
      {"MeanSquaredError", mean_squared_error},
      {"LossMetric", loss_metric},
  };
  return all;
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

MetricPtr make_metric(const Setting& setting, bool composer) {
  const Setting keys = resolve_section(metric_catalog(), setting.is_text() ? table_of(setting) : setting, {});
  MetricPtr metric = metric_makers().at(keys.at("kind").text())(keys, composer);
  if (!keys.has("name")) return metric;
  if (keys.at("name").text().empty()) keys.at("name").fail("expected a name that is not empty");
  metric->set_measured_name(keys.at("name").text());
  return metric;
}

MetricPtr make_metric(const std::string& name, bool composer) {
  return make_metric(Setting(name, "metric", {}), composer);
}

}  // namespace tutti

#include "training/metrics/factory.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "models/loss.h"
#include "recipe/plugin_maker.h"
#include "recipe/resolve.h"
#include "runtime/error.h"
#include "training/metrics/aimed.h"
#include "training/metrics/answers.h"
#include "training/metrics/choices.h"
#include "training/metrics/classification.h"
#include "training/metrics/confusion_matrix.h"
#include "training/metrics/curves.h"
#include "training/metrics/loss_metrics.h"
#include "training/metrics/options.h"
#include "training/metrics/regression.h"
#include "training/metrics/segmentation.h"
#include "training/metrics/stat_scores.h"

namespace tutti {
namespace {

template <class Made, class... Args>
MetricPtr made(const Setting& keys, Args&&... args) {
  Aim aim(keys);
  if (!aim.given()) return std::make_unique<Made>(std::forward<Args>(args)...);
  return std::make_unique<Aimed<Made>>(std::move(aim), std::forward<Args>(args)...);
}

// A metric of a whole batch.
template <class Made, class... Args>
MetricPtr made_of_batch(const Setting& keys, Args&&... args) {
  for (const char* key : {"output", "target"})
    if (keys.has(key)) keys.at(key).fail("this metric is of all outputs and arrays of a batch");
  return std::make_unique<Made>(std::forward<Args>(args)...);
}

// A number that the recipe may leave to the data.
int64_t known(const Setting& keys, const char* key, int64_t number) {
  if (number == 0)
    keys.fail(std::string("expected ") + key + ", since the data do not say how many there are");
  return number;
}

// Made once: a run makes many metrics.
const Catalog& catalog_of_metrics() {
  static const Catalog catalog = metric_catalog();
  return catalog;
}

bool declares(const Setting& keys, const std::string& key) {
  const Catalog& catalog = catalog_of_metrics();
  const auto declared = catalog.keys_of(catalog.find_entry(keys.at("kind").text()));
  return std::ranges::any_of(declared, [&](const Key& one) { return one.name == key; });
}

// Of accuracies only the mean over classes needs their number.
bool needs_counts(const Setting& keys) {
  return keys.at("kind").text() != "MulticlassAccuracy" || keys.at("average").text() == "macro";
}

void fill_in(Setting& keys, const char* key, int64_t number) {
  if (number == 0 || keys.has(key) || !declares(keys, key)) return;
  const Setting data_number(number, keys.path + "." + key, keys.position);
  if (Setting* none = keys.find(key))
    *none = data_number;
  else
    keys.table().emplace_back(key, data_number);
}

}  // namespace

MetricPtr MulticlassAccuracyOptions::make(const Setting& keys, bool) const {
  if (macro && num_classes == 0) keys.at("average").fail("a mean over classes needs num_classes");
  return made<MulticlassAccuracy>(keys, *this);
}

MetricPtr CrossEntropyOptions::make(const Setting& keys, bool composer) const {
  return made<CrossEntropy>(keys, ignore_index, batch_means.value_or(composer));
}

MetricPtr MIoUOptions::make(const Setting& keys, bool) const {
  return made<MIoU>(keys, known(keys, "num_classes", num_classes), ignore_index);
}

MetricPtr DiceOptions::make(const Setting& keys, bool composer) const {
  return made<Dice>(keys, known(keys, "num_classes", num_classes), batch_means.value_or(composer));
}

MetricPtr LanguageCrossEntropyOptions::make(const Setting& keys, bool) const {
  return made<LanguageCrossEntropy>(keys, ignore_index);
}

MetricPtr LanguagePerplexityOptions::make(const Setting& keys, bool) const {
  return made<LanguagePerplexity>(keys, ignore_index);
}

MetricPtr MaskedAccuracyOptions::make(const Setting& keys, bool) const {
  return made<MaskedAccuracy>(keys, ignore_index);
}

MetricPtr MeanSquaredErrorOptions::make(const Setting& keys, bool) const {
  return made<MeanSquaredError>(keys, squared);
}

MetricPtr MeanAbsoluteErrorOptions::make(const Setting& keys, bool) const {
  return made<MeanAbsoluteError>(keys);
}

MetricPtr R2ScoreOptions::make(const Setting& keys, bool) const {
  return made<R2Score>(keys, num_outputs, by_variance);
}

MetricPtr ConfusionMatrixOptions::make(const Setting& keys, bool) const {
  known(keys, "num_classes", num_classes);
  return made<ConfusionMatrix>(keys, *this);
}

MetricPtr RetrievalRecallOptions::make(const Setting& keys, bool) const {
  return made<RetrievalRecall>(keys, *this);
}

template <Score kScore>
MetricPtr BinaryScoreOptions<kScore>::make(const Setting& keys, bool) const {
  return made<BinaryScore>(keys, keys.at("kind").text(), kScore, threshold, ignore_index);
}

template <Score kScore>
MetricPtr MulticlassScoreOptions<kScore>::make(const Setting& keys, bool) const {
  return made<MulticlassScore>(keys, keys.at("kind").text(), kScore, average,
                               known(keys, "num_classes", num_classes), ignore_index);
}

template <Score kScore>
MetricPtr MultilabelScoreOptions<kScore>::make(const Setting& keys, bool) const {
  return made<MultilabelScore>(keys, keys.at("kind").text(), kScore,
                               MultilabelScore::Options{.average = average,
                                                        .num_labels = known(keys, "num_labels", num_labels),
                                                        .threshold = threshold,
                                                        .ignore_index = ignore_index});
}

template <Area kArea>
MetricPtr BinaryAreaOptions<kArea>::make(const Setting& keys, bool) const {
  return made<BinaryArea>(keys, keys.at("kind").text(), kArea, thresholds, ignore_index);
}

template <Area kArea>
MetricPtr MulticlassAreaOptions<kArea>::make(const Setting& keys, bool) const {
  const AreaOptions options{kArea, average, known(keys, "num_classes", num_classes), thresholds};
  return made<MulticlassArea>(keys, keys.at("kind").text(), options, ignore_index);
}

template <Area kArea>
MetricPtr MultilabelAreaOptions<kArea>::make(const Setting& keys, bool) const {
  const AreaOptions options{kArea, average, known(keys, "num_labels", num_labels), thresholds};
  return made<MultilabelArea>(keys, keys.at("kind").text(), options, ignore_index);
}

MetricPtr ChoiceAccuracyOptions::make(const Setting& keys, bool) const {
  return made_of_batch<ChoiceAccuracy>(keys, kind().entry.name, ChoiceLength::kNone);
}

MetricPtr ChoiceAccuracyNormOptions::make(const Setting& keys, bool) const {
  return made_of_batch<ChoiceAccuracy>(keys, kind().entry.name, length);
}

MetricPtr ExactMatchOptions::make(const Setting& keys, bool) const {
  return made_of_batch<ExactMatch>(keys, *this);
}

MetricPtr BleuOptions::make(const Setting& keys, bool) const { return made_of_batch<BleuScore>(keys); }

MetricPtr ChrfOptions::make(const Setting& keys, bool) const { return made_of_batch<ChrfScore>(keys); }

MetricPtr LossMetricOptions::make(const Setting& keys, bool composer) const {
  return made<LossMetric>(keys, make_loss(loss), batch_means.value_or(composer));
}

MetricPtr make_metric(const Setting& setting, bool composer, const DataCounts& counts) {
  Setting keys =
      resolve_section(catalog_of_metrics(), setting.is_text() ? table_of_kind(setting) : setting, {});
  const bool plugged = is_of_plugin(keys);
  if (!plugged && needs_counts(keys)) {
    fill_in(keys, "num_classes", counts.classes);
    fill_in(keys, "num_labels", counts.labels);
  }
  MetricPtr metric = plugged ? made_by_plugin<MetricPtr>(keys) : MetricKinds::made<MetricPtr>(keys, composer);
  const char* const name = plugged ? "measured_name" : "name";  // a plugin's `name` is that of its metric
  if (!keys.has(name)) return metric;
  if (keys.at(name).text().empty()) keys.at(name).fail("expected a name that is not empty");
  metric->set_measured_name(keys.at(name).text());
  return metric;
}

MetricPtr make_metric(const std::string& name, bool composer, const DataCounts& counts) {
  return make_metric(Setting(name, "metric", {}), composer, counts);
}

}  // namespace tutti

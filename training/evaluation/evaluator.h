#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/make_dataset.h"
#include "models/metric.h"
#include "recipe/setting.h"
#include "training/settings.h"
#include "training/state.h"

namespace tutti {

// A dataset to evaluate on, with its metrics and interval: composer.core.Evaluator.
struct Evaluator {
  std::string label;  // "eval": its metrics are metrics/eval/MulticlassAccuracy, ...
  Setting section;    // [data.eval] or one of [[evaluators]], resolved; for metrics and errors
  DataSettings loading = {};
  Time interval = {};  // 0 = never
  // The largest number of samples of a forward pass on a rank, if the recipe gives one.
  int64_t microbatch = std::numeric_limits<int64_t>::max();
  DatasetPtr data = nullptr;  // with per-rank datasets: of the first rank of this process
  PerRankData own = {};
  int64_t global_batch = 0;  // samples
  int64_t batches = 0;       // of an evaluation

  const DatasetPtr& data_of(int rank) const { return own.of(rank, data); }
  int64_t samples(int data_world) const { return own.samples_of_all(data_world, data); }

  // Without data. The interval is the section's, or else [train]'s.
  static Evaluator read(const Setting& section, const TrainSettings& train);

  bool names_metrics() const;  // false: the metrics are the model's own
  std::vector<std::string> metric_names(const Model& model) const;
  // The metrics, with empty sums: the model's, or those named by metric_names; the section's tables, which
  // replace metrics of equal names; and the model's loss, unless the section says `loss = false` or another
  // metric is named "loss". A text in metric_names is a regular expression for names of the model's metrics,
  // or else the name of another metric. `composer`: where Composer and tutti differ, do as Composer. Throws
  // UserError for an unknown metric.
  std::vector<MetricPtr> metrics(const Model& model, bool composer) const;
};

// The metrics of the model in training, with empty sums.
std::vector<MetricPtr> train_metrics(const Model& model, bool composer);

// The names of all metrics, for State::measured.
std::map<std::string, std::vector<std::string>> measured_metrics(const std::vector<Evaluator>& evaluators,
                                                                 const Model& model);

// The logged names ("metrics/eval/MulticlassAccuracy") of all evaluators with an interval.
std::vector<std::string> evaluation_metrics(const std::vector<Evaluator>& evaluators, const Model& model);

}  // namespace tutti

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/readers/make_dataset.h"
#include "models/metric.h"
#include "recipe/setting.h"
#include "training/state.h"
#include "training/time/time.h"

namespace tutti {

// One of the things that a run is evaluated on, and how: composer.core.Evaluator.
struct Evaluator {
  std::string label;  // "eval": its metrics are metrics/eval/MulticlassAccuracy, ...
  Setting section;    // [data.eval] or one of [[evaluators]], resolved
  DatasetPtr data;    // where each rank has its own, the first one's of this process
  PerRankData own = {};
  int64_t global_batch = 0;  // samples
  int64_t batches = 0;       // of an evaluation

  const DatasetPtr& data_of(int rank) const { return own.of(rank, data); }
  int64_t samples(int world) const { return own.samples_of_all(world, data); }

  // "ba", "ep", ...: its own, or [train]'s.
  Time interval(const Setting& recipe) const;
  // Samples of a forward pass on a rank; the whole of its part of a batch when the recipe does not say, or
  // "auto".
  int64_t microbatch() const;
  // The names of what it measures: its own list, else what the model measures.
  std::vector<std::string> metric_names(const Model& model) const;
  // The metrics, empty. Of metric_names, regular expressions, those of the model's in whose names one is
  // found, then those that the others name. `composer`: Composer's way where tutti's is another. Throws
  // UserError for a metric that there is not.
  std::vector<MetricPtr> metrics(const Model& model, bool composer) const;
};

// Those that the model keeps in training, empty.
std::vector<MetricPtr> train_metrics(const Model& model, bool composer);

// The names of all that is measured, for State::measured.
std::map<std::string, std::vector<std::string>> measured_metrics(const std::vector<Evaluator>& evaluators,
                                                                 const Model& model);

// "metrics/eval/MulticlassAccuracy" of every evaluator that ever evaluates.
std::vector<std::string> evaluation_metrics(const std::vector<Evaluator>& evaluators, const Setting& recipe,
                                            const Model& model);

}  // namespace tutti

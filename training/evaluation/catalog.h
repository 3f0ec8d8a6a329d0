#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "recipe/section.h"
#include "recipe/time/time.h"

namespace tutti {

// The keys of [data.eval] and [[evaluators]], whatever their kind, beside those of all data
// (data/data_settings.h).
struct EvaluatorKeys {
  Given<std::string> label = "eval";
  Setting metric_names, metrics;  // texts and tables, or none
  bool loss = true;
  std::optional<Time> eval_interval;  // as [train] says when absent
  // Samples of a forward pass on a rank; the largest number where the recipe gives none.
  int64_t device_eval_microbatch_size = std::numeric_limits<int64_t>::max();

  static Kind<EvaluatorKeys> kind();
};

// [data.eval], the evaluator "eval", and [[evaluators]], any number of further evaluators.
Catalog eval_catalog();
Catalog evaluators_catalog();

}  // namespace tutti

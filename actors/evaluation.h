#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/evaluator.h"
#include "runtime/error.h"
#include "training/engine.h"
#include "training/state.h"

namespace tutti {

using NamedValues = std::vector<std::pair<std::string, double>>;
// This rank's part of an evaluation batch, in order; none where the run was asked to stop.
using FetchBatch = std::function<std::optional<Batch>(int64_t index)>;
using SumOverRanks = std::function<void(at::Tensor values)>;  // float64, in place
using Stopwatch = std::function<double()>;  // seconds since the evaluation began; 0 on ranks other than 0

// An evaluation that memory does not suffice for, one sample at a time. All ranks throw it alike.
class EvaluationTooLarge : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// Throws UserError, which blames the evaluator's section, where one of the metrics that it names cannot
// measure what the model makes of a sample of the data.
void try_metrics(State& state, const Evaluator& evaluator, const Dataset& data);

// Runs the model over every batch of the evaluator's data and sums the metrics over ranks. The same values on
// every rank, by their names in metrics.jsonl; nothing where some rank was asked to stop, on all. Runs the
// events from EVAL_START to EVAL_END, and keeps the state's part about evaluations. What does not fit into
// memory is done in smaller parts; throws EvaluationTooLarge where that is not enough.
std::optional<NamedValues> evaluate(State& state, Engine& engine, const Evaluator& evaluator,
                                    const FetchBatch& fetch, const SumOverRanks& sum,
                                    const Stopwatch& stopwatch);

}  // namespace tutti

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training/engine.h"
#include "training/state.h"

namespace tutti {

using NamedValues = std::vector<std::pair<std::string, double>>;
// This rank's part of an evaluation batch, in order; none where the run was asked to stop.
using FetchBatch = std::function<std::optional<Batch>(int64_t index)>;
using SumOverRanks = std::function<void(at::Tensor values)>;  // float64, in place
using Stopwatch = std::function<double()>;  // seconds since the evaluation began; 0 on ranks other than 0

// What an evaluation of the model measures: "metrics/eval/MulticlassAccuracy"; the names are Composer's.
std::vector<std::string> evaluation_metrics(const Model& model);

// Runs the model over every batch of the evaluation data and sums the metrics over ranks. The same values on
// every rank; nothing where some rank was asked to stop, on all. Runs the events from EVAL_START to EVAL_END,
// and keeps the state's part about evaluations.
std::optional<NamedValues> evaluate(State& state, Engine& engine, int64_t batches, const FetchBatch& fetch,
                                    const SumOverRanks& sum, const Stopwatch& stopwatch);

}  // namespace tutti

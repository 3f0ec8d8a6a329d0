#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "training/engine/engine.h"
#include "training/evaluation/evaluator.h"
#include "training/state.h"

namespace tutti {

// A rank's part of an evaluation batch.
struct EvalPart {
  Batch batch;
  int64_t global_samples = 0;  // of the whole batch
};
// This rank's part of a batch, in order; none where the run was asked to stop.
using FetchBatch = std::function<std::optional<EvalPart>(int64_t index)>;

// What an evaluation needs of those around it.
struct EvalHooks {
  FetchBatch fetch;
  std::function<void(at::Tensor values)> sum_over_ranks;  // float64, in place
  std::function<double()> stopwatch;  // seconds since the evaluation began; 0 on ranks other than 0
  // Tries the work, which may be done again in smaller parts: what it ran out of memory with, or nothing.
  std::function<std::optional<std::string>(const std::function<void()>& work)> attempt;
  std::function<void(Event)> run_event;  // that is no part of an attempt
};
// Those of an evaluation by a rank alone, under no budget; the engine must outlive them.
EvalHooks lone_eval_hooks(Engine& engine, FetchBatch fetch);

// Throws UserError, which blames the evaluator's section, where one of the metrics that it names cannot
// measure what the model makes of a sample of the data.
void try_metrics(State& state, const Evaluator& evaluator, const Dataset& data);

// Runs the model over every batch of the evaluator's data and sums the metrics over ranks. The same values on
// every rank, by their names in metrics.jsonl; nothing where some rank was asked to stop, on all. Runs the
// events from EVAL_START to EVAL_END, and keeps the state's part about evaluations. What does not fit into
// memory is done in smaller parts; throws TooLarge where that is not enough.
std::optional<LoggedMetrics> evaluate(State& state, Engine& engine, const Evaluator& evaluator,
                                      const EvalHooks& hooks);

}  // namespace tutti

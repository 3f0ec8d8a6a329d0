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

// While it lives the state's batches are those of other data than the training's.
class DataScope {
 public:
  DataScope(State& state, const std::string& label, const Dataset* dataset)
      : state_(state),
        label_(std::exchange(state.dataloader_label, label)),
        dataset_(std::exchange(state.dataset, dataset)) {}
  ~DataScope() {
    state_.dataloader_label = label_;
    state_.dataset = dataset_;
  }
  DataScope(const DataScope&) = delete;

 private:
  State& state_;
  std::string label_;
  const Dataset* dataset_;
};

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
// memory is done in smaller parts; throws AgreedOutOfMemory where that is not enough.
std::optional<LoggedMetrics> evaluate(State& state, Engine& engine, const Evaluator& evaluator,
                                      const EvalHooks& hooks);

using TakeOutputs = std::function<void(const Outputs& outputs)>;

// Runs the model over an evaluator's data, in the data's order, in batches of all ranks' size or, where it is
// smaller, device_eval_microbatch_size, and gives each batch's outputs. On this rank alone. Runs the events
// PREDICT_START to PREDICT_END; `take` may be empty.
void predict(State& state, Engine& engine, const Evaluator& evaluator, const TakeOutputs& take);

}  // namespace tutti

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

// Sets the state's data loader to data other than the training's; restores the loader at the end.
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

// The services that an evaluation asks of its run, beside State::services.
class EvaluationRun {
 public:
  virtual ~EvaluationRun() = default;
  // This rank's part of batch `index`; nullopt if the run was asked to stop. Called in order.
  virtual std::optional<Batch> fetch(int64_t index) = 0;
  // Since the start of the evaluation; 0 on ranks other than 0.
  virtual double seconds() { return 0; }
  // For events outside of attempts.
  virtual void run_event(Engine& engine, Event event) { engine.run_event(event); }
};

// Tries one sample. Throws UserError with the evaluator's section if the model's eval_forward rejects the
// data, or a metric or the loss rejects the outputs.
void try_metrics(State& state, const Evaluator& evaluator, const Dataset& data);

// Runs the model over every batch of the evaluator's data and sums the metrics over ranks. Returns the same
// values on every rank, by their names in metrics.jsonl; nullopt on all ranks if some rank was asked to stop.
// Runs the events from EVAL_START to EVAL_END, and updates the state. Batches too large for the memory are
// run in smaller parts; throws AgreedOutOfMemory if a single sample is too large.
std::optional<LoggedMetrics> evaluate(State& state, Engine& engine, const Evaluator& evaluator,
                                      EvaluationRun& run);

using OutputsCallback = std::function<void(const Outputs& outputs)>;

// Runs the model over an evaluator's data on rank 0 alone, in the data's order, and calls `on_outputs` (may
// be empty) for each batch. Batches are global batches, or device_eval_microbatch_size if smaller, or halves
// of that if the model runs out of memory. Runs the events PREDICT_START to PREDICT_END; if a batch is too
// large, its halves get PREDICT_BATCH_START again.
void predict(State& state, Engine& engine, const Evaluator& evaluator, const OutputsCallback& on_outputs);

}  // namespace tutti

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tensors/out_of_memory.h"
#include "training/evaluation/evaluation.h"
#include "training/work_in_parts.h"

namespace tutti {
namespace {

void predict_batch(State& state, Engine& engine, const OutputsCallback& on_outputs) {
  engine.run_event(Event::kPredictBatchStart);
  engine.run_event(Event::kPredictBeforeForward);
  state.outputs = state.eval_forward(state.batch);
  guard_memory("the outputs of a prediction", [&] {  // which must not be reported twice
    engine.run_event(Event::kPredictAfterForward);
    if (on_outputs) on_outputs(state.outputs);
    engine.run_event(Event::kPredictBatchEnd);
  });
}

// Sets up the state for prediction, and restores the state at the end.
class Predicting {
 public:
  Predicting(State& state, const Evaluator& evaluator)
      : state_(state), data_(state, evaluator.label, evaluator.data.get()), evaluating_(*state.model) {}
  ~Predicting() {
    state_.batch = {};
    state_.outputs = {};
  }
  Predicting(const Predicting&) = delete;

 private:
  State& state_;
  DataScope data_;
  EvaluationMode evaluating_;
};

}  // namespace

void predict(State& state, Engine& engine, const Evaluator& evaluator, const OutputsCallback& on_outputs) {
  const at::NoGradGuard no_grad;
  const Predicting predicting(state, evaluator);
  engine.run_event(Event::kPredictStart);
  const auto predict_rows = [&](int64_t first, int64_t count) {
    std::vector<int64_t> rows(count);
    std::iota(rows.begin(), rows.end(), first);
    state.batch = state.device.take(evaluator.data->get(rows, {state.seed}));
    predict_batch(state, engine, on_outputs);
  };
  work_in_parts(state, state.topology.rank == 0,
                {.items = evaluator.data->size(),
                 .part = std::min(evaluator.global_batch, evaluator.microbatch),
                 .work = predict_rows});
  engine.run_event(Event::kPredictEnd);
}

}  // namespace tutti

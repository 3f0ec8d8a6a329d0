#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tensors/autograd.h"
#include "training/evaluation/evaluation.h"

namespace tutti {
namespace {

void predict_batch(State& state, Engine& engine, const OutputsCallback& on_outputs) {
  engine.run_event(Event::kPredictBatchStart);
  engine.run_event(Event::kPredictBeforeForward);
  {
    const AutocastScope autocast(state.precision.autocast);
    state.outputs = state.model->eval_forward(state.batch);
  }
  engine.run_event(Event::kPredictAfterForward);
  if (on_outputs) on_outputs(state.outputs);
  engine.run_event(Event::kPredictBatchEnd);
}

// Sets up the state for prediction, and restores the state at the end.
class Predicting {
 public:
  Predicting(State& state, const Evaluator& evaluator)
      : state_(state), data_(state, evaluator.label, evaluator.data.get()) {
    set_context(*state.model, &context_);
  }
  ~Predicting() {
    state_.batch = {};
    state_.outputs = {};
    set_context(*state_.model, nullptr);
  }
  Predicting(const Predicting&) = delete;

 private:
  State& state_;
  DataScope data_;
  ForwardContext context_{/*training=*/false, nullptr};
};

}  // namespace

void predict(State& state, Engine& engine, const Evaluator& evaluator, const OutputsCallback& on_outputs) {
  const at::NoGradGuard no_grad;
  const Predicting predicting(state, evaluator);
  engine.run_event(Event::kPredictStart);
  const int64_t part = std::min(evaluator.global_batch, evaluator.microbatch);
  const int64_t size = evaluator.data->size();
  const auto predict_all = [&] {
    for (int64_t begin = 0; begin < size; begin += part) {
      std::vector<int64_t> rows(std::min(part, size - begin));
      std::iota(rows.begin(), rows.end(), begin);
      state.batch = evaluator.data->get(rows, {state.seed});
      predict_batch(state, engine, on_outputs);
    }
  };
  state.with_model(state.rank == 0, predict_all, (size + part - 1) / part);
  engine.run_event(Event::kPredictEnd);
}

}  // namespace tutti

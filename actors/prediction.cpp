#include "actors/prediction.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tensors/autocast.h"

namespace tutti {
namespace {

void predict_batch(State& state, Engine& engine, const TakeOutputs& take) {
  engine.run_event(Event::kPredictBatchStart);
  engine.run_event(Event::kPredictBeforeForward);
  {
    const AutocastScope autocast(state.precision.autocast);
    state.outputs = state.model->eval_forward(state.batch);
  }
  engine.run_event(Event::kPredictAfterForward);
  if (take) take(state.outputs);
  engine.run_event(Event::kPredictBatchEnd);
}

}  // namespace

void predict(State& state, Engine& engine, const Evaluator& evaluator, const TakeOutputs& take) {
  const at::NoGradGuard no_grad;
  const ForwardContext predicting{/*training=*/false, nullptr};
  set_context(*state.model, &predicting);
  state.dataloader_label = evaluator.label;
  engine.run_event(Event::kPredictStart);
  for (int64_t begin = 0; begin < evaluator.data->size(); begin += evaluator.global_batch) {
    std::vector<int64_t> rows(std::min(evaluator.global_batch, evaluator.data->size() - begin));
    std::iota(rows.begin(), rows.end(), begin);
    state.batch = evaluator.data->get(rows);
    predict_batch(state, engine, take);
  }
  engine.run_event(Event::kPredictEnd);
  state.batch = {};
  state.outputs = {};
  set_context(*state.model, nullptr);
}

}  // namespace tutti

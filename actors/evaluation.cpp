#include "actors/evaluation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "training/metrics/factory.h"

namespace tutti {
namespace {

std::vector<MetricPtr> metrics_of(const Model& model) {
  std::vector<MetricPtr> metrics;
  for (const auto& name : model.get_metrics(/*is_train=*/false)) metrics.push_back(make_metric(name));
  return metrics;
}

void sum_over_ranks(const SumOverRanks& sum, std::vector<MetricPtr>& metrics) {
  int64_t count = 0;
  for (auto& metric : metrics) count += static_cast<int64_t>(metric->sums().size());
  at::Tensor all = at::zeros({count}, at::kDouble);
  double* at = all.data_ptr<double>();
  for (auto& metric : metrics) at = std::copy(metric->sums().begin(), metric->sums().end(), at);
  sum(all);
  const double* from = all.data_ptr<double>();
  for (auto& metric : metrics) {
    std::copy_n(from, metric->sums().size(), metric->sums().begin());
    from += metric->sums().size();
  }
}

}  // namespace

NamedValues evaluate(State& state, Engine& engine, int64_t batches, const FetchBatch& fetch,
                     const SumOverRanks& sum) {
  const at::NoGradGuard no_grad;
  Model& model = *state.model;
  const ForwardContext evaluating{/*training=*/false, nullptr};
  set_context(model, &evaluating);
  auto metrics = metrics_of(model);
  engine.run_event(Event::kEvalStart);
  for (int64_t b = 0; b < batches; ++b) {
    state.batch = fetch(b);
    if (state.batch.samples() == 0) continue;
    engine.run_event(Event::kEvalBatchStart);
    engine.run_event(Event::kEvalBeforeForward);
    state.outputs = model.eval_forward(state.batch);
    engine.run_event(Event::kEvalAfterForward);
    for (auto& metric : metrics) model.update_metric(state.batch, state.outputs, *metric);
    engine.run_event(Event::kEvalBatchEnd);
  }
  state.batch = state.outputs = {};
  set_context(model, nullptr);
  sum_over_ranks(sum, metrics);
  NamedValues values;
  for (const auto& metric : metrics) values.emplace_back("metrics/eval/" + metric->name(), metric->compute());
  engine.run_event(Event::kEvalEnd);
  return values;
}

}  // namespace tutti

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

constexpr const char* kPrefix = "metrics/eval/";

}  // namespace

std::vector<std::string> evaluation_metrics(const Model& model) {
  std::vector<std::string> names;
  for (const auto& name : model.get_metrics(/*is_train=*/false)) names.push_back(kPrefix + name);
  return names;
}

NamedValues evaluate(Model& model, int64_t batches, const FetchBatch& fetch, const SumOverRanks& sum) {
  const at::NoGradGuard no_grad;
  const ForwardContext evaluating{/*training=*/false, nullptr};
  set_context(model, &evaluating);
  auto metrics = metrics_of(model);
  for (int64_t b = 0; b < batches; ++b) {
    const Batch batch = fetch(b);
    if (batch.samples() == 0) continue;
    const Outputs outputs = model.eval_forward(batch);
    for (auto& metric : metrics) model.update_metric(batch, outputs, *metric);
  }
  set_context(model, nullptr);
  sum_over_ranks(sum, metrics);
  NamedValues values;
  for (const auto& metric : metrics) values.emplace_back(kPrefix + metric->name(), metric->compute());
  return values;
}

}  // namespace tutti

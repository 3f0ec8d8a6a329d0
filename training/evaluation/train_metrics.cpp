#include "training/evaluation/train_metrics.h"

#include <ATen/core/grad_mode.h>

#include "runtime/error.h"
#include "training/evaluation/evaluator.h"

namespace tutti {

TrainMetrics::TrainMetrics(const State& state, int64_t parts) {
  for (int64_t part = 0; part < parts; ++part) {
    auto& metrics = parts_.emplace_back(train_metrics(*state.model, state.composer));
    for (auto& metric : metrics) metric->fix_size();
  }
}

void TrainMetrics::reset() {
  for (auto& metrics : parts_)
    for (auto& metric : metrics) metric->reset();
  part_ = 0;
}

void TrainMetrics::update(const Trainee& trainee, const Batch& batch, const Outputs& outputs) {
  const at::NoGradGuard no_grad;
  const Outputs own = trainee.eval_forward(batch, outputs);
  for (auto& metric : parts_[part_]) trainee.update_metric(batch, own, *metric);
}

void TrainMetrics::add_to(LateNumbers& numbers) {
  for (auto& metrics : parts_)
    for (auto& metric : metrics) metric->add_to(numbers);
}

std::vector<double> TrainMetrics::sums(std::size_t part) const {
  std::vector<double> all;
  for (const auto& metric : parts_[part]) all.insert(all.end(), metric->sums().begin(), metric->sums().end());
  return all;
}

void TrainMetrics::store_values(std::span<const double> sums, State& state) {
  auto from = sums.begin();
  for (auto& metric : parts_.front()) {
    TUTTI_ASSERT(sums.end() - from >= std::ssize(metric->sums()), "ranks keep other metrics");
    for (double& sum : metric->sums()) sum = *from++;
    const std::vector<std::string> parts = metric->parts();
    const std::vector<double> values = metric->values();
    for (std::size_t i = 0; i < parts.size(); ++i)
      state.metric_values["train/" + metric->measured_name() + parts[i]] = values[i];
  }
}

}  // namespace tutti

#include "training/callbacks/monitors/optimizer_monitor.h"

#include <string>
#include <vector>

#include "tensors/norms.h"
#include "training/callbacks/options.h"
#include "training/state.h"

namespace tutti {

void LrMonitor::batch_end(State& state, Logger& logger) {
  LoggedMetrics rates;
  for (const double lr : state.optimizer->group_lrs())
    rates.emplace_back(std::string("lr-") + state.optimizer->name() + "/group" + std::to_string(rates.size()),
                       lr);
  logger.log_metrics(rates);
}

// Measured before the optimizer's step, which may change gradients.
void OptimizerMonitor::after_train_batch(State& state, Logger&) {
  gradients_.clear();
  if ((state.timestamp.batch + 1) % batch_log_interval_ != 0) return;
  grad_scale_ = state.grad_scale;
  for (const ParamView& view : state.views)
    gradients_.push_back(view.grad.defined() ? std::optional(square_sum(view.part_of_sum(view.grad)))
                                             : std::nullopt);
}

// One sum over ranks serves all norms, when parameters are shards.
void OptimizerMonitor::batch_end(State& state, Logger& logger) {
  if (gradients_.empty()) return;
  std::vector<std::string> names;
  std::vector<ExactSum> squares;
  std::vector<double> scales;
  const auto add = [&](const std::string& name, const ExactSum& sum, double scale) {
    names.push_back("l2_norm/" + name);
    squares.push_back(sum);
    scales.push_back(scale);
  };
  ExactSum global;
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (!gradients_[i]) continue;
    const std::string& parameter = state.views[i].name;
    if (log_optimizer_metrics_)
      for (const auto& [what, sum] : state.optimizer->squares(i))
        add(what + "/" + parameter, state.views[i].counts_in_sums() ? sum : ExactSum(), 1.0);
    add("grad/" + parameter, *gradients_[i], grad_scale_);
    global.add(*gradients_[i]);
  }
  add("grad/global", global, grad_scale_);
  const std::vector<double> values = norms(squares, state.sum_over_shards());
  LoggedMetrics metrics;
  for (std::size_t i = 0; i < values.size(); ++i) metrics.emplace_back(names[i], values[i] / scales[i]);
  logger.log_metrics(metrics);
}

CallbackPtr LrMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<LrMonitor>();
}

CallbackPtr OptimizerMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<OptimizerMonitor>(log_optimizer_metrics, batch_log_interval);
}

}  // namespace tutti

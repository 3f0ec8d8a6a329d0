#include "training/callbacks/monitors/optimizer_monitor.h"

#include <ATen/ops/linalg_vector_norm.h>

#include <cmath>

#include "training/state.h"

namespace tutti {

void LrMonitor::batch_end(State& state, Logger& logger) {
  logger.log_metrics({{std::string("lr-") + state.optimizer->name() + "/group0", state.optimizer->lr()}});
}

// Measured before the optimizer's step, which may change gradients.
void OptimizerMonitor::after_train_batch(State& state, Logger&) {
  gradient_norms_.clear();
  if ((state.timestamp.batch + 1) % batch_log_interval_ != 0) return;
  for (const ParamView& view : state.views)
    gradient_norms_.push_back(
        view.grad.defined() ? at::linalg_vector_norm(view.grad).item<double>() / state.grad_scale : -1.0);
}

void OptimizerMonitor::batch_end(State& state, Logger& logger) {
  if (gradient_norms_.empty()) return;
  LoggedMetrics metrics;
  double squares = 0;
  for (std::size_t i = 0; i < gradient_norms_.size(); ++i) {
    const std::string& parameter = state.views[i].name;
    const double norm = gradient_norms_[i];
    if (norm < 0) continue;
    if (log_optimizer_metrics_)
      for (const auto& [what, value] : state.optimizer->norms(i))
        metrics.emplace_back("l2_norm/" + what + "/" + parameter, value);
    metrics.emplace_back("l2_norm/grad/" + parameter, norm);
    squares += norm * norm;
  }
  metrics.emplace_back("l2_norm/grad/global", std::sqrt(squares));
  logger.log_metrics(metrics);
}

}  // namespace tutti

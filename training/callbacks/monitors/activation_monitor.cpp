#include "training/callbacks/monitors/activation_monitor.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/pow.h>

#include <algorithm>
#include <utility>

#include "io/json/json_line.h"
#include "training/callbacks/options.h"
#include "training/state.h"

namespace tutti {
namespace {

double kurtosis(const at::Tensor& values) {
  const at::Tensor deviation = values - values.mean(-1, /*keepdim=*/true);
  const at::Tensor variance = deviation.pow(2).mean(-1);
  return (deviation.pow(4).mean(-1) / variance.pow(2)).mean().item<double>();
}

}  // namespace

bool ActivationMonitor::ignores(const std::string& layer) const {
  return std::any_of(ignored_.begin(), ignored_.end(),
                     [&](const std::string& part) { return layer.find(part) != std::string::npos; });
}

// Hooks belong to slots: they stay when a layer is replaced.
void ActivationMonitor::fit_start(State& state, Logger&) {
  if (!hooks_.empty()) return;  // training continues in a task
  for (const auto& [name, slot] : slots(*state.model)) {
    if (ignores(name)) continue;
    hooks_.push_back(slot->around([this, name = name](const TensorTree& input, const Slot::Next& next) {
      if (watching_) measure(name + "_input", input);
      TensorTree output = next(input);
      if (watching_) measure(name + "_output", output);
      return output;
    }));
  }
}

void ActivationMonitor::after_dataloader(State&, Logger&) { logged_ = false; }

void ActivationMonitor::before_train_batch(State&, Logger&) {
  first_ = due_ && !logged_;
  watching_ = false;
  measured_.clear();
}

void ActivationMonitor::before_forward(State&, Logger&) { watching_ = first_; }

void ActivationMonitor::after_forward(State&, Logger&) { first_ = watching_ = false; }

void ActivationMonitor::after_train_batch(State&, Logger& logger) {
  logged_ = true;
  if (!measured_.empty()) logger.log_metrics(std::exchange(measured_, {}));
}

void ActivationMonitor::batch_end(State& state, Logger& logger) {
  logged_ = false;
  due_ = false;
  PeriodicCallback::batch_end(state, logger);
}

void ActivationMonitor::measure(const std::string& name, const TensorTree& values) {
  const at::NoGradGuard no_grad;
  const auto leaves = values.leaves();
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const at::Tensor tensor = leaves[i].second.detach();
    if (!tensor.is_floating_point() || tensor.dim() == 0 || tensor.numel() == 0) continue;
    const std::string key = name + "." + std::to_string(i);
    measured_.emplace_back("activations/l2_norm/" + key,
                           at::linalg_vector_norm(tensor, 2, {-1}).mean().item<double>());
    measured_.emplace_back("activations/average/" + key, tensor.mean().item<double>());
    measured_.emplace_back("activations/kurtosis/" + key, kurtosis(tensor));
    measured_.emplace_back("activations/max/" + key, tensor.amax(-1).mean().item<double>());
  }
}

std::string ActivationMonitor::state() const { return json_line({{"due", int64_t{due_}}}); }

void ActivationMonitor::restore(const std::string& json) { due_ = json_number(json, "due") != 0; }

CallbackPtr ActivationMonitorOptions::make(const Setting&, const CallbackEnvironment&) const {
  return std::make_shared<ActivationMonitor>(interval, ignore_module_types);
}

}  // namespace tutti

#include "training/callbacks/monitors/activation_monitor.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/pow.h>

#include <algorithm>

#include "io/json_line.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

double kurtosis(const at::Tensor& values) {
  const at::Tensor from_mean = values - values.mean(-1, /*keepdim=*/true);
  const at::Tensor variance = from_mean.pow(2).mean(-1);
  return (from_mean.pow(4).mean(-1) / variance.pow(2)).mean().item<double>();
}

}  // namespace

ActivationMonitor::ActivationMonitor(const Time& interval, std::vector<std::string> ignored)
    : interval_(interval), ignored_(std::move(ignored)) {
  const bool counts = interval.unit() == TimeUnit::kBatch || interval.unit() == TimeUnit::kEpoch;
  if (!counts || interval.value() < 1)
    throw UserError("interval: expected batches or epochs, at least one, found " + interval.text());
}

bool ActivationMonitor::ignores(const std::string& layer) const {
  return std::any_of(ignored_.begin(), ignored_.end(),
                     [&](const std::string& part) { return layer.find(part) != std::string::npos; });
}

int64_t ActivationMonitor::now(const State& state) const {
  return state.timestamp.get(interval_.unit()).count();
}

// Hooks are of the slots, so that they stay when another layer is put in.
void ActivationMonitor::fit_start(State& state, Logger&) {
  for (const auto& [name, slot] : slots(*state.model)) {
    if (ignores(name)) continue;
    slot->add_before([this, name = name](const TensorTree& input) {
      if (watching_) measure(name + "_input", input);
    });
    slot->add_after([this, name = name](const TensorTree&, TensorTree output) {
      if (watching_) measure(name + "_output", output);
      return output;
    });
  }
}

void ActivationMonitor::before_train_batch(State& state, Logger&) {
  due_ = now(state) % interval_.count() == 0 && now(state) != logged_at_;
  watching_ = false;
  measured_.clear();
}

void ActivationMonitor::before_forward(State&, Logger&) { watching_ = due_; }

void ActivationMonitor::after_forward(State&, Logger&) { due_ = watching_ = false; }

// Once the step is known to be good.
void ActivationMonitor::after_train_batch(State& state, Logger& logger) {
  if (measured_.empty()) return;
  logged_at_ = now(state);
  logger.log_metrics(std::exchange(measured_, {}));
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

std::string ActivationMonitor::state() const { return json_line({{"logged_at", logged_at_}}); }

void ActivationMonitor::restore(const std::string& json) {
  logged_at_ = static_cast<int64_t>(json_number(json, "logged_at"));
}

}  // namespace tutti

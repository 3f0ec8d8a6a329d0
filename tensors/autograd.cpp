#include "tensors/autograd.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>
#include <utility>

namespace tutti {
namespace {

class GradientHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit GradientHook(std::function<void()> on_gradient) : on_gradient_(std::move(on_gradient)) {}
  void operator()(const torch::autograd::Variable&) override { on_gradient_(); }

 private:
  std::function<void()> on_gradient_;
};

}  // namespace

void set_gradient_hook(const at::Tensor& leaf, std::function<void()> on_gradient) {
  torch::autograd::impl::set_post_acc_grad_hooks(
      leaf, on_gradient ? std::make_unique<GradientHook>(std::move(on_gradient)) : nullptr);
}

AutocastScope::AutocastScope(std::optional<at::ScalarType> dtype, const Device& device)
    : type_(device.where.type()),
      enabled_(at::autocast::is_autocast_enabled(type_)),
      cached_(at::autocast::is_autocast_cache_enabled()),
      dtype_(at::autocast::get_autocast_dtype(type_)) {
  at::autocast::set_autocast_enabled(type_, dtype.has_value());
  at::autocast::set_autocast_cache_enabled(false);
  if (dtype) at::autocast::set_autocast_dtype(type_, *dtype);
}

AutocastScope::~AutocastScope() {
  at::autocast::set_autocast_dtype(type_, dtype_);
  at::autocast::set_autocast_cache_enabled(cached_);
  at::autocast::set_autocast_enabled(type_, enabled_);
}

std::optional<at::ScalarType> AutocastScope::current(const Device& device) {
  const c10::DeviceType type = device.where.type();
  if (!at::autocast::is_autocast_enabled(type)) return std::nullopt;
  return at::autocast::get_autocast_dtype(type);
}

AutogradSweep::AutogradSweep() {
  const at::AutoGradMode with_grad(true);
  leaf_ = at::ones({});
  leaf_.requires_grad_(true);
  root_ = at::mul(leaf_, 1.0);
}

void AutogradSweep::run() {
  root_.backward({}, /*retain_graph=*/true);
  leaf_.mutable_grad() = at::Tensor();
}

}  // namespace tutti

#include "tensors/autograd.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

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

constexpr auto kAutocast = c10::DispatchKey::AutocastCPU;

// oneDNN has no public word on which kernels it has on this processor: calls the one that at::lstm comes to.
bool runs_lstm_of_bfloat16() try {
  const c10::impl::ExcludeDispatchKeyGuard off(kAutocast);
  const at::NoGradGuard no_grad;
  const auto zeros = [](at::IntArrayRef sizes) { return at::zeros(sizes, at::kBFloat16); };
  constexpr int64_t kLstm = 2;
  at::mkldnn_rnn_layer(zeros({1, 1, 1}), zeros({4, 1}), zeros({4, 1}), zeros({4}), zeros({4}),
                       zeros({1, 1, 1}), zeros({1, 1, 1}), /*reverse=*/false, /*batch_sizes=*/{}, kLstm,
                       /*hidden_size=*/1,
                       /*num_layers=*/1, /*has_biases=*/true, /*bidirectional=*/false, /*batch_first=*/false,
                       /*train=*/true);
  return true;
} catch (const c10::Error&) {
  throw;
} catch (const std::bad_alloc&) {
  throw;
} catch (const std::exception&) {  // oneDNN's
  return false;
}

at::Tensor in_float32(const at::Tensor& x) {
  return x.defined() && x.is_cpu() && at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
}

void turn_to_float32(torch::jit::Stack& stack) {
  for (c10::IValue& value : stack) {
    if (value.isTensor()) value = in_float32(value.toTensor());
    if (!value.isTensorList()) continue;
    c10::List<at::Tensor> list;
    for (const at::Tensor& x : value.toTensorVector()) list.push_back(in_float32(x));
    value = std::move(list);
  }
}

// Autocast of aten::lstm, which libtorch leaves to the kernel within, of oneDNN.
void lstm_under_autocast(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (has_lstm_on_cpus(at::autocast::get_autocast_dtype(at::kCPU)))
    return op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kAutocast), stack);
  const c10::impl::ExcludeDispatchKeyGuard off(kAutocast);
  turn_to_float32(*stack);
  op.callBoxed(stack);
}

// Once a process.
void register_lstm() {
  static const auto library = [] {
    auto own = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", kAutocast, __FILE__, __LINE__);
    for (const char* name : {"lstm.input", "lstm.data"})
      own->impl(name, torch::CppFunction::makeFromBoxedFunction<&lstm_under_autocast>());
    return own;
  }();
}

}  // namespace

bool has_lstm_on_cpus(at::ScalarType dtype) {
  static const bool bfloat16 = runs_lstm_of_bfloat16();
  return dtype == at::kBFloat16 && bfloat16;
}

void set_gradient_hook(const at::Tensor& leaf, std::function<void()> on_gradient) {
  torch::autograd::impl::set_post_acc_grad_hooks(
      leaf, on_gradient ? std::make_unique<GradientHook>(std::move(on_gradient)) : nullptr);
}

AutocastScope::AutocastScope(std::optional<at::ScalarType> dtype, const Device& device)
    : type_(device.where.type()),
      enabled_(at::autocast::is_autocast_enabled(type_)),
      cached_(at::autocast::is_autocast_cache_enabled()),
      dtype_(at::autocast::get_autocast_dtype(type_)) {
  register_lstm();
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

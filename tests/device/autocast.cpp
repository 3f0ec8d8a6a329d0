#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "tests/device/streams.h"
#include "tests/device/test_device.h"

namespace tutti::test_device {

namespace {

constexpr c10::DispatchKey kAutocast = c10::DispatchKey::AutocastPrivateUse1;

void cast_and_call(const c10::OperatorHandle& op, torch::jit::Stack& stack, c10::ScalarType dtype) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(kAutocast);
  const auto cast = [&](const at::Tensor& one) { return at::autocast::cached_cast(dtype, one, kType); };
  for (std::size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    c10::IValue& value = stack[i];
    if (value.isTensor()) {
      value = cast(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& one : value.toTensorVector()) list.push_back(cast(one));
      value = std::move(list);
    }
  }
  op.callBoxed(stack);
}

c10::ScalarType low_precision() { return at::autocast::get_autocast_dtype(kType); }

void in_low_precision(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  cast_and_call(op, *stack, low_precision());
}

void in_float32(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  cast_and_call(op, *stack, at::kFloat);
}

void in_widest(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  bool has_float32 = false;
  const auto look = [&](const at::Tensor& one) {
    has_float32 = has_float32 || (one.defined() && one.scalar_type() == at::kFloat);
  };
  for (std::size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); ++i) {
    const c10::IValue& value = (*stack)[i];
    if (value.isTensor()) look(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& one : value.toTensorVector()) look(one);
  }
  cast_and_call(op, *stack, has_float32 ? at::kFloat : low_precision());
}

// libtorch says which operators the CPU's autocast knows. Products, convolutions and attention run in 16 bits
// (PyTorch's documentation of torch.amp, "CPU Op-Specific Behavior"), joins in the widest dtype of their
// arguments, all others in float32.
bool is_low(std::string_view name) {
  static constexpr std::array kNames{
      "addbmm",        "addmm", "_addmm_activation", "baddbmm", "bmm", "mm", "matmul", "linear",
      "linalg_vecdot", "prelu", "mkldnn_rnn_layer"};
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("conv") ||
         name.starts_with("_convolution") || name.ends_with("_attention");
}

bool is_join(std::string_view name) { return name == "cat" || name == "stack" || name == "index_copy"; }

void add_cpu_lists(torch::Library& m) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU)) continue;
    const std::string_view base = std::string_view(name.name).substr(std::string_view("aten::").size());
    if (is_low(base))
      m.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&in_low_precision>());
    else if (is_join(base))
      m.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&in_widest>());
    else
      m.impl(c10::toString(name).c_str(), torch::CppFunction::makeFromBoxedFunction<&in_float32>());
  }
}

}  // namespace

void add_cuda_lists(torch::Library& m);

void set_autocast(AutocastPolicy policy) {
  static auto& library = *new std::unique_ptr<torch::Library>;
  library.reset();  // the operators of before are free again
  library = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", kAutocast, __FILE__, __LINE__);
  policy == AutocastPolicy::kCpu ? add_cpu_lists(*library) : add_cuda_lists(*library);
}

}  // namespace tutti::test_device

namespace at::autocast {
namespace {

void add_lists(torch::Library& m) {
#define IN_LOW_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define IN_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define TO_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define IN_WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(IN_LOW_PRECISION)
  AT_FORALL_FP32(IN_FLOAT32)
  AT_FORALL_FP32_SET_OPT_DTYPE(TO_FLOAT32)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(IN_WIDEST)
#undef IN_LOW_PRECISION
#undef IN_FLOAT32
#undef TO_FLOAT32
#undef IN_WIDEST
}

}  // namespace
}  // namespace at::autocast

void tutti::test_device::add_cuda_lists(torch::Library& m) { at::autocast::add_lists(m); }

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

#include "tests/device/fallback.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "tests/device/graph.h"
#include "tests/device/state.h"
#include "tests/device/streams.h"

namespace tutti::test_device {

namespace {

constexpr c10::DispatchKeySet kCpuKernels(c10::DispatchKey::CPU);

// CUDA's kernels read their scalars by address.
bool is_fused(const std::string& name) {
  return name.find("::_fused_") != std::string::npos || name.find("::_amp_") != std::string::npos;
}

// Operators whose results have a size that the host must read.
bool has_sizes_of_data(const std::string& name) {
  static constexpr std::array kNames{"nonzero", "masked_select", "bincount",
                                     "_unique", "unique_",       "repeat_interleave.Tensor"};
  if (!name.starts_with("aten::")) return false;
  const std::string_view rest = std::string_view(name).substr(6);
  return std::ranges::any_of(kNames, [&](std::string_view one) { return rest.starts_with(one); });
}

bool is_tensor(const c10::Argument& result) { return result.type()->isSubtypeOf(*c10::TensorType::get()); }
bool is_list(const c10::Argument& result) { return result.type()->kind() == c10::TypeKind::ListType; }

// libtorch returns several outputs as references into a stack that it has emptied, so `arguments` stay.
torch::jit::Stack run_on_cpu(const c10::OperatorHandle& op, const torch::jit::Stack& arguments) {
  torch::jit::Stack stack = arguments;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
  op.redispatchBoxed(kCpuKernels, &stack);
  return stack;
}

std::vector<at::Tensor> tensors_of(const torch::jit::Stack& results) {
  std::vector<at::Tensor> all;
  for (const c10::IValue& one : results)
    for (const at::Tensor& tensor : one.isTensorList() ? one.toTensorVector() : std::vector{one.toTensor()})
      all.push_back(tensor);
  return all;
}

// One call of an operator, whose arguments and then results are on a stack.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op), stack_(stack), name_(c10::toString(op.schema().operator_name())) {}

  void run() {
    State& s = state();
    Lock lock(s.mutex);
    late_ = s.order.defers() || recording();
    lock.unlock();
    convert_arguments();
    if (Graph* const graph = recording()) return record(*graph);
    lock.lock();
    const Kernel kernel = s.order.launch(name_, current_stream(device()));
    for (const Use& one : uses_) {
      const Extent bytes = extent(one.tensor);
      s.memory.note(kernel, bytes.begin, bytes.end, one.write);
    }
    if (late_ && may_wait())
      run_late(lock, kernel);
    else
      run_now(lock, kernel);
  }

 private:
  enum class Role { kArgument, kIndex };
  struct Use {
    at::Tensor tensor;
    bool write;
  };

  const c10::FunctionSchema& schema() const { return op_.schema(); }
  std::size_t first() const { return stack_.size() - schema().arguments().size(); }
  int device() const { return device_ >= 0 ? device_ : current_device(); }
  void convert_arguments();
  void convert(c10::IValue& value, bool write);
  at::Tensor convert(const at::Tensor& tensor, bool write, Role role);
  void check_host_tensor(const at::Tensor& tensor, Role role) const;
  void check_device(const at::Tensor& tensor);
  bool may_wait() const;
  bool host_waits() const;
  void run_now(Lock& lock, const Kernel& kernel);
  void run_late(Lock& lock, const Kernel& kernel);
  void record(Graph& graph);
  void convert_results();

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  const std::string name_;
  Aliases aliases_;
  std::vector<Use> uses_;
  int device_ = -1;
  bool late_ = false;
  bool writes_arguments_ = false;
  bool allocates_out_ = false;
  std::optional<std::size_t> generator_;  // its place on the stack, of what draws random numbers
  bool resizes_ = false;                  // gives its output another size for a while
  bool has_mask_ = false;                 // an index of truth values
};

void Call::convert_arguments() {
  for (std::size_t i = 0; i < schema().arguments().size(); ++i) {
    const c10::AliasInfo* const alias = schema().arguments()[i].alias_info();
    const std::string& argument = schema().arguments()[i].name();
    resizes_ = resizes_ || argument == "reduction";
    convert(stack_[first() + i], alias && alias->isWrite());
    if (argument == "generator") generator_ = first() + i;
  }
  if (generator_) stack_[*generator_] = default_generator(device());
}

void Call::convert(c10::IValue& value, bool write) {
  writes_arguments_ = writes_arguments_ || write;
  if (value.isTensor()) {
    value = convert(value.toTensor(), write, Role::kArgument);
  } else if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& one : value.toTensorVector()) list.push_back(convert(one, write, Role::kArgument));
    value = std::move(list);
  } else if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& one : value.toOptionalTensorVector()) {
      has_mask_ = has_mask_ || (one && one->defined() && c10::isIntegralType(one->scalar_type(), true) &&
                                one->element_size() == 1);
      list.push_back(one ? std::optional(convert(*one, write, Role::kIndex)) : std::nullopt);
    }
    value = std::move(list);
  } else if (value.isGenerator()) {
    TORCH_CHECK(false, name_, ": expected a generator of the test device, but found one of the CPU");
  } else if (value.isDevice() && value.toDevice().type() == kType) {
    device_ = value.toDevice().has_index() ? value.toDevice().index() : current_device();
    value = c10::Device(c10::kCPU);
  }
}

// Kernels may run late, so they keep what host tensors hold now.
at::Tensor Call::convert(const at::Tensor& tensor, bool write, Role role) {
  if (!on_device(tensor)) {
    if (!tensor.defined()) return tensor;
    check_host_tensor(tensor, role);
    const bool is_fixed = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    return late_ && !is_fixed ? tensor.clone() : tensor;
  }
  check_device(tensor);
  uses_.push_back({tensor, write});
  allocates_out_ = allocates_out_ || (write && tensor.storage().nbytes() == 0);
  const at::Tensor alias = aliases_.of(tensor);
  if (write && resizes_) alias.unsafeGetTensorImpl()->set_sizes_contiguous(0);  // or libtorch warns
  return alias;
}

// As on CUDA: host tensors may be indices, and scalars of kernels that take them by value.
void Call::check_host_tensor(const at::Tensor& tensor, Role role) const {
  const bool is_scalar = tensor.dim() == 0 && !is_fused(name_);
  TORCH_CHECK(role == Role::kIndex || is_scalar, name_,
              ": expected all tensors to be on the same device, but found at least two: test and ",
              tensor.device());
}

void Call::check_device(const at::Tensor& tensor) {
  const int device = tensor.device().index();
  TORCH_CHECK(device_ < 0 || device_ == device, name_,
              ": expected all tensors to be on the same device, but found at least two: test:", device_,
              " and test:", device);
  device_ = device;
}

// A kernel may run later if all that it gives is in memory that it was given.
bool Call::may_wait() const {
  if (!writes_arguments_ || allocates_out_ || generator_ || resizes_ || host_waits()) return false;
  for (const c10::Argument& result : schema().returns())
    if (!is_tensor(result) || !result.alias_info() || !result.alias_info()->isWrite()) return false;
  return true;
}

bool Call::host_waits() const {
  if (has_mask_ || has_sizes_of_data(name_)) return true;
  for (const c10::Argument& result : schema().returns())
    if (!is_tensor(result) && !is_list(result)) return true;
  return false;
}

void Call::run_now(Lock& lock, const Kernel& kernel) {
  const bool waits = host_waits();
  state().order.run_now(lock, kernel, [&] {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    op_.redispatchBoxed(kCpuKernels, &stack_);
    convert_results();
  });
  if (waits) host_wait(lock, state().order.mark(kernel.stream), name_);
}

void Call::convert_results() {
  const int on = device();
  if (writes_arguments_) aliases_.follow_resized(on);
  for (std::size_t i = stack_.size() - schema().returns().size(); i < stack_.size(); ++i) {
    c10::IValue& value = stack_[i];
    if (value.isTensor()) {
      value = aliases_.back(value.toTensor(), on);
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& one : value.toTensorVector()) list.push_back(aliases_.back(one, on));
      value = std::move(list);
    }
  }
}

// The kernel keeps aliases alone, since device memory may be freed before it runs.
void Call::run_late(Lock& lock, const Kernel& kernel) {
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(first());
  const torch::jit::Stack arguments(begin, stack_.end());
  torch::jit::Stack results;
  for (const c10::Argument& result : schema().returns()) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const c10::AliasInfo* const alias = schema().arguments()[i].alias_info();
      if (alias && alias->isWrite() && alias->beforeSets() == result.alias_info()->beforeSets())
        results.emplace_back(aliases_.back(arguments[i].toTensor(), device()));
    }
  }
  aliases_.keep_sizes();
  torch::jit::drop(stack_, schema().arguments().size());
  for (c10::IValue& one : results) stack_.push_back(std::move(one));
  state().order.submit(lock, kernel, [op = op_, arguments] { run_on_cpu(op, arguments); });
}

void Call::record(Graph& graph) {
  TORCH_CHECK(!host_waits(), name_, ": results whose size the host must read are not permitted in a graph");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(first());
  const torch::jit::Stack arguments(begin, stack_.end());
  std::vector<Graph::Use> uses;
  for (const Use& one : uses_) uses.push_back({extent(one.tensor), one.write});
  auto results = graph.run(name_, uses, aliases_,
                           [op = op_, arguments] { return tensors_of(run_on_cpu(op, arguments)); });
  torch::jit::drop(stack_, schema().arguments().size());
  const auto& returns = schema().returns();
  if (returns.size() == 1 && is_list(returns[0])) {
    stack_.emplace_back(std::move(results));
    return;
  }
  TORCH_CHECK(returns.size() == results.size(), name_, ": such results are not permitted in a graph");
  for (at::Tensor& one : results) stack_.emplace_back(std::move(one));
}

}  // namespace

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, *stack).run(); }

std::vector<at::Tensor> run_kernel(const std::string& name, const std::vector<at::Tensor>& reads,
                                   const TensorWork& work) {
  State& s = state();
  const int device = reads.at(0).device().index();
  Aliases aliases;
  std::vector<at::Tensor> given;
  std::vector<Graph::Use> uses;
  for (const at::Tensor& one : reads) {
    given.push_back(one.defined() ? aliases.of(one) : one);
    uses.push_back({extent(one), false});
  }
  const auto compute = [work, given] {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    return work(given);
  };
  if (Graph* const graph = recording()) return graph->run(name, uses, aliases, compute);
  std::vector<at::Tensor> results;
  Lock lock(s.mutex);
  const Kernel kernel = s.order.launch(name, current_stream(device));
  for (const Graph::Use& one : uses) s.memory.note(kernel, one.bytes.begin, one.bytes.end, false);
  s.order.run_now(lock, kernel, [&] {
    for (const at::Tensor& one : compute()) results.push_back(aliases.back(one, device));
  });
  return results;
}

}  // namespace tutti::test_device

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DispatchKeySet.h>
#include <torch/library.h>

#include <string>

namespace tutti {

// A function over tensors that devices have kernels of, as an operator "tutti::NAME": libtorch calls the
// kernel of the tensors' device. `on_cpus` is the CPU's, which the tests' device runs; libtutti_cuda.so
// registers CUDA's (tensors/cuda/operators.cpp). `arguments`: "(Tensor(a!) sums, Tensor numbers) ->
// Tensor(a!)".
template <class Function>
c10::TypedOperatorHandle<Function> device_operator(const std::string& name, const std::string& arguments,
                                                   Function* on_cpus) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const std::string full = "tutti::" + name;
  if (!dispatcher.findSchema({full, ""})) {  // else another copy of this code in the process has defined it
    static auto& library =
        *new torch::Library(torch::Library::FRAGMENT, "tutti", std::nullopt, __FILE__, __LINE__);
    library.def((name + arguments).c_str());
    library.impl(name.c_str(), torch::dispatch(c10::DispatchKey::CPU, on_cpus));
  }
  return dispatcher.findSchemaOrThrow(full.c_str(), "").template typed<Function>();
}

// True if the device of the tensor, not the CPU, has a kernel of its own of the operator.
inline bool has_kernel_of(const c10::OperatorHandle& op, const at::Tensor& tensor) {
  return !tensor.is_cpu() && op.hasKernelForDispatchKey(c10::highestPriorityBackendTypeId(tensor.key_set()));
}

}  // namespace tutti

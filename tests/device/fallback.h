#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/device/aliases.h"

namespace tutti::test_device {

// Runs the CPU kernel of an operator on aliases of the device's tensors.
void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack);

// A kernel that is no operator's: notes `reads`, of which some may be undefined, and runs `work` now, on the
// stream of the first of them. `work` gets their CPU aliases; its results become tensors of the device.
using TensorWork = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& reads)>;
std::vector<at::Tensor> run_kernel(const std::string& name, const std::vector<at::Tensor>& reads,
                                   const TensorWork& work);

}  // namespace tutti::test_device

#pragma once

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <functional>
#include <memory>

namespace tutti {

// Hooks for the tensors that autograd saves for backward on this thread while the object lives: `make` gives
// two hooks a tensor, which keep the tensor and return the tensor to backward. libtorch has such hooks for
// Python alone; the first object gives the process an autograd engine that asks for hooks. The innermost
// object acts.
class SavedTensorsScope {
 public:
  using Hooks = torch::autograd::SavedVariableHooks;
  using Make = std::function<std::unique_ptr<Hooks>()>;

  explicit SavedTensorsScope(Make make);
  ~SavedTensorsScope();
  SavedTensorsScope(const SavedTensorsScope&) = delete;
  SavedTensorsScope& operator=(const SavedTensorsScope&) = delete;

  // True within an object on this thread.
  static bool active();

  std::unique_ptr<Hooks> hooks() const { return make_(); }  // for the engine

 private:
  Make make_;
  const SavedTensorsScope* outer_;
};

}  // namespace tutti

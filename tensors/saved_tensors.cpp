#include "tensors/saved_tensors.h"

#include <torch/csrc/autograd/engine.h>

#include <utility>

namespace tutti {
namespace {

thread_local const SavedTensorsScope* innermost_scope = nullptr;

class HookedEngine final : public torch::autograd::Engine {
 public:
  ~HookedEngine() override { stop(); }
  std::unique_ptr<SavedTensorsScope::Hooks> get_default_saved_variable_hooks() override {
    return innermost_scope ? innermost_scope->hooks() : nullptr;
  }
};

torch::autograd::Engine& hooked_engine() {
  static HookedEngine engine;
  return engine;
}

}  // namespace

SavedTensorsScope::SavedTensorsScope(Make make)
    : make_(std::move(make)), outer_(std::exchange(innermost_scope, this)) {
  torch::autograd::set_default_engine_stub(hooked_engine);
}

SavedTensorsScope::~SavedTensorsScope() { innermost_scope = outer_; }

bool SavedTensorsScope::active() { return innermost_scope != nullptr; }

}  // namespace tutti

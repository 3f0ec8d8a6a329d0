#include "models/torch/torch_module.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <map>
#include <mutex>

#include "models/torch/own_operators.h"
#include "models/torch/written_tensors.h"
#include "recipe/dotted_path.h"
#include "runtime/error.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

// The tensor of the same module that is called so.
std::string sibling_of(const std::string& name, const char* called) {
  return name.substr(0, name.size() - last_part(name).size()) + called;
}

Init copy_of(const at::Tensor& value) {
  return [value](at::Tensor& to, at::Generator) { to.copy_(value); };
}

// Makes `to` the same numbers as `from`, of the same storage.
void show(const at::Tensor& to, const at::Tensor& from) {
  to.detach_();
  to.set_data(from);
}

}  // namespace

struct TorchModule::Lent {
  at::Tensor handle;  // the module's
  Parameter* parameter = nullptr;
  Buffer* buffer = nullptr;
};

// The module has the layer's tensors from here on. Each pass lends them again, since sharding and surgery
// replace them; after the pass the module keeps them, for autograd has saved the module's own tensors.
class TorchModule::Lending {
 public:
  explicit Lending(const TorchModule& layer) {
    for (const Lent& lent : layer.parameters_) lend(lent.handle, lent.parameter->tensor);
    const bool training = layer.context().training;
    for (const auto& [handle, parameter, buffer] : layer.buffers_) {
      const bool counts = last_part(buffer->name) == Norms::kTracked && layer.norms_.has(*buffer);
      show(handle, counts && training ? buffer->tensor.clone() : buffer->tensor);
      if (!counts) written_.watch_buffer(buffer->name, handle);
    }
  }

  const WrittenTensors& written() const { return written_; }

 private:
  // Gradients go to the layer's parameter by way of a view of it.
  static void lend(const at::Tensor& handle, const at::Tensor& parameter) {
    show(handle, parameter.detach());
    if (!parameter.requires_grad() || !at::GradMode::is_enabled()) return;
    const at::Tensor view = parameter.view_as(parameter);
    torch::autograd::impl::set_gradient_edge(handle, torch::autograd::impl::gradient_edge(view));
  }

  WrittenTensors written_;
};

TorchModule::TorchModule(std::shared_ptr<torch::nn::Module> module, Forward forward)
    : module_(std::move(module)), forward_(std::move(forward)), kind_(module_->name()) {
  OwnOperators::prepare();
  if (const auto scope = kind_.rfind("::"); scope != std::string::npos) kind_ = kind_.substr(scope + 2);
  own(module_);
  for (const auto& part : module_->modules())
    if (!part->is_training()) in_evaluation_.push_back(part.get());
  if (in_evaluation_.size() == module_->modules().size()) in_evaluation_.clear();
}

TorchModule::~TorchModule() = default;

// A parameter that has several names has the first.
void TorchModule::own(const std::shared_ptr<torch::nn::Module>& module) {
  std::map<at::TensorImpl*, bool> seen;
  for (const auto& parameter : module->named_parameters()) {
    at::Tensor handle = parameter.value();
    if (!seen.emplace(handle.unsafeGetTensorImpl(), true).second) continue;
    const at::Tensor value = handle.detach().clone();
    Parameter& mine =
        add_parameter(parameter.key(), handle.sizes().vec(), copy_of(value), handle.scalar_type());
    mine.trained = handle.requires_grad();
    parameters_.push_back({handle, &mine, nullptr});
  }
  std::map<std::string, const Lent*> by_name;
  const auto all = module->named_buffers();
  buffers_.reserve(all.size());
  for (const auto& buffer : all) {
    at::Tensor handle = buffer.value();
    if (!handle.defined()) continue;
    const at::Tensor value = handle.detach().clone();
    Buffer& mine = add_buffer(buffer.key(), handle.sizes().vec(), copy_of(value), handle.scalar_type());
    buffers_.push_back({handle, nullptr, &mine});
    by_name[buffer.key()] = &buffers_.back();
  }
  for (const auto& [name, mean] : by_name) {
    if (last_part(name) != Norms::kMean) continue;
    const auto variance = by_name.find(sibling_of(name, Norms::kVariance)),
               tracked = by_name.find(sibling_of(name, Norms::kTracked));
    if (variance != by_name.end())
      norms_.add(*mean->buffer, *variance->second->buffer,
                 tracked == by_name.end() ? nullptr : tracked->second->buffer, mean->handle);
  }
}

TensorTree TorchModule::forward(const TensorTree& input) {
  module_->train(context().training);
  for (torch::nn::Module* part : in_evaluation_) part->eval();
  const Lending lent(*this);
  OwnOperators operators(*this, norms_);
  TensorTree output = forward_(input);
  if (output.empty()) throw UserError("forward of " + kind_ + " returns an undefined tensor");
  lent.written().require_none();
  operators.finish();
  return output;
}

struct SeededConstruction::State {
  std::unique_lock<std::mutex> alone;
  DefaultGenerators before;
};

SeededConstruction::SeededConstruction(uint64_t seed) {
  static std::mutex mutex;
  state_ = std::make_unique<State>(State{std::unique_lock(mutex), DefaultGenerators()});
  seed_default_generators(seed);
}

SeededConstruction::~SeededConstruction() { state_->before.restore(); }

}  // namespace tutti

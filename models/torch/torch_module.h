#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/layers/layer.h"
#include "models/model.h"
#include "models/torch/norms.h"

namespace torch::nn {
class Module;
}

namespace tutti {

// A torch::nn::Module as a layer. Parameters and buffers are the layer's, under their dotted names in the
// module; forward lends them to the module, gradients included. The module is a single layer: units of
// sharding and activation checkpointing are whole adapted modules, so adapt each block of a large model.
//
// - Batch norm follows the step: its statistics leave the module as tutti's own (models/layers/norm.h).
// - Dropout (alpha and feature dropout, too), attention and bernoulli draw by the places of samples. Other
//   random numbers come from libtorch's generator, and depend on the number of ranks and microbatches.
// - train() and eval() are the layer's; a module that is in evaluation when it is adapted stays so.
// - `forward` may write no other buffer (UserError), and keeps no tensor for a later call.
class TorchModule final : public LayerWithNorms {
 public:
  using Forward = std::function<TensorTree(const TensorTree& input)>;

  // Initial values are those that the module has now. `forward` calls the module.
  TorchModule(std::shared_ptr<torch::nn::Module> module, Forward forward);
  ~TorchModule() override;

  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return kind_.c_str(); }

 private:
  struct Lent;
  class Lending;
  void own(const std::shared_ptr<torch::nn::Module>& module);

  std::shared_ptr<torch::nn::Module> module_;
  Forward forward_;
  std::string kind_;
  std::vector<Lent> parameters_, buffers_;
  std::vector<torch::nn::Module*> in_evaluation_;  // those that stay so
};

// What a module's constructor draws comes from this seed, on all ranks alike; the default generators stay as
// they are.
class SeededConstruction {
 public:
  explicit SeededConstruction(uint64_t seed);
  ~SeededConstruction();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The layer of a module that `make` returns as a std::shared_ptr<Net>, where Net derives from
// torch::nn::Module and has `torch::Tensor forward(torch::Tensor)`, or a forward from TensorTree to
// TensorTree for several inputs or outputs. Initial values depend on `seed` alone, not on the recipe's seed.
// Include <torch/nn.h> first.
template <class Make>
std::shared_ptr<Layer> adapt(const Make& make, uint64_t seed = 0) {
  const auto module = [&] {
    const SeededConstruction seeded(seed);
    return make();
  }();
  using Net = typename std::decay_t<decltype(module)>::element_type;
  return std::make_shared<TorchModule>(module, [net = module.get()](const TensorTree& input) {
    if constexpr (std::is_invocable_v<decltype(&Net::forward), Net&, const TensorTree&>)
      return TensorTree(net->forward(input));
    else
      return TensorTree(net->forward(input.tensor()));
  });
}

// A classifier of batch["input"] that is one layer; names of weights are the layer's. The recipe's
// [model] loss applies.
class LayerClassifier final : public Classifier {
 public:
  explicit LayerClassifier(std::shared_ptr<Layer> layer) : layer_(add_slot("", std::move(layer))) {}
  TensorTree forward(const Batch& batch) override { return layer_(batch["input"]); }
  const char* kind() const override { return "LayerClassifier"; }

 private:
  Slot& layer_;
};

}  // namespace tutti

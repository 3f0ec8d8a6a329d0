#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensors/param_view.h"
#include "tensors/tree.h"

namespace tutti {

class Layer;

// Fills a fresh tensor with its initial values, drawing from the generator only.
using Init = std::function<void(at::Tensor&, at::Generator)>;

// A trained tensor of a layer. Lives as long as its layer, at one address; `tensor` is on the meta device
// until `materialise` and is replaced (not written in place) by surgery and sharding.
struct Parameter {
  std::string name;  // within the layer: "weight"
  at::Tensor tensor;
  Init init;
};

// A tensor that is saved but not trained: running statistics, a causal mask.
struct Buffer {
  std::string name;
  at::Tensor tensor;
  Init init;
  bool persistent = true;  // false: not part of checkpoints
};

// What one microbatch found of a normalisation layer's input; applied to the layer's buffers after the step's
// commit.
struct RunningStatistics {
  Layer* layer = nullptr;
  at::Tensor mean;      // [channels]
  at::Tensor variance;  // [channels], unbiased
  int64_t samples = 0;  // values per channel
};

// What a forward pass may know besides its input, and where it leaves what is not its output.
struct ForwardContext {
  bool training = true;
  std::vector<RunningStatistics>* statistics = nullptr;  // null: dropped
};

// A named place in a layer that holds another layer. Calling the slot calls whatever layer it holds now,
// between its hooks; surgery refills it.
class Slot {
 public:
  using Before = std::function<void(const TensorTree& input)>;
  using After = std::function<TensorTree(const TensorTree& input, TensorTree output)>;

  TensorTree operator()(const TensorTree& input) const;
  at::Tensor operator()(const at::Tensor& input) const;  // for layers of one tensor to one tensor

  const std::string& name() const { return name_; }
  Layer& layer() const { return *layer_; }
  bool empty() const { return layer_ == nullptr; }
  // Puts another layer in the place; the hooks stay. Gives back the old one.
  std::shared_ptr<Layer> fill(std::shared_ptr<Layer> layer);

  // Hooks run in the order added; an `after` may replace the output.
  void add_before(Before hook) { before_.push_back(std::move(hook)); }
  void add_after(After hook) { after_.push_back(std::move(hook)); }
  void clear_hooks();

 private:
  friend class Layer;
  std::string name_;
  Layer* owner_ = nullptr;
  std::shared_ptr<Layer> layer_;
  std::vector<Before> before_;
  std::vector<After> after_;
};

// A part of a model: parameters, buffers and slots for further layers, registered in the constructor and
// named by dotted path ("layer1.0.conv1.weight", as torchvision / transformers name them).
class Layer {
 public:
  virtual ~Layer();
  Layer(const Layer&) = delete;

  virtual TensorTree forward(const TensorTree& input) = 0;
  virtual const char* kind() const = 0;  // "Conv2d"; for surgery, `inspect` and logs

  const std::vector<std::unique_ptr<Parameter>>& own_parameters() const { return parameters_; }
  const std::vector<std::unique_ptr<Buffer>>& own_buffers() const { return buffers_; }
  const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }

  // Channels whose running statistics a training pass finds; 0 for layers that keep none.
  virtual int64_t statistics_channels() const { return 0; }
  // Takes one microbatch's statistics into the buffers; called after the commit, in rank and microbatch
  // order. Takes no memory: there is no way back.
  virtual void apply_statistics(const RunningStatistics&) {}

  // The pass that runs now: set on every layer of a model by `set_context`.
  const ForwardContext& context() const { return *context_; }

 protected:
  Layer();
  Parameter& add_parameter(std::string name, Shape shape, Init init, at::ScalarType dtype = at::kFloat);
  Buffer& add_buffer(std::string name, Shape shape, Init init, at::ScalarType dtype = at::kFloat,
                     bool persistent = true);
  Slot& add_slot(std::string name, std::shared_ptr<Layer> layer);

 private:
  friend class LayerWalk;
  friend void set_context(Layer& root, const ForwardContext* context);
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<Slot>> slots_;
  const ForwardContext* context_;
};

struct NamedParameter {
  std::string name;  // dotted path
  Layer* layer;
  Parameter* parameter;
};
struct NamedBuffer {
  std::string name;
  Layer* layer;
  Buffer* buffer;
};
struct NamedSlot {
  std::string name;
  Slot* slot;
};

// Everything below a root, depth first in order of registration; the order is the model's parameter order
// everywhere.
std::vector<NamedParameter> parameters(Layer& root);
std::vector<NamedBuffer> buffers(Layer& root);
std::vector<NamedSlot> slots(Layer& root);
// Every layer below the root and the root itself (name ""), in the same order.
std::vector<std::pair<std::string, Layer*>> layers(Layer& root);

// The context must outlive its use; null restores the default (training, statistics dropped).
void set_context(Layer& root, const ForwardContext* context);

// Allocates every meta tensor on the CPU and initialises it with a generator keyed by (seed, dotted name):
// the same bits whatever else the model holds. Parameters get requires_grad.
void materialise(Layer& root, uint64_t seed);

// "For every slot that holds an X, put a Y made from it": `make` returns null to leave a slot alone. Returns
// how many were replaced. New layers are materialised by the caller.
using Replacement = std::function<std::shared_ptr<Layer>(const NamedSlot&)>;
int replace_layers(Layer& root, const Replacement& make);

}  // namespace tutti

#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensors/draws.h"
#include "tensors/param_view.h"
#include "tensors/tree.h"

namespace tutti {

class Layer;

// Fills a new tensor with initial values; draws only from the generator.
using Init = std::function<void(at::Tensor&, at::Generator)>;

// A trained tensor. Lives at one address as long as its layer. `tensor` is on the meta device until
// `materialise`; surgery and sharding replace the tensor instead of writing into it.
struct Parameter {
  std::string name;  // within the layer: "weight"
  at::Tensor tensor;
  Init init;
};

// A saved tensor that is not trained: running statistics, a causal mask.
struct Buffer {
  std::string name;
  at::Tensor tensor;
  Init init;
  bool persistent = true;  // false: not saved in checkpoints
};

// Statistics of one microbatch at a normalisation layer; applied to the layer's buffers after the commit.
struct RunningStatistics {
  Layer* layer = nullptr;
  at::Tensor mean;      // [channels]
  at::Tensor variance;  // [channels], unbiased
  int64_t samples = 0;  // values per channel
};

// Mode of a forward pass, and where the pass puts statistics.
struct ForwardContext {
  bool training = true;
  std::vector<RunningStatistics>* statistics = nullptr;  // null: discarded
  int64_t first_sample = 0;                              // place of the first sample in the global batch
  // Random numbers of the current batch for a layer's name. Drawn once a batch (place 0) they are equal on
  // all ranks. Empty: new numbers at each call, from the default generator.
  std::function<std::unique_ptr<Draws>(std::string_view name, int64_t place)> source = {};

  std::unique_ptr<Draws> draws(std::string_view name, int64_t place = 0) const;
};

// A named place in a layer that holds another layer. Calling the slot calls the layer between the slot's
// hooks; surgery replaces the layer.
class Slot {
 public:
  using Before = std::function<void(const TensorTree& input)>;
  using After = std::function<TensorTree(const TensorTree& input, TensorTree output)>;

  TensorTree operator()(const TensorTree& input) const;
  at::Tensor operator()(const at::Tensor& input) const;  // for one tensor to one tensor

  const std::string& name() const { return name_; }
  Layer& layer() const { return *layer_; }
  bool empty() const { return layer_ == nullptr; }
  // Puts a layer into the slot and returns the old one. Hooks stay.
  std::shared_ptr<Layer> fill(std::shared_ptr<Layer> layer);

  // Hooks run in the order of their addition; an `after` hook returns the output.
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

// A part of a model: parameters, buffers and slots for further layers. All are registered in the constructor
// and named by dotted path as in torchvision and transformers: "layer1.0.conv1.weight".
class Layer {
 public:
  virtual ~Layer();
  Layer(const Layer&) = delete;

  virtual TensorTree forward(const TensorTree& input) = 0;
  virtual const char* kind() const = 0;  // "Conv2d"; for surgery, `inspect` and logs

  const std::vector<std::unique_ptr<Parameter>>& own_parameters() const { return parameters_; }
  const std::vector<std::unique_ptr<Buffer>>& own_buffers() const { return buffers_; }
  const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }

  // Channels of the running statistics; 0 for layers without statistics.
  virtual int64_t statistics_channels() const { return 0; }
  // Updates the buffers with one microbatch's statistics. Called after the commit, in rank and microbatch
  // order; must not allocate memory, because a committed step cannot be aborted.
  virtual void apply_statistics(const RunningStatistics&) {}

  // The context of the current pass; `set_context` sets it on every layer of a model.
  const ForwardContext& context() const { return *context_; }

 protected:
  Layer();
  Parameter& add_parameter(std::string name, Shape shape, Init init, at::ScalarType dtype = at::kFloat);
  Buffer& add_buffer(std::string name, Shape shape, Init init, at::ScalarType dtype = at::kFloat,
                     bool persistent = true);
  Slot& add_slot(std::string name, std::shared_ptr<Layer> layer);

 private:
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

// All parameters, buffers or slots of a root, depth first in order of registration. This is the model's
// parameter order everywhere.
std::vector<NamedParameter> parameters(Layer& root);
std::vector<NamedBuffer> buffers(Layer& root);
std::vector<NamedSlot> slots(Layer& root);
// The root (name "") and all layers below, in the same order.
std::vector<std::pair<std::string, Layer*>> layers(Layer& root);

// Sets the context of all layers; null restores the default (training, statistics discarded). The context
// must outlive its use.
void set_context(Layer& root, const ForwardContext* context);

// Allocates every meta tensor on the CPU and initialises it with a generator keyed by (seed, dotted name):
// the values do not depend on the rest of the model. Parameters get requires_grad.
void materialise(Layer& root, uint64_t seed);

// Replaces the layer of every slot for which `make` returns a layer; null leaves the slot as it is. Returns
// the number of replacements. The caller materialises new layers.
using Replacement = std::function<std::shared_ptr<Layer>(const NamedSlot&)>;
int replace_layers(Layer& root, const Replacement& make);

}  // namespace tutti

#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tensors/device.h"
#include "tensors/draws.h"
#include "tensors/param_view.h"
#include "tensors/tree.h"

namespace tutti {

class BufferUpdates;
class KeyCache;
class Layer;

// Fills a new tensor with initial values; draws only from the generator.
using Init = std::function<void(at::Tensor&, at::Generator)>;

// A tensor of a model. Several layers may own a parameter: see Layer::adopt. `tensor` is on the meta device
// until `materialise`; surgery and sharding replace the tensor instead of writing into it.
struct Parameter : std::enable_shared_from_this<Parameter> {
  std::string name;  // within the layer: "weight"
  at::Tensor tensor;
  Init init;
  bool trained = true;  // false: without gradient and optimizer state, but saved
  std::string origin;   // dotted name before surgery: see note_names; "" if surgery added it
};

// A saved tensor that is not trained: running statistics, a causal mask.
struct Buffer : std::enable_shared_from_this<Buffer> {
  std::string name;
  at::Tensor tensor;
  Init init;
  bool persistent = true;  // false: not saved in checkpoints
  bool constant = false;   // saved, but not read from checkpoints and files of weights
  std::string origin;      // as a parameter's
};

// Statistics of a layer's calls in a training pass, for its buffers; applied after the commit.
struct RunningStatistics {
  Layer* layer = nullptr;
  at::Tensor numbers;  // [layer->statistics_size()] float32
  int64_t calls = 1;   // of the layer, joined in the numbers
};

// Mode of a forward pass, and where the pass puts statistics.
struct ForwardContext {
  bool training = true;
  std::vector<RunningStatistics>* statistics = nullptr;  // null: discarded
  int64_t first_sample = 0;                              // place of the first sample in the global batch
  // Random numbers of the current batch for a layer's name. Drawn once a batch (place 0), equal on all ranks.
  // Empty: new numbers at each call, from the default generator.
  std::function<std::unique_ptr<Draws>(std::string_view name, int64_t place)> source = {};

  std::unique_ptr<Draws> draws(std::string_view name, int64_t place = 0) const;

  // Which numbers of `x`, of samples (dim 0), dropout keeps: bool [x.sizes()] on its device, each true with
  // `probability`. A sample's depend on its place in the global batch and on the number of masks drawn
  // earlier in the pass.
  at::Tensor kept(const at::Tensor& x, double probability) const;
  mutable int64_t masks = 0;   // drawn in this pass
  int64_t rows_of_sample = 1;  // of `x`, one behind the other: the texts of a pair
  // Set while a graph is recorded: where the device finds the key of a mask, for bernoullis, which changes
  // with each step.
  std::function<at::Tensor(const std::string& name)> key_on_device = {};
  KeyCache* cache =
      nullptr;  // of a pass of generation that keeps keys and values (models/layers/key_cache.h)

  void begin_pass(int64_t at_sample) {
    first_sample = at_sample;
    masks = 0;
  }
};

// A named place in a layer that holds another layer. Calling the slot calls the layer within the slot's
// hooks; surgery replaces the layer.
class Slot {
 public:
  // The rest of a call: the hooks that were added later, and the layer.
  class Next {
   public:
    TensorTree operator()(const TensorTree& input) const { return slot_.call(input, hook_); }

   private:
    friend class Slot;
    Next(const Slot& slot, std::size_t hook) : slot_(slot), hook_(hook) {}
    const Slot& slot_;
    std::size_t hook_;
  };
  using Around = std::function<TensorTree(const TensorTree& input, const Next& next)>;
  using Hook = std::shared_ptr<const Around>;

  TensorTree operator()(const TensorTree& input) const;
  at::Tensor operator()(const at::Tensor& input) const;  // for one tensor to one tensor

  const std::string& name() const { return name_; }
  Layer& layer() const { return *layer_; }
  std::shared_ptr<Layer> share() const { return layer_; }  // for a wrapper, which keeps the layer
  bool empty() const { return layer_ == nullptr; }
  // Puts a layer into the slot, in the context of the slot's owner, and returns the old layer. Hooks stay.
  std::shared_ptr<Layer> fill(std::shared_ptr<Layer> layer);

  // Goes around calls: `hook` gives the output, mostly by calling `next`. Those that were added first are
  // outermost. A hook acts as long as somebody has its handle, which may outlive the slot.
  [[nodiscard]] Hook around(Around hook);
  // hook(input), before a call.
  template <class Before>
  [[nodiscard]] Hook before(Before hook) {
    return around([hook = std::move(hook)](const TensorTree& input, const Next& next) {
      hook(input);
      return next(input);
    });
  }
  // hook(input, output), after a call: returns the output.
  template <class After>
  [[nodiscard]] Hook after(After hook) {
    return around([hook = std::move(hook)](const TensorTree& input, const Next& next) {
      return TensorTree(hook(input, next(input)));
    });
  }

 private:
  friend class Layer;
  TensorTree call(const TensorTree& input, std::size_t first_hook) const;

  std::string name_;
  Layer* owner_ = nullptr;
  std::shared_ptr<Layer> layer_;
  std::vector<std::weak_ptr<const Around>> hooks_;
};

// A part of a model: parameters, buffers and slots for further layers. All parts are registered in the
// constructor and named by dotted path as in torchvision and transformers: "layer1.0.conv1.weight".
//
// Surgery replaces layers by other layers (replace_layers, Slot::fill), before or after `materialise`, in a
// model that is being trained too (follow_surgery in training/trainee.h). Weights stay as they are if
// the new layer
// - holds the old one in a slot of its own (Slot::share): the weight "3.weight" becomes "3.conv.weight"; or
// - adopts the parameters and buffers of the old one, in its constructor:
//     LowPrecisionLayerNorm(LayerNorm& old) : weight_(old.weight() ? &adopt(*old.weight()) : nullptr) ...
//   The old layer is then thrown away. Layers of this folder show their options and parameters for this.
// To change what goes in or comes out of a layer without replacing the layer, put hooks around its slot.
class Layer : public std::enable_shared_from_this<Layer> {
 public:
  virtual ~Layer();
  Layer(const Layer&) = delete;

  virtual TensorTree forward(const TensorTree& input) = 0;
  virtual const char* kind() const = 0;  // "Conv2d"; for surgery, `inspect` and logs
  // Sizes for errors, behind kind(): "24 -> 3". Default: "with weight [8, 3, 3, 3]", or "".
  virtual std::string sizes_text() const;

  const std::vector<std::shared_ptr<Parameter>>& own_parameters() const { return parameters_; }
  const std::vector<std::shared_ptr<Buffer>>& own_buffers() const { return buffers_; }
  const std::vector<std::unique_ptr<Slot>>& slots() const { return slots_; }
  // Layers whose parameters `forward` of this layer reads without calling their slots: a table tied to the
  // output.
  virtual std::vector<Layer*> reads() const { return {}; }

  // Running statistics. A call in training adds `statistics_size` numbers of the layer's own to the context's
  // statistics and changes no buffer; 0 for layers without statistics.
  virtual int64_t statistics_size() const { return 0; }
  // Joins the numbers of the next calls to those so far, so that one application has the effect of two in
  // turn. Called before the commit, if the layer is called more than once in a microbatch. Default: an
  // assertion fails, since numbers would be lost.
  virtual void join_statistics(RunningStatistics& so_far, const RunningStatistics& next) const;
  // Says how these change the buffers (models/layers/buffer_updates.h). Called after the commit, in rank and
  // microbatch order; must make no tensors of its own, because a committed step cannot be aborted.
  virtual void apply_statistics(const RunningStatistics&, BufferUpdates&) {}

  // The context of the current pass; `set_context` sets the context of every layer of a model.
  const ForwardContext& context() const { return *context_; }

 protected:
  Layer();
  // Both throw UserError for complex numbers that checkpoints would have.
  Parameter& add_parameter(std::string name, Shape shape, Init init, at::ScalarType dtype = at::kFloat);
  Buffer& add_buffer(std::string name, Shape shape, Init init, at::ScalarType dtype = at::kFloat,
                     bool persistent = true);
  // Takes over a parameter or buffer of another layer: both layers then have the same object, whose tensor,
  // gradient and optimizer state stay unchanged. `name`: its new name within its layers; "" = unchanged.
  Parameter& adopt(Parameter& parameter, std::string name = "");
  Buffer& adopt(Buffer& buffer, std::string name = "");
  // `name`: "" gives the layer below this layer's names.
  Slot& add_slot(std::string name, std::shared_ptr<Layer> layer);

 private:
  friend void set_context(Layer& root, const ForwardContext* context);
  std::vector<std::shared_ptr<Parameter>> parameters_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<std::unique_ptr<Slot>> slots_;
  const ForwardContext* context_;
};

// Named parameters and buffers stay valid when surgery throws their layers away.
struct NamedParameter {
  std::string name;  // dotted path
  std::shared_ptr<Parameter> parameter;
};
struct NamedBuffer {
  std::string name;
  std::shared_ptr<Buffer> buffer;
};
struct NamedSlot {
  std::string name;
  Slot* slot;
};

// All parameters, buffers or slots of a root, depth first in order of registration. This is the model's
// parameter order everywhere. Shared parameters are listed once, under their first name.
std::vector<NamedParameter> parameters(Layer& root);
std::vector<NamedBuffer> buffers(Layer& root);
std::vector<NamedSlot> slots(Layer& root);
// The root (name "") and all layers below, in the same order.
std::vector<std::pair<std::string, Layer*>> layers(Layer& root);

// Sets the context of all layers; null restores the default (training, statistics discarded). The context
// must outlive its use. Allocates no memory, since destructors call it.
void set_context(Layer& root, const ForwardContext* context);

// A context of all layers for the lifetime of this object, then the earlier context.
class ContextScope {
 public:
  ContextScope(Layer& root, const ForwardContext& context) : root_(root), before_(root.context()) {
    set_context(root, &context);
  }
  ~ContextScope() { set_context(root_, &before_); }
  ContextScope(const ContextScope&) = delete;

 private:
  Layer& root_;
  const ForwardContext& before_;
};

// Evaluation for the lifetime of this object, then the earlier context.
class EvaluationMode {
 public:
  explicit EvaluationMode(Layer& root) : scope_(root, context_) {}

 private:
  const ForwardContext context_{.training = false};
  const ContextScope scope_;
};

// Notes the current names of parameters and buffers as their names before surgery (Parameter::origin), except
// tensors with an origin. `build` of training/trainee.h calls note_names before the first surgery.
void note_names(Layer& root);

// Allocates every meta tensor on the device, with the same strides, and sets its initial values, on the CPU,
// with a generator keyed by (seed, name before surgery, or else the dotted name): the values do not depend on
// the rest of the model. Trained parameters get requires_grad.
void materialise(Layer& root, uint64_t seed, const Device& device = {});
// The same, but parameters stay on the meta device: InitialValues gives single parameters.
void materialise_buffers(Layer& root, uint64_t seed, const Device& device = {});

// The initial values of a model's tensors.
class InitialValues {
 public:
  InitialValues(Layer& root, uint64_t seed);

  // On the CPU. `tensor`: of the model, under this name. A tensor that is not on the meta device is returned
  // unchanged.
  at::Tensor of(const at::Tensor& tensor, const Init& init, const std::string& name,
                const std::string& origin) const;
  at::Tensor of(const NamedParameter& named) const;

 private:
  uint64_t seed_;
  std::unordered_set<std::string> before_surgery_;  // the names of tensors before surgery
};

// The result of replace_layers for a layer.
struct Replaced {
  std::vector<std::string> names;  // of the slots in which the layer stood
  std::shared_ptr<Layer> before, after;
};

// Replaces every layer below the root for which `make`, called with its first slot, returns another layer;
// null leaves the layer unchanged. A layer in several slots is replaced in each slot, and new layers are not
// looked into. The caller materialises new layers.
using Replacement = std::function<std::shared_ptr<Layer>(const NamedSlot&)>;
std::vector<Replaced> replace_layers(Layer& root, const Replacement& make);

}  // namespace tutti

#include "models/layers/layer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "models/layers/layer_error.h"
#include "runtime/error.h"
#include "runtime/random.h"

namespace tutti {
namespace {

const ForwardContext kDefaultContext;

// "Linear 24 -> 3", "Conv2d with weight [8, 3, 3, 3]"
std::string layer_text(const Layer& layer) try {
  const std::string sizes = layer.sizes_text();
  return layer.kind() + (sizes.empty() ? "" : " " + sizes);
} catch (const std::exception&) {
  return layer.kind();  // the error may be that a weight has no sizes
}

// Of a tensor that checkpoints have.
void require_real(const std::string& name, at::ScalarType dtype) {
  if (at::isComplexType(dtype))
    throw UserError("'" + name +
                    "' has complex numbers, which checkpoints do not hold; keep their real and "
                    "imaginary parts (torch.view_as_real), or make it a buffer with persistent=False");
}

std::string dotted(const std::string& path, const std::string& name) {
  return path.empty() || name.empty() ? path + name : path + "." + name;
}

// The generator of tensor `name`: independent of all other tensors.
at::Generator generator_of(uint64_t seed, const std::string& name) {
  return at::detail::createCPUGenerator(RandomKey(seed, "init " + name).bits());
}

// A tensor on the meta device becomes an initialised CPU tensor; others are returned unchanged. The strides
// do not change the values.
at::Tensor filled(const at::Tensor& tensor, const Init& init, uint64_t seed, const std::string& name) {
  if (!tensor.is_meta()) return tensor;
  at::Tensor fresh = at::empty(tensor.sizes(), tensor.scalar_type());
  init(fresh, generator_of(seed, name));
  if (fresh.strides() == tensor.strides() || !tensor.is_non_overlapping_and_dense()) return fresh;
  return at::empty_strided(tensor.sizes(), tensor.strides(), fresh.options()).copy_(fresh);
}

class Surgeon {
 public:
  explicit Surgeon(const Replacement& make) : make_(make) {}

  void operate_below(const Layer& layer, const std::string& path) {
    for (const auto& slot : layer.slots())
      if (!slot->empty()) operate({dotted(path, slot->name()), slot.get()});
  }

  std::vector<Replaced> done;

 private:
  void operate(const NamedSlot& named) {
    const std::shared_ptr<Layer> before = named.slot->share();
    if (const auto known = replaced_.find(before.get()); known != replaced_.end()) {
      named.slot->fill(done[known->second].after);
      done[known->second].names.push_back(named.name);
      return;
    }
    if (!seen_.insert(before.get()).second) return;
    const std::shared_ptr<Layer> after = make_(named);
    if (!after || after == before) return operate_below(*before, named.name);
    named.slot->fill(after);
    seen_.insert(after.get());
    replaced_[before.get()] = done.size();
    done.push_back({{named.name}, before, after});
  }

  const Replacement& make_;
  std::unordered_set<const Layer*> seen_;
  std::unordered_map<const Layer*, std::size_t> replaced_;
};

// Adds layers depth first. A layer in several slots is added once, under its first name.
void add_layers(Layer& layer, const std::string& path, std::unordered_set<const Layer*>& visited,
                std::vector<std::pair<std::string, Layer*>>& all) {
  if (!visited.insert(&layer).second) return;
  all.emplace_back(path, &layer);
  for (const auto& slot : layer.slots())
    if (!slot->empty()) add_layers(slot->layer(), dotted(path, slot->name()), visited, all);
}

}  // namespace

std::unique_ptr<Draws> ForwardContext::draws(std::string_view name, int64_t place) const {
  return source ? source(name, place) : random_draws();
}

at::Tensor ForwardContext::kept(const at::Tensor& x, double probability) const {
  if (x.numel() == 0) return at::empty(x.sizes(), x.options().dtype(at::kBool));
  const std::string name = "Dropout " + std::to_string(source ? masks++ : 0);
  const int64_t samples = x.size(0) / rows_of_sample;
  const Shape sizes = {samples, x.numel() / samples};
  const at::Tensor kept =
      key_on_device ? bernoullis(key_on_device(name), sizes, probability)
                    : bernoullis(draws(name)->key_of_batch(), first_sample, sizes, probability, x.device());
  return kept.view(x.sizes());
}

std::string Layer::sizes_text() const {
  for (const auto& own : own_parameters())
    if (own->name == "weight") return "with weight " + shape_text(own->tensor.sizes());
  return "";
}

TensorTree Slot::operator()(const TensorTree& input) const { return call(input, 0); }

TensorTree Slot::call(const TensorTree& input, std::size_t first_hook) const {
  for (std::size_t h = first_hook; h < hooks_.size(); ++h)
    if (const Hook hook = hooks_[h].lock()) return (*hook)(input, Next(*this, h + 1));
  try {
    return layer_->forward(input);
  } catch (const std::exception& error) {
    throw_from_slot(
        name_, [this] { return layer_text(*layer_); }, error);
  }
}

at::Tensor Slot::operator()(const at::Tensor& input) const { return (*this)(TensorTree(input)).tensor(); }

std::shared_ptr<Layer> Slot::fill(std::shared_ptr<Layer> layer) {
  if (layer) set_context(*layer, &owner_->context());
  layer_.swap(layer);
  return layer;
}

Slot::Hook Slot::around(Around hook) {
  std::erase_if(hooks_, [](const auto& one) { return one.expired(); });
  auto handle = std::make_shared<const Around>(std::move(hook));
  hooks_.push_back(handle);
  return handle;
}

Layer::Layer() : context_(&kDefaultContext) {}
Layer::~Layer() = default;

Parameter& Layer::add_parameter(std::string name, Shape shape, Init init, at::ScalarType dtype) {
  require_real(name, dtype);
  auto fresh = std::make_shared<Parameter>();
  fresh->name = std::move(name);
  fresh->tensor = at::empty(shape, at::TensorOptions(at::kMeta).dtype(dtype));
  fresh->init = std::move(init);
  parameters_.push_back(std::move(fresh));
  return *parameters_.back();
}

Buffer& Layer::add_buffer(std::string name, Shape shape, Init init, at::ScalarType dtype, bool persistent) {
  if (persistent) require_real(name, dtype);
  auto fresh = std::make_shared<Buffer>();
  fresh->name = std::move(name);
  fresh->tensor = at::empty(shape, at::TensorOptions(at::kMeta).dtype(dtype));
  fresh->init = std::move(init);
  fresh->persistent = persistent;
  buffers_.push_back(std::move(fresh));
  return *buffers_.back();
}

Parameter& Layer::adopt(Parameter& parameter, std::string name) {
  if (!name.empty()) parameter.name = std::move(name);
  parameters_.push_back(parameter.shared_from_this());
  return parameter;
}

Buffer& Layer::adopt(Buffer& buffer, std::string name) {
  if (!name.empty()) buffer.name = std::move(name);
  buffers_.push_back(buffer.shared_from_this());
  return buffer;
}

void Layer::join_statistics(RunningStatistics&, const RunningStatistics&) const {
  TUTTI_ASSERT(false, std::string(kind()) +
                          " is called more than once in a microbatch, and does not say how its running "
                          "statistics join (Layer::join_statistics)");
}

Slot& Layer::add_slot(std::string name, std::shared_ptr<Layer> layer) {
  slots_.push_back(std::make_unique<Slot>());
  Slot& slot = *slots_.back();
  slot.name_ = std::move(name);
  slot.owner_ = this;
  slot.fill(std::move(layer));
  return slot;
}

std::vector<std::pair<std::string, Layer*>> layers(Layer& root) {
  std::vector<std::pair<std::string, Layer*>> all;
  std::unordered_set<const Layer*> visited;
  add_layers(root, "", visited, all);
  return all;
}

std::vector<NamedParameter> parameters(Layer& root) {
  std::vector<NamedParameter> all;
  std::unordered_set<const Parameter*> listed;
  for (const auto& [path, layer] : layers(root))
    for (const auto& own : layer->own_parameters())
      if (listed.insert(own.get()).second) all.push_back({dotted(path, own->name), own});
  return all;
}

std::vector<NamedBuffer> buffers(Layer& root) {
  std::vector<NamedBuffer> all;
  std::unordered_set<const Buffer*> listed;
  for (const auto& [path, layer] : layers(root))
    for (const auto& own : layer->own_buffers())
      if (listed.insert(own.get()).second) all.push_back({dotted(path, own->name), own});
  return all;
}

std::vector<NamedSlot> slots(Layer& root) {
  std::vector<NamedSlot> all;
  for (const auto& [path, layer] : layers(root))
    for (const auto& slot : layer->slots()) all.push_back({dotted(path, slot->name()), slot.get()});
  return all;
}

void set_context(Layer& root, const ForwardContext* context) {
  root.context_ = context ? context : &kDefaultContext;
  for (const auto& slot : root.slots_)
    if (!slot->empty()) set_context(slot->layer(), context);
}

void note_names(Layer& root) {
  for (const NamedParameter& named : parameters(root))
    if (named.parameter->origin.empty()) named.parameter->origin = named.name;
  for (const NamedBuffer& named : buffers(root))
    if (named.buffer->origin.empty()) named.buffer->origin = named.name;
}

void materialise(Layer& root, uint64_t seed, const Device& device) {
  const InitialValues values(root, seed);
  for (const NamedParameter& named : parameters(root)) {
    Parameter& parameter = *named.parameter;
    parameter.tensor = device.take(values.of(named));
    parameter.tensor.set_requires_grad(parameter.trained &&
                                       at::isFloatingType(parameter.tensor.scalar_type()));
  }
  materialise_buffers(root, seed, device);
}

void materialise_buffers(Layer& root, uint64_t seed, const Device& device) {
  const InitialValues values(root, seed);
  for (const NamedBuffer& named : buffers(root)) {
    Buffer& buffer = *named.buffer;
    buffer.tensor = device.take(values.of(buffer.tensor, buffer.init, named.name, buffer.origin));
  }
}

InitialValues::InitialValues(Layer& root, uint64_t seed) : seed_(seed) {
  for (const NamedParameter& named : parameters(root)) before_surgery_.insert(named.parameter->origin);
  for (const NamedBuffer& named : buffers(root)) before_surgery_.insert(named.buffer->origin);
}

// A new tensor does not get the values of an old one that has lost its name to the new one.
at::Tensor InitialValues::of(const at::Tensor& tensor, const Init& init, const std::string& name,
                             const std::string& origin) const {
  const at::NoGradGuard no_grad;
  const std::string fresh = before_surgery_.count(name) ? name + " (new)" : name;
  return filled(tensor, init, seed_, origin.empty() ? fresh : origin);
}

at::Tensor InitialValues::of(const NamedParameter& named) const {
  return of(named.parameter->tensor, named.parameter->init, named.name, named.parameter->origin);
}

std::vector<Replaced> replace_layers(Layer& root, const Replacement& make) {
  Surgeon surgeon(make);
  surgeon.operate_below(root, "");
  return std::move(surgeon.done);
}

}  // namespace tutti

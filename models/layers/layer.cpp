#include "models/layers/layer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <unordered_set>

#include "runtime/error.h"
#include "runtime/random.h"

namespace tutti {
namespace {

const ForwardContext kDefaultContext;

std::string dotted(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

// The generator of tensor `name`: independent of all other tensors.
at::Generator generator_of(uint64_t seed, const std::string& name) {
  return at::detail::createCPUGenerator(RandomKey(seed, "init " + name).bits());
}

// A tensor on the meta device becomes an initialised CPU tensor; others are returned unchanged.
at::Tensor filled(const at::Tensor& tensor, const Init& init, uint64_t seed, const std::string& name) {
  if (!tensor.is_meta()) return tensor;
  at::Tensor fresh = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
  init(fresh, generator_of(seed, name));
  return fresh;
}

int replace_below(Layer& layer, const std::string& path, const Replacement& make) {
  int replaced = 0;
  for (const auto& slot : layer.slots()) {
    if (slot->empty()) continue;
    const NamedSlot named{dotted(path, slot->name()), slot.get()};
    if (std::shared_ptr<Layer> fresh = make(named)) {
      slot->fill(std::move(fresh));
      ++replaced;
    } else {
      replaced += replace_below(slot->layer(), named.name, make);
    }
  }
  return replaced;
}

// Adds layers depth first. A layer in several slots is added once, under its first name.
void add_layers(Layer& layer, const std::string& path, std::unordered_set<const Layer*>& visited,
                std::vector<std::pair<std::string, Layer*>>& found) {
  if (!visited.insert(&layer).second) return;
  found.emplace_back(path, &layer);
  for (const auto& slot : layer.slots())
    if (!slot->empty()) add_layers(slot->layer(), dotted(path, slot->name()), visited, found);
}

}  // namespace

std::unique_ptr<Draws> ForwardContext::draws(std::string_view name, int64_t place) const {
  return source ? source(name, place) : random_draws();
}

TensorTree Slot::operator()(const TensorTree& input) const {
  for (const Before& before : before_) before(input);
  TensorTree output = layer_->forward(input);
  for (const After& after : after_) output = after(input, std::move(output));
  return output;
}

at::Tensor Slot::operator()(const at::Tensor& input) const { return (*this)(TensorTree(input)).tensor(); }

std::shared_ptr<Layer> Slot::fill(std::shared_ptr<Layer> layer) {
  if (layer) set_context(*layer, &owner_->context());
  layer_.swap(layer);
  return layer;
}

void Slot::clear_hooks() {
  before_.clear();
  after_.clear();
}

Layer::Layer() : context_(&kDefaultContext) {}
Layer::~Layer() = default;

Parameter& Layer::add_parameter(std::string name, Shape shape, Init init, at::ScalarType dtype) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions(at::kMeta).dtype(dtype));
  parameters_.push_back(
      std::make_unique<Parameter>(Parameter{std::move(name), std::move(tensor), std::move(init)}));
  return *parameters_.back();
}

Buffer& Layer::add_buffer(std::string name, Shape shape, Init init, at::ScalarType dtype, bool persistent) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions(at::kMeta).dtype(dtype));
  buffers_.push_back(
      std::make_unique<Buffer>(Buffer{std::move(name), std::move(tensor), std::move(init), persistent}));
  return *buffers_.back();
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
  std::vector<std::pair<std::string, Layer*>> found;
  std::unordered_set<const Layer*> visited;
  add_layers(root, "", visited, found);
  return found;
}

std::vector<NamedParameter> parameters(Layer& root) {
  std::vector<NamedParameter> found;
  for (const auto& [path, layer] : layers(root))
    for (const auto& own : layer->own_parameters())
      found.push_back({dotted(path, own->name), layer, own.get()});
  return found;
}

std::vector<NamedBuffer> buffers(Layer& root) {
  std::vector<NamedBuffer> found;
  for (const auto& [path, layer] : layers(root))
    for (const auto& own : layer->own_buffers()) found.push_back({dotted(path, own->name), layer, own.get()});
  return found;
}

std::vector<NamedSlot> slots(Layer& root) {
  std::vector<NamedSlot> found;
  for (const auto& [path, layer] : layers(root))
    for (const auto& slot : layer->slots()) found.push_back({dotted(path, slot->name()), slot.get()});
  return found;
}

void set_context(Layer& root, const ForwardContext* context) {
  for (const auto& [name, layer] : layers(root)) layer->context_ = context ? context : &kDefaultContext;
}

void materialise(Layer& root, uint64_t seed) {
  const at::NoGradGuard no_grad;
  for (const NamedParameter& named : parameters(root)) {
    at::Tensor& tensor = named.parameter->tensor;
    tensor = filled(tensor, named.parameter->init, seed, named.name);
    tensor.set_requires_grad(at::isFloatingType(tensor.scalar_type()));
  }
  for (const NamedBuffer& named : buffers(root))
    named.buffer->tensor = filled(named.buffer->tensor, named.buffer->init, seed, named.name);
}

int replace_layers(Layer& root, const Replacement& make) { return replace_below(root, "", make); }

}  // namespace tutti

#include "models/script/script_layer.h"

#include <ATen/core/class_type.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "models/script/analysis.h"
#include "models/torch/own_operators.h"
#include "models/torch/written_tensors.h"
#include "runtime/error.h"
#include "tensors/device.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti::script {
namespace {

constexpr const char* kTraining = "training";

bool is_module(const c10::IValue& value) {
  return value.isObject() && value.toObjectRef().type()->is_module();
}

// True if any module is in training.
bool has_training(const Object& object) {
  for (std::size_t i = 0; i < object->type()->numAttributes(); ++i) {
    const c10::IValue& value = object->getSlot(i);
    if (is_module(value) && has_training(value.toObject())) return true;
    if (value.isBool() && value.toBool() && object->type()->getAttributeName(i) == kTraining) return true;
  }
  return false;
}

void leave_tensors_of(const Object& object) {
  for (std::size_t i = 0; i < object->type()->numAttributes(); ++i) {
    const c10::IValue& value = object->getSlot(i);
    if (is_module(value)) leave_tensors_of(value.toObject());
    if (value.isTensor() && value.toTensor().defined())
      object->setSlot(i, at::empty(value.toTensor().sizes(), value.toTensor().options().device(at::kMeta)));
  }
}

// Equal for tensors that share their numbers.
using NumbersOf = std::tuple<const void*, int64_t, std::vector<int64_t>, std::vector<int64_t>>;
NumbersOf numbers_of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset(), tensor.sizes().vec(),
          tensor.strides().vec()};
}

}  // namespace

struct ScriptLayer::Building {
  std::shared_ptr<Script> script;
  bool stays = false;  // modules in evaluation stay so
  std::unordered_map<const c10::ivalue::Object*, std::shared_ptr<ScriptLayer>> layers;
  struct Tied {
    Parameter* parameter;
    ScriptLayer* owner;
  };
  std::map<NumbersOf, Tied> tied;
};

Script::Script(const std::string& path) : module(load(path)), stored(path, module) {}

void Script::leave_tensors() { leave_tensors_of(module.toObject()); }

// A number of batches for the script to count on, in a pass; the layer's own counts after the commit.
class ScriptLayer::Counting {
 public:
  explicit Counting(ScriptLayer& layer) : layer_(layer), before_(layer.counted_) {
    if (!layer.tracked_) return;
    const at::Tensor& own = layer.tracked_->tensor;
    layer.counted_ = (own.is_meta() ? layer.object_->getAttr(Norms::kTracked).toTensor() : own).clone();
  }
  ~Counting() { layer_.counted_ = before_; }
  Counting(const Counting&) = delete;

 private:
  ScriptLayer& layer_;
  const at::Tensor before_;
};

// The layer's modules and tensors, while a function of the layer runs.
class ScriptLayer::Calls final : public Host {
 public:
  Calls(Script& script, c10::Device device) : script_(script), device_(device) {}

  c10::IValue attribute(const Object& module, std::size_t slot) override {
    const auto layer = script_.layers.find(module.get());
    return layer == script_.layers.end() ? module->getSlot(slot) : layer->second->attribute(slot);
  }
  std::optional<c10::IValue> call(const Object& module, const Values& arguments) override {
    const auto slot = script_.slots.find(module.get());
    if (slot == script_.slots.end()) return std::nullopt;
    return script_.packing.unpack((*slot->second)(script_.packing.pack(arguments))).at(0);
  }
  c10::Device device() const override { return device_; }

 private:
  Script& script_;
  c10::Device device_;
};

std::shared_ptr<ScriptLayer> ScriptLayer::root(const std::shared_ptr<Script>& script) try {
  OwnOperators::prepare();
  const Object object = script->module.toObject();
  Building building{script, has_training(object)};
  auto root = std::make_shared<ScriptLayer>(building, object, "");
  if (parameters(*root).empty())
    throw UserError(
        "it has no parameters to train: torch.jit.freeze and optimize_for_inference make them "
        "constants");
  Analysis(*script).run(*root);
  return root;
} catch (const c10::Error& error) {
  if (is_lack_of_memory(error)) throw;
  throw UserError("its objects do not fit its code: " + own_words(error));
}

ScriptLayer::ScriptLayer(Building& building, Object object, const std::string& prefix)
    : script_(building.script), object_(std::move(object)), kind_(object_->type()->name()->name()) {
  script_->layers[object_.get()] = this;
  const auto& type = *object_->type();
  attributes_.resize(type.numAttributes());
  for (std::size_t i = 0; i < type.numAttributes(); ++i) {
    const std::string& name = type.getAttributeName(i);
    const c10::IValue& value = object_->getSlot(i);
    if (value.isTensor() && value.toTensor().defined()) add_tensor(building, i, name, prefix);
    if (name == kTraining && value.isBool()) {
      attributes_[i].is_mode = true;
      stays_in_evaluation_ = building.stays && !value.toBool();
    }
    if (!is_module(value)) continue;
    const Object child = value.toObject();
    auto& layer = building.layers[child.get()];
    if (!layer) layer = std::make_shared<ScriptLayer>(building, child, prefix + name + ".");
    Slot& slot = add_slot(name, layer);
    script_->slots.emplace(child.get(), &slot);
  }
  add_lists(building);
  add_norm();
}

// Of weights that a module has in a list too, as LSTM and GRU do.
void ScriptLayer::add_lists(Building& building) {
  for (std::size_t i = 0; i < attributes_.size(); ++i) {
    const c10::IValue& value = object_->getSlot(i);
    if (!value.isTensorList()) continue;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      const auto known = building.tied.find(numbers_of(tensor));
      attributes_[i].list.push_back(known == building.tied.end() ? nullptr : known->second.parameter);
    }
  }
}

void ScriptLayer::add_tensor(Building& building, std::size_t slot, const std::string& name,
                             const std::string& prefix) {
  const at::Tensor tensor = object_->getSlot(slot).toTensor();
  const auto init = [stored = std::shared_ptr<Stored>(script_, &script_->stored), full = prefix + name](
                        at::Tensor& to, at::Generator) { stored->read(full, to); };
  const Shape shape = tensor.sizes().vec();
  if (!object_->type()->is_parameter(slot)) {
    attributes_[slot].buffer =
        &add_buffer(name, shape, init, tensor.scalar_type(), object_->type()->is_buffer(slot));
    return;
  }
  const auto [known, is_new] = building.tied.try_emplace(numbers_of(tensor));
  if (is_new || tensor.numel() == 0) {
    Parameter& parameter = add_parameter(name, shape, init, tensor.scalar_type());
    parameter.trained = tensor.requires_grad();
    known->second = {&parameter, this};
  } else if (known->second.owner != this) {
    reads_.push_back(known->second.owner);
  }
  attributes_[slot].parameter = known->second.parameter;
}

void ScriptLayer::add_norm() {
  const auto named = [&](const char* name) -> Buffer* {
    const auto buffer = std::ranges::find(own_buffers(), name, [](const auto& one) { return one->name; });
    return buffer == own_buffers().end() ? nullptr : buffer->get();
  };
  Buffer *const mean = named(Norms::kMean), *const variance = named(Norms::kVariance);
  if (!mean || !variance) return;
  tracked_ = named(Norms::kTracked);
  norms_.add(*mean, *variance, tracked_);
}

c10::IValue ScriptLayer::attribute(std::size_t slot) const {
  const Attribute& known = attributes_[slot];
  if (known.is_mode) return context().training && !stays_in_evaluation_;
  if (known.buffer && known.buffer == tracked_ && counted_.defined()) return counted_;
  if (known.parameter && !known.parameter->tensor.is_meta()) return known.parameter->tensor;
  if (known.buffer && !known.buffer->tensor.is_meta()) return known.buffer->tensor;
  const c10::IValue& stored = object_->getSlot(slot);
  if (known.buffer)
    return stored.toTensor().clone();  // code that runs before the model has tensors may write it
  return known.list.empty() ? stored : list_of(known, stored);
}

c10::IValue ScriptLayer::list_of(const Attribute& attribute, const c10::IValue& stored) {
  c10::List<at::Tensor> list = stored.toTensorList().copy();
  for (std::size_t i = 0; i < attribute.list.size(); ++i)
    if (const Parameter* const parameter = attribute.list[i]; parameter && !parameter->tensor.is_meta())
      list.set(i, parameter->tensor);
  return list;
}

TensorTree ScriptLayer::forward(const TensorTree& input) {
  const at::AutoGradMode same(at::GradMode::is_enabled());  // if the script changes it and fails
  Values arguments = script_->packing.unpack(input);
  Calls calls(*script_, device_of(arguments));
  arguments.insert(arguments.begin(), object_);
  const WrittenTensors written(*this);
  const Counting counting(*this);
  OwnOperators operators(*this, norms_, script_->always);
  const c10::IValue result =
      script_->codes.run(object_->type()->getMethod("forward"), std::move(arguments), calls);
  written.require_none();
  operators.finish();
  return script_->packing.pack({result});
}

c10::Device ScriptLayer::device_of(const Values& arguments) const {
  for (const c10::IValue& argument : arguments)
    if (argument.isTensor() && argument.toTensor().defined()) return argument.toTensor().device();
  for (const auto& [name, parameter] : parameters(*script_->layers.at(script_->module.toObject().get())))
    return parameter->tensor.device();
  return Device().where;
}

}  // namespace tutti::script

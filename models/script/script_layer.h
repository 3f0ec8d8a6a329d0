#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/layers/layer.h"
#include "models/script/code.h"
#include "models/script/packing.h"
#include "models/script/stored.h"
#include "models/torch/norms.h"

namespace tutti::script {

class ScriptLayer;

// What the layers of a script share. Rank and model have their own.
struct Script {
  explicit Script(const std::string& path);

  c10::IValue module;  // the root, whose tensors are the layers'
  Stored stored;
  Codes codes;
  Packing packing;
  bool always = false;  // traced in evaluation: dropout and batch norm are the layer's mode
  std::unordered_map<const c10::ivalue::Object*, ScriptLayer*> layers;
  std::unordered_map<const c10::ivalue::Object*, Slot*> slots;  // the first

  // Frees the tensors of the file. Until then a layer whose tensors are on the meta device has those.
  void leave_tensors();
};

// A module of a TorchScript file. Calls of `forward` go through slots.
class ScriptLayer final : public LayerWithNorms {
 public:
  // The root, with all layers below. Throws UserError for what cannot be run.
  static std::shared_ptr<ScriptLayer> root(const std::shared_ptr<Script>& script);

  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return kind_.c_str(); }
  std::vector<Layer*> reads() const override { return reads_; }

  struct Building;
  // `prefix`: of its names in the file.
  ScriptLayer(Building& building, Object object, const std::string& prefix);

 private:
  friend class Analysis;
  class Calls;
  class Counting;
  struct Attribute {  // of the module, by its place; null: as in the file
    Parameter* parameter = nullptr;
    Buffer* buffer = nullptr;
    bool is_mode = false;
    std::vector<Parameter*> list = {};  // of a list of tensors; null: as in the file
  };
  void add_tensor(Building& building, std::size_t slot, const std::string& name, const std::string& prefix);
  void add_lists(Building& building);
  void add_norm();
  c10::IValue attribute(std::size_t slot) const;
  static c10::IValue list_of(const Attribute& attribute, const c10::IValue& stored);
  c10::Device device_of(const Values& arguments) const;

  std::shared_ptr<Script> script_;
  Object object_;
  std::string kind_;
  std::vector<Attribute> attributes_;
  bool stays_in_evaluation_ = false;
  Buffer* tracked_ = nullptr;  // of the norm
  at::Tensor counted_;         // in a pass
  std::vector<Layer*> reads_;
};

}  // namespace tutti::script

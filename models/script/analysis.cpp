#include "models/script/analysis.h"

#include <ATen/core/class_type.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <tuple>

#include "models/script/code.h"
#include "models/script/script_layer.h"
#include "runtime/error.h"

namespace tutti::script {
namespace {

namespace jit = torch::jit;
namespace prim = c10::prim;

bool has_step(c10::Symbol kind) {
  const std::array known{prim::Constant,      prim::GetAttr,       prim::SetAttr,       prim::If,
                         prim::Loop,          prim::CallMethod,    prim::CallFunction,  prim::TupleConstruct,
                         prim::ListConstruct, prim::DictConstruct, prim::Uninitialized, prim::CreateObject,
                         prim::isinstance,    prim::TupleSlice,    prim::TupleUnpack,   prim::ListUnpack,
                         prim::Enter,         prim::Exit};
  return std::ranges::find(known, kind) != known.end();
}

bool is_module(const jit::Value& value) {
  const auto type = value.type()->cast<c10::ClassType>();
  return type && type->is_module();
}

}  // namespace

class Analysis::Walk {
 public:
  explicit Walk(Script& script) : script_(script) {}

  // A method of `self`, or a function if it is null, as part of the layer's forward.
  void function(ScriptLayer& layer, const Object& self, jit::Function& function) {
    require_known(function);
    if (!seen_.emplace(&layer, self.get(), &function).second) return;
    const auto graph = jit::toGraphFunction(function).graph();
    std::unordered_map<const jit::Value*, Object> known;
    if (self && !graph->inputs().empty()) known[graph->inputs()[0]] = self;
    block(layer, *graph->block(), known);
  }

  bool always() const { return off_ && !on_; }
  std::set<std::pair<ScriptLayer*, ScriptLayer*>> reads;  // who reads, and whose

 private:
  using Known = std::unordered_map<const jit::Value*, Object>;

  void block(ScriptLayer& layer, const jit::Block& block, Known& known) {
    for (const jit::Node* node : block.nodes()) {
      look_at(layer, *node, known);
      for (const jit::Block* inner : node->blocks()) this->block(layer, *inner, known);
    }
  }

  void look_at(ScriptLayer& layer, const jit::Node& node, Known& known) {
    const c10::Symbol kind = node.kind();
    if (kind == prim::GetAttr) return get(layer, node, known);
    if (kind == prim::SetAttr && is_module(*node.input(0)))
      throw UserError(place_of(node) + " sets the attribute '" + node.s(c10::attr::name) +
                      "' of a module; forward may change nothing that lasts, since a step may be made again");
    if (kind == prim::CallMethod) return call(layer, node, known);
    if (kind == prim::CallFunction)
      return function(layer, {}, *node.input(0)->type()->expect<c10::FunctionType>()->function());
    if (kind == prim::Enter || kind == prim::Exit) {
      const auto type = node.input(0)->type()->expect<c10::ClassType>();
      return function(layer, {}, type->getMethod(kind == prim::Enter ? "__enter__" : "__exit__"));
    }
    if (has_step(kind)) return;
    if (!node.maybeOperator() || kind.toQualString() == std::string("prim::fork"))
      throw UserError(place_of(node) + " is not known to tutti; torch.export may write the model without it");
    require_known(node);
    note_mode(node);
  }

  void get(ScriptLayer& layer, const jit::Node& node, Known& known) {
    const auto input = known.find(node.input(0));
    if (input == known.end() || !input->second->type()->is_module()) return;
    const Object object = input->second;  // the map may move
    const c10::IValue& value = object->getSlot(object->type()->getAttributeSlot(node.s(c10::attr::name)));
    if (value.isObject()) known[node.output()] = value.toObject();
    const auto owner = script_.layers.find(object.get());
    if (value.isTensor() && owner != script_.layers.end() && owner->second != &layer)
      reads.emplace(&layer, owner->second);
  }

  void call(ScriptLayer& layer, const jit::Node& node, Known& known) {
    const std::string& name = node.s(c10::attr::name);
    const auto self = known.find(node.input(0));
    if (self == known.end()) {
      const auto type = node.input(0)->type()->cast<c10::ClassType>();
      if (type && !type->is_module()) function(layer, {}, type->getMethod(name));
      return;
    }
    const Object object = self->second;
    const auto callee = script_.layers.find(object.get());
    const bool is_layer = name == "forward" && callee != script_.layers.end();
    function(is_layer ? *callee->second : layer, object, object->type()->getMethod(name));
  }

  // Whether an operator says that it is in training.
  void note_mode(const jit::Node& node) {
    const c10::FunctionSchema* const schema = node.maybeSchema();
    if (!schema) return;
    for (const char* name : {"train", "training"}) {
      const auto index = schema->argumentIndexWithName(name);
      if (!index || static_cast<std::size_t>(*index) >= node.inputs().size()) continue;
      const auto value = jit::toIValue(node.input(static_cast<std::size_t>(*index)));
      const bool is_off = value && value->isBool() && !value->toBool();
      (is_off ? off_ : on_) = true;
    }
  }

  Script& script_;
  std::set<std::tuple<const ScriptLayer*, const c10::ivalue::Object*, const jit::Function*>> seen_;
  bool on_ = false, off_ = false;
};

Analysis::Analysis(Script& script) : walk_(std::make_unique<Walk>(script)) {}
Analysis::~Analysis() = default;

void Analysis::run(ScriptLayer& root) {
  const Object object = root.object_;
  walk_->function(root, object, object->type()->getMethod("forward"));
  for (const auto& [reader, read] : walk_->reads)
    if (std::ranges::find(reader->reads_, static_cast<Layer*>(read)) == reader->reads_.end())
      reader->reads_.push_back(read);
  root.script_->always = walk_->always();
}

}  // namespace tutti::script

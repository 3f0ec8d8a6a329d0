#include "models/script/code.h"

#include <ATen/core/class_type.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "models/torch/known_operators.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/process/process_watch.h"
#include "runtime/text.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti::script {
namespace {

namespace jit = torch::jit;
namespace prim = c10::prim;

constexpr int kLookSteps = 16;  // between looks at a request to stop, which ask the system

using Place = std::size_t;  // of a value

struct Step;
struct Steps {
  std::vector<Place> inputs;  // of the block
  std::vector<Step> steps;
  std::vector<Place> outputs;
};

struct Step {
  const jit::Node* node = nullptr;
  c10::Symbol kind;
  std::vector<Place> inputs, outputs;
  std::vector<Place> last_uses;                     // values that nobody uses after the step
  mutable std::optional<jit::Operation> operation;  // of an operator; libtorch calls it as if it changed
  bool counts_inputs = false;                       // the operator takes their number
  std::optional<CheckedArguments> checked;
  c10::IValue constant;  // or null
  jit::Function* function = nullptr;
  std::string name;      // of an attribute or a method
  std::size_t slot = 0;  // of the attribute
  std::vector<Steps> blocks;
};

class Preparer {
 public:
  Steps block(const jit::Block& block) {
    Steps steps;
    for (const jit::Value* input : block.inputs()) steps.inputs.push_back(place(input));
    for (const jit::Node* node : block.nodes()) steps.steps.push_back(step(*node));
    for (const jit::Value* output : block.outputs()) steps.outputs.push_back(place(output));
    free_values(block, steps);
    return steps;
  }
  std::size_t values() const { return places_.size(); }

 private:
  Place place(const jit::Value* value) { return places_.emplace(value, places_.size()).first->second; }

  Step step(const jit::Node& node) {
    Step step;
    step.node = &node;
    step.kind = node.kind();
    for (const jit::Value* input : node.inputs()) step.inputs.push_back(place(input));
    for (const jit::Value* output : node.outputs()) step.outputs.push_back(place(output));
    for (const jit::Block* inner : node.blocks()) step.blocks.push_back(block(*inner));
    fill(step, node);
    return step;
  }

  static void fill(Step& step, const jit::Node& node) {
    if (step.kind == prim::Constant) {
      if (const auto value = jit::toIValue(node.output())) step.constant = *value;
    } else if (step.kind == prim::GetAttr || step.kind == prim::SetAttr) {
      step.name = node.s(c10::attr::name);
      step.slot = node.input(0)->type()->expect<c10::ClassType>()->getAttributeSlot(step.name);
    } else if (step.kind == prim::CallMethod) {
      step.name = node.s(c10::attr::name);
    } else if (step.kind == prim::CallFunction) {
      step.function = node.input(0)->type()->expect<c10::FunctionType>()->function();
    } else if (step.kind == prim::RaiseException) {  // libtorch's operator has no line
    } else if (prints(step.kind)) {
      step.operation = [](jit::Stack& stack) { stack.clear(); };
    } else if (node.maybeOperator()) {
      require_known(node);
      step.operation = node.getOperation();
      step.counts_inputs = node.getOperator().schema().is_vararg();
      step.checked.emplace(node.getOperator().schema());
    }
  }

  // A file may print nothing, since a terminal obeys some characters.
  static bool prints(c10::Symbol kind) { return kind == prim::Print || kind == c10::aten::warn; }

  static void add_used(const jit::Node& node, std::vector<const jit::Value*>& used) {
    used.insert(used.end(), node.inputs().begin(), node.inputs().end());
    for (const jit::Block* block : node.blocks()) {
      for (const jit::Node* inner : block->nodes()) add_used(*inner, used);
      used.insert(used.end(), block->outputs().begin(), block->outputs().end());
    }
  }

  // A block frees the values that it has made.
  void free_values(const jit::Block& block, Steps& steps) {
    std::unordered_set<const jit::Value*> own(block.inputs().begin(), block.inputs().end()),
        later(block.outputs().begin(), block.outputs().end());
    for (const jit::Node* node : block.nodes()) own.insert(node->outputs().begin(), node->outputs().end());
    std::vector<const jit::Node*> nodes(block.nodes().begin(), block.nodes().end());
    for (std::size_t i = nodes.size(); i-- > 0;) {
      std::vector<const jit::Value*> used(nodes[i]->outputs().begin(), nodes[i]->outputs().end());
      add_used(*nodes[i], used);
      for (const jit::Value* value : used)
        if (own.contains(value) && later.insert(value).second)
          steps.steps[i].last_uses.push_back(place(value));
    }
  }

  std::unordered_map<const jit::Value*, Place> places_;
};

}  // namespace

std::string place_of(const jit::Node& node) {
  const std::string text = node.kind().toQualString();
  try {
    const auto line = node.sourceRange().file_line_col();
    if (!line) return text;
    const auto& [file, number, column] = *line;
    return text + " (" + file.substr(file.rfind('/') + 1) + ":" + std::to_string(number) + ")";
  } catch (const c10::Error&) {  // the file's record of lines is damaged
    return text;
  }
}

void require_known(const jit::Node& node) {
  tutti::require_known(node.getOperator().schema(), place_of(node));
}

void require_known(const jit::Function& function) {
  if (!function.isGraphFunction()) refuse_operator(function.qualname().qualifiedName());
}

class DepthScope {
 public:
  explicit DepthScope(int& depth) : depth_(depth) { ++depth_; }
  ~DepthScope() { --depth_; }
  DepthScope(const DepthScope&) = delete;

 private:
  int& depth_;
};

struct Codes::Code {
  Steps steps;
  std::size_t values = 0;
};

// True of operators whose time grows with their first argument.
bool passes_over_first(const c10::Symbol& name) {
  const c10::Symbol others[] = {c10::aten::__getitem__, c10::aten::len, c10::aten::append,
                                c10::aten::_set_item, c10::aten::select};
  return std::ranges::find(others, name) == std::end(others);
}

// A call of a function.
class Runner {
 public:
  Runner(Codes& codes, Host& host, std::size_t values) : codes_(codes), host_(host), values_(values) {}

  Values run(const Steps& block, Values inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) values_[block.inputs[i]] = std::move(inputs[i]);
    for (const Step& step : block.steps) {
      run(step);
      for (const Place place : step.last_uses) values_[place] = {};
    }
    return values_at(block.outputs);
  }

 private:
  Values values_at(const std::vector<Place>& places) const {
    Values values;
    values.reserve(places.size());
    for (const Place place : places) values.push_back(values_[place]);
    return values;
  }
  const c10::IValue& in(const Step& step, std::size_t index) const { return values_[step.inputs[index]]; }
  void set(const Step& step, c10::IValue value) { values_[step.outputs.at(0)] = std::move(value); }
  void set_all(const Step& step, Values results) {
    for (std::size_t i = 0; i < step.outputs.size(); ++i) values_[step.outputs[i]] = std::move(results.at(i));
  }

  void run(const Step& step) try {
    codes_.count(*step.node, 1);
    act(step);
  } catch (const c10::Error& error) {  // a value that is not of the type that the code says
    if (is_lack_of_memory(error)) throw;
    throw UserError(place_of(*step.node) + ": " + own_words(error));
  }

  void act(const Step& step) {
    if (step.operation) return operate(step);
    if (step.kind == prim::Constant) return set(step, constant(step.constant));
    if (step.kind == prim::GetAttr) return get_attribute(step);
    if (step.kind == prim::SetAttr) return in(step, 0).toObject()->setSlot(step.slot, in(step, 1));
    if (step.kind == prim::If) return set_all(step, run(step.blocks[in(step, 0).toBool() ? 0 : 1], {}));
    if (step.kind == prim::Loop) return loop(step);
    if (step.kind == prim::CallMethod) return call_method(step);
    if (step.kind == prim::CallFunction) return call_function(step);
    make(step);
  }

  void operate(const Step& step) {
    jit::Stack stack = values_at(step.inputs);
    for (const Place place : step.last_uses)
      if (std::ranges::find(step.inputs, place) != step.inputs.end()) values_[place] = {};
    const c10::IValue self = stack.empty() || !stack.front().isList() ? c10::IValue() : stack.front();
    for (std::size_t i = passes_over_first(step.node->kind()) ? 0 : 1; i < stack.size(); ++i)
      codes_.count(*step.node, items_of(stack[i]));
    if (step.counts_inputs) stack.emplace_back(static_cast<int64_t>(step.inputs.size()));
    try {
      if (const std::string problem = step.checked ? step.checked->problem(stack) : ""; !problem.empty())
        throw UserError(place_of(*step.node) + ": " + problem);
      (*step.operation)(stack);
    } catch (const UserError&) {
      throw;
    } catch (const std::runtime_error& error) {
      if (is_lack_of_memory(error)) throw;
      throw UserError(place_of(*step.node) + ": " + own_words(error));
    }
    int64_t items = 0;
    for (const c10::IValue& result : stack) items += result.is(self) ? 0 : items_of(result);
    codes_.count(*step.node, items);
    set_all(step, std::move(stack));
  }

  static int64_t items_of(const c10::IValue& value) {
    if (value.isString()) return std::ssize(value.toStringRef());
    if (value.isGenericDict()) return static_cast<int64_t>(value.toGenericDict().size());
    if (!value.isList()) return 0;
    const auto list = value.toListRef();
    if (list.empty() || !(list.front().isList() || list.front().isString())) return std::ssize(list);
    int64_t items = 0;  // a list may be an item of another many times
    for (auto item = list.begin(); item != list.end() && items <= Codes::kMostSteps; ++item)
      items += 1 + items_of(*item);
    return items;
  }

  // Of a file that was written on another device.
  c10::IValue constant(const c10::IValue& value) const {
    if (value.isDevice()) return host_.device();
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().dim() > 0)
      return value.toTensor().to(host_.device());
    return value;
  }

  void get_attribute(const Step& step) {
    const Object object = in(step, 0).toObject();
    if (step.slot >= object->slots().size())  // of another class than the code says
      throw UserError(place_of(*step.node) + ": the object has no such member");
    set(step, object->type()->is_module() ? host_.attribute(object, step.slot) : object->getSlot(step.slot));
  }

  void loop(const Step& step) {
    const int64_t most = in(step, 0).toInt();
    bool goes_on = in(step, 1).toBool();
    Values carried;
    for (std::size_t i = 2; i < step.inputs.size(); ++i) carried.push_back(in(step, i));
    for (int64_t i = 0; i < most && goes_on; ++i) {
      codes_.count(*step.node, 1);
      carried.insert(carried.begin(), i);
      carried = run(step.blocks[0], std::move(carried));
      goes_on = carried.front().toBool();
      carried.erase(carried.begin());
    }
    set_all(step, std::move(carried));
  }

  void call_method(const Step& step) {
    const Object object = in(step, 0).toObject();
    if (object->type()->is_module() && step.name == "forward") {
      Values arguments = values_at(step.inputs);
      arguments.erase(arguments.begin());
      if (auto result = host_.call(object, arguments)) return set(step, std::move(*result));
    }
    set(step, codes_.run(object->type()->getMethod(step.name), values_at(step.inputs), host_));
  }

  void call_function(const Step& step) {
    Values arguments = values_at(step.inputs);
    arguments.erase(arguments.begin());
    set(step, codes_.run(*step.function, std::move(arguments), host_));
  }

  void make(const Step& step) {
    const jit::Node& node = *step.node;
    if (step.kind == prim::TupleConstruct) return make_tuple(step);
    if (step.kind == prim::ListConstruct) return make_list(step);
    if (step.kind == prim::DictConstruct) return make_dict(step);
    if (step.kind == prim::TupleUnpack || step.kind == prim::ListUnpack) return unpack(step);
    if (step.kind == prim::Uninitialized) return set(step, c10::IValue::uninitialized());
    if (step.kind == prim::CreateObject) {
      const auto type = node.output()->type()->expect<c10::ClassType>();
      return set(step, c10::ivalue::Object::create(c10::StrongTypePtr(type->compilation_unit(), type),
                                                   type->numAttributes()));
    }
    if (step.kind == prim::isinstance) {
      bool is_any = false;
      for (const c10::TypePtr& type : node.tys(c10::attr::types))
        is_any = is_any || in(step, 0).type()->isSubtypeOf(*type);
      return set(step, is_any);
    }
    if (step.kind == prim::TupleSlice) {
      const auto& items = in(step, 0).toTupleRef().elements();
      return set(step, c10::ivalue::Tuple::create(Values(items.begin() + node.i(c10::attr::beg),
                                                         items.begin() + node.i(c10::attr::end))));
    }
    if (step.kind == prim::RaiseException) raise(step);
    if (step.kind == prim::Enter || step.kind == prim::Exit) return call_context(step);
    throw UserError(place_of(node) + " is not known to tutti");
  }

  // `raise` and `assert`, with the name of the Python class, if there is one.
  [[noreturn]] void raise(const Step& step) const {
    std::string kind = step.inputs.size() > 1 && in(step, 1).isString() ? in(step, 1).toStringRef() : "";
    kind.erase(0, kind.rfind('.') + 1);
    throw UserError(place_of(*step.node) + ": " + (kind.empty() ? "" : shown(kind) + ": ") +
                    shown(in(step, 0).toStringRef()));
  }

  // `with`: libtorch's executor calls both methods too.
  void call_context(const Step& step) {
    const Object object = in(step, 0).toObject();
    const bool enters = step.kind == prim::Enter;
    Values arguments{object};
    if (!enters) arguments.resize(4);
    set(step, codes_.run(object->type()->getMethod(enters ? "__enter__" : "__exit__"), std::move(arguments),
                         host_));
  }

  void unpack(const Step& step) {
    const c10::IValue& value = in(step, 0);
    Values items;
    if (value.isTuple())
      items.assign(value.toTupleRef().elements().begin(), value.toTupleRef().elements().end());
    else
      for (const c10::IValue& item : value.toList()) items.push_back(item);
    if (items.size() != step.outputs.size())
      throw UserError(place_of(*step.node) + ": expected " + std::to_string(step.outputs.size()) +
                      " items; found " + std::to_string(items.size()));
    set_all(step, std::move(items));
  }

  void make_tuple(const Step& step) {
    const auto type = step.node->output()->type()->expect<c10::TupleType>();
    set(step, type->name() ? c10::ivalue::Tuple::createNamed(values_at(step.inputs), type)
                           : c10::ivalue::Tuple::create(values_at(step.inputs)));
  }
  void make_list(const Step& step) {
    c10::impl::GenericList list(step.node->output()->type()->expect<c10::ListType>()->getElementType());
    for (const Place place : step.inputs) list.push_back(values_[place]);
    set(step, std::move(list));
  }
  void make_dict(const Step& step) {
    const auto type = step.node->output()->type()->expect<c10::DictType>();
    c10::impl::GenericDict dict(type->getKeyType(), type->getValueType());
    for (std::size_t i = 0; i < step.inputs.size(); i += 2)
      dict.insert_or_assign(in(step, i), in(step, i + 1));
    set(step, std::move(dict));
  }

  Codes& codes_;
  Host& host_;
  Values values_;
};

Codes::Codes() = default;
Codes::~Codes() = default;

const Codes::Code& Codes::of(torch::jit::Function& function) {
  auto& code = codes_[&function];
  if (!code) {
    Preparer preparer;
    auto fresh = std::make_unique<Code>();
    fresh->steps = preparer.block(*jit::toGraphFunction(function).graph()->block());
    fresh->values = preparer.values();
    code = std::move(fresh);
  }
  return *code;
}

void Codes::count(const jit::Node& node, int64_t steps) {
  steps_ += steps;
  if (steps_ > kMostSteps)
    throw UserError(place_of(node) + ": the program does not end within " + grouped(kMostSteps) +
                    " steps, of which each item of its lists and texts is one");
  if (is_trial_ && ++looks_ % kLookSteps == 0 && stop_asked())
    throw OperatingError("stopped while a program was tried", EndKind::kInterrupted);
}

c10::IValue Codes::run(torch::jit::Function& function, Values arguments, Host& host) {
  require_known(function);
  if (depth_ == 0) steps_ = 0;
  const DepthScope deeper(depth_);
  if (depth_ > kMostCalls)
    throw UserError(function.name() + ": more than " + grouped(kMostCalls) + " calls within each other");
  const Code& code = of(function);
  for (std::size_t i = arguments.size(); i < code.steps.inputs.size(); ++i)
    arguments.push_back(function.getSchema().arguments().at(i).default_value().value_or(c10::IValue()));
  return Runner(*this, host, code.values).run(code.steps, std::move(arguments)).at(0);
}

}  // namespace tutti::script

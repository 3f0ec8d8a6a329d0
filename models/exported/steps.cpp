#include "models/exported/steps.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/exported/python_functions.h"
#include "models/layers/layer_error.h"
#include "models/torch/known_operators.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti::exported {
namespace {

at::Tensor wrapped_number(const at::Scalar& number) {
  at::Tensor tensor = c10::scalar_to_tensor(number);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// Numbers of a program stand for the types that Python would make of them.
c10::IValue as_type(c10::IValue value, const c10::TypePtr& type) {
  if (value.isTensor()) return value;
  if (type->kind() == c10::TypeKind::TensorType && value.isScalar()) return wrapped_number(value.toScalar());
  if (const auto optional = type->cast<c10::OptionalType>())
    return value.isNone() ? value : as_type(std::move(value), optional->getElementType());
  if (type->kind() == c10::TypeKind::FloatType && value.isInt()) return static_cast<double>(value.toInt());
  const auto list = type->cast<c10::ListType>();
  if (!list || !value.isList()) return value;
  const c10::TypePtr& element = list->getElementType();
  const auto& given = value.toListRef();
  if (element->kind() == c10::TypeKind::TensorType) {
    c10::List<at::Tensor> tensors;
    for (const c10::IValue& item : given) tensors.push_back(item.toTensor());
    return tensors;
  }
  if (const auto optional = element->cast<c10::OptionalType>();
      optional && optional->getElementType()->kind() == c10::TypeKind::TensorType) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const c10::IValue& item : given)
      tensors.push_back(item.isNone() ? std::nullopt : std::optional(item.toTensor()));
    return tensors;
  }
  if (element->kind() == c10::TypeKind::FloatType) {
    c10::List<double> numbers;
    for (const c10::IValue& item : given) numbers.push_back(item.toScalar().toDouble());
    return numbers;
  }
  if (element->kind() == c10::TypeKind::BoolType) {
    c10::List<bool> flags;
    for (const c10::IValue& item : given) flags.push_back(item.toBool());
    return flags;
  }
  if (element->kind() == c10::TypeKind::NumberType) return value;
  c10::List<int64_t> numbers;
  for (const c10::IValue& item : given) numbers.push_back(item.toInt());
  return numbers;
}

class OperatorStep final : public Step {
 public:
  OperatorStep(const Node& node, const std::vector<Source>& inputs, std::vector<std::size_t> results)
      : place_(node.target + module_of(node)),
        op_(operator_of(node, place_)),
        checked_(op_.schema()),
        results_(std::move(results)),
        makes_list_(node.makes_list) {
    for (const c10::Argument& argument : op_.schema().arguments()) {
      const auto given =
          std::ranges::find(node.inputs, argument.name(), &std::pair<std::string, Operand>::first);
      const bool is_given = given != node.inputs.end();
      Source source = is_given ? inputs[static_cast<std::size_t>(given - node.inputs.begin())] : Source{};
      if (!is_given) source.constant = argument.default_value().value_or(c10::IValue());
      if (argument.type()->isSubtypeOf(*c10::getTypePtr<std::optional<c10::Device>>()) && !is_none(source))
        source = {.kind = Source::Kind::kDevice};
      arguments_.push_back(prepared(std::move(source), argument.type()));
    }
  }

  void run(Run& run) const override {
    torch::jit::Stack stack;
    stack.reserve(arguments_.size());
    try {
      for (const auto& [source, type] : arguments_)
        stack.push_back(type ? as_type(source.in(run), type) : source.in(run));
      if (const std::string problem = checked_.problem(stack); !problem.empty())
        throw LayerError(place_ + ": " + problem);
      op_.callBoxed(stack);
    } catch (const c10::Error& error) {
      if (is_lack_of_memory(error)) throw;
      throw LayerError(place_ + ": " + own_words(error));
    }
    if (makes_list_) {
      const auto items = stack.front().toListRef();
      if (items.size() < results_.size())
        throw LayerError(place_ + ": it makes " + std::to_string(items.size()) + " tensors, and not " +
                         std::to_string(results_.size()));
      for (std::size_t i = 0; i < results_.size(); ++i) run.values[results_[i]] = items[i];
    } else {
      for (std::size_t i = 0; i < std::min(results_.size(), stack.size()); ++i)
        run.values[results_[i]] = std::move(stack[i]);
    }
  }

 private:
  static bool is_none(const Source& source) {
    return source.kind == Source::Kind::kConstant && source.constant.isNone();
  }

  static c10::OperatorHandle operator_of(const Node& node, const std::string& place) {
    const std::size_t first = node.target.find('.'), last = node.target.rfind('.');
    if (first != std::string::npos && first < last) {
      std::string overload = node.target.substr(last + 1);
      if (overload == "default") overload = "";
      const std::string name =
          node.target.substr(0, first) + "::" + node.target.substr(first + 1, last - first - 1);
      if (const auto op = c10::Dispatcher::singleton().findSchema({name, overload})) {
        require_known(op->schema(), place);
        return *op;
      }
    }
    throw UserError("it calls '" + node.target + "'" + module_of(node) +
                    (node.target.starts_with("higher_order") ? ", which tutti does not know"
                                                             : ", which libtorch does not have"));
  }

  struct Argument {
    Source source;
    c10::TypePtr type;  // null: the source has it already
  };

  static bool is_constant(const Source& source) {
    return source.kind == Source::Kind::kConstant ||
           (source.kind == Source::Kind::kList && std::ranges::all_of(source.items, is_constant));
  }
  static c10::IValue constant_of(const Source& source) {
    if (source.kind == Source::Kind::kConstant) return source.constant;
    c10::impl::GenericList list(c10::AnyType::get());
    for (const Source& item : source.items) list.push_back(constant_of(item));
    return list;
  }
  static Argument prepared(Source source, const c10::TypePtr& type) {
    if (is_constant(source)) return {{.constant = as_type(constant_of(source), type)}, nullptr};
    return {std::move(source), type};
  }

  std::string place_;  // for errors
  c10::OperatorHandle op_;
  CheckedArguments checked_;
  std::vector<Argument> arguments_;
  std::vector<std::size_t> results_;
  bool makes_list_;
};

Values values_of(const std::vector<Source>& sources, const Run& run) {
  Values values;
  for (const Source& source : sources) values.push_back(source.in(run));
  return values;
}

class PythonStep final : public Step {
 public:
  PythonStep(PythonFunction function, std::vector<Source> inputs, std::size_t result)
      : function_(std::move(function)), inputs_(std::move(inputs)), result_(result) {}
  void run(Run& run) const override { run.values[result_] = function_(values_of(inputs_, run)); }

 private:
  PythonFunction function_;
  std::vector<Source> inputs_;
  std::size_t result_;
};

class CallStep final : public Step {
 public:
  CallStep(std::size_t slot, std::vector<Source> inputs, std::vector<std::size_t> results,
           std::vector<bool> numbers)
      : slot_(slot), inputs_(std::move(inputs)), results_(std::move(results)), numbers_(std::move(numbers)) {}
  void run(Run& run) const override {
    const TensorTree output = (*run.layer.slots()[slot_])(packed(values_of(inputs_, run)));
    Values results = unpacked(output, numbers_);
    for (std::size_t i = 0; i < results_.size(); ++i) run.values[results_[i]] = std::move(results.at(i));
  }

 private:
  std::size_t slot_;
  std::vector<Source> inputs_;
  std::vector<std::size_t> results_;
  std::vector<bool> numbers_;  // of the results
};

class ModalStep final : public Step {
 public:
  ModalStep(const Mode& mode, Steps steps) : mode_(mode), steps_(std::move(steps)) {}
  void run(Run& run) const override {
    std::optional<AutocastScope> autocast;
    std::optional<at::AutoGradMode> gradients;
    if (mode_.autocast)
      autocast.emplace(mode_.enabled ? std::optional(mode_.dtype) : std::nullopt, run.device);
    else if (!mode_.enabled)  // never on where evaluation has it off
      gradients.emplace(false);
    run_steps(steps_, run);
  }

 private:
  Mode mode_;
  Steps steps_;
};

class CopiesStep final : public Step {
 public:
  CopiesStep(std::vector<Source> from, std::vector<std::size_t> to)
      : from_(std::move(from)), to_(std::move(to)) {}
  void run(Run& run) const override {
    for (std::size_t i = 0; i < to_.size(); ++i) run.values[to_[i]] = from_[i].in(run);
  }

 private:
  std::vector<Source> from_;
  std::vector<std::size_t> to_;
};

bool only_checks(const std::string& target) {
  return target.starts_with("aten._assert") || target.starts_with("aten.sym_constrain");
}

}  // namespace

std::string module_of(const Node& node) {
  return node.frames.empty() || node.frames.back().path.empty() ? ""
                                                                : " in '" + node.frames.back().path + "'";
}

c10::IValue Source::in(const Run& run) const {
  using enum Kind;
  switch (kind) {
    case kConstant:
      return constant;
    case kValue:
      return run.values[place];
    case kParameter:
      return run.layer.own_parameters()[place]->tensor;
    case kBuffer:
      return run.layer.own_buffers()[place]->tensor;
    case kDevice:
      return run.device.where;
    case kList:
      break;
  }
  c10::impl::GenericList list(c10::AnyType::get());
  for (const Source& item : items) list.push_back(item.in(run));
  return list;
}

void run_steps(const Steps& steps, Run& run) {
  for (const auto& step : steps) {
    step->run(run);
    for (const std::size_t place : step->last_uses) run.values[place] = {};
  }
}

std::unique_ptr<Step> make_step(const Node& node, const std::vector<Source>& inputs,
                                std::vector<std::size_t> results) {
  if (only_checks(node.target)) return nullptr;
  if (auto function = python_function(node.target))
    return std::make_unique<PythonStep>(std::move(function), inputs, results.at(0));
  return std::make_unique<OperatorStep>(node, inputs, std::move(results));
}

std::unique_ptr<Step> make_call(std::size_t slot, std::vector<Source> inputs,
                                std::vector<std::size_t> results, std::vector<bool> numbers) {
  return std::make_unique<CallStep>(slot, std::move(inputs), std::move(results), std::move(numbers));
}

std::unique_ptr<Step> make_modal(const Mode& mode, Steps steps) {
  return std::make_unique<ModalStep>(mode, std::move(steps));
}

std::unique_ptr<Step> make_copies(std::vector<Source> from, std::vector<std::size_t> to) {
  if (from.size() < to.size())
    throw UserError("a graph within its graph gets " + std::to_string(from.size()) + " values, and takes " +
                    std::to_string(to.size()));
  return std::make_unique<CopiesStep>(std::move(from), std::move(to));
}

TensorTree packed(const Values& values) {
  const auto tensor = [](const c10::IValue& value) {
    return value.isTensor() ? value.toTensor() : c10::scalar_to_tensor(value.toScalar());
  };
  if (values.size() == 1) return tensor(values.front());
  std::vector<TensorTree> items;
  for (const c10::IValue& value : values) items.emplace_back(tensor(value));
  return TensorTree::list(std::move(items));
}

Values unpacked(const TensorTree& tree, const std::vector<bool>& numbers) {
  Values values;
  if (numbers.empty()) return values;
  const auto add = [&](const at::Tensor& tensor) {
    const bool is_number = numbers.at(values.size());
    values.push_back(is_number ? c10::IValue(tensor.item()) : c10::IValue(tensor));
  };
  if (tree.is_leaf()) {
    add(tree.tensor());
  } else {
    for (const auto& [name, child] : tree.children()) add(child.tensor());
  }
  return values;
}

}  // namespace tutti::exported

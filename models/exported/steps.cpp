#include "models/exported/steps.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/exported/python_functions.h"
#include "models/layers/drops.h"
#include "models/layers/layer_error.h"
#include "models/torch/known_operators.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "tensors/out_of_memory.h"
#include "tensors/torch_error.h"

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
  const c10::TypePtr& item = list->getElementType();
  const auto& given = value.toListRef();
  if (item->kind() == c10::TypeKind::TensorType) {
    c10::List<at::Tensor> tensors;
    for (const c10::IValue& one : given) tensors.push_back(one.toTensor());
    return tensors;
  }
  if (const auto optional = item->cast<c10::OptionalType>();
      optional && optional->getElementType()->kind() == c10::TypeKind::TensorType) {
    c10::List<std::optional<at::Tensor>> tensors;
    for (const c10::IValue& one : given)
      tensors.push_back(one.isNone() ? std::nullopt : std::optional(one.toTensor()));
    return tensors;
  }
  if (item->kind() == c10::TypeKind::FloatType) {
    c10::List<double> numbers;
    for (const c10::IValue& one : given) numbers.push_back(one.toScalar().toDouble());
    return numbers;
  }
  if (item->kind() == c10::TypeKind::BoolType) {
    c10::List<bool> flags;
    for (const c10::IValue& one : given) flags.push_back(one.toBool());
    return flags;
  }
  if (item->kind() == c10::TypeKind::NumberType) return value;
  c10::List<int64_t> numbers;
  for (const c10::IValue& one : given) numbers.push_back(one.toInt());
  return numbers;
}

class OperatorStep final : public Step {
 public:
  // `always`: the operator is in training with the layer, also if it was exported in evaluation mode.
  OperatorStep(const Node& node, const std::vector<Source>& inputs, std::vector<std::size_t> results,
               bool always)
      : place_(node.target + module_of(node)),
        op_(operator_of(node, place_)),
        checked_(op_.schema()),
        results_(std::move(results)),
        makes_list_(node.makes_list) {
    for (const c10::Argument& argument : op_.schema().arguments()) {
      const auto given =
          std::ranges::find_if(node.inputs, [&](const auto& one) { return one.first == argument.name(); });
      const bool is_given = given != node.inputs.end();
      Source source = is_given ? inputs[static_cast<std::size_t>(given - node.inputs.begin())] : Source{};
      if (!is_given) source.constant = argument.default_value().value_or(c10::IValue());
      if (argument.type()->isSubtypeOf(*c10::getTypePtr<std::optional<c10::Device>>()) && !is_none(source))
        source = {.kind = Source::Kind::kDevice};
      if (says_mode(node, argument.name()) && (always || is_true(source)))
        source = {.kind = Source::Kind::kTraining};
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
  static bool is_true(const Source& source) {
    return source.kind == Source::Kind::kConstant && source.constant.isBool() && source.constant.toBool();
  }
  // Not of a batch norm: one without running statistics is in training in evaluation too.
  static bool says_mode(const Node& node, const std::string& argument) {
    return (argument == "train" || argument == "training") && !node.target.starts_with("aten.batch_norm");
  }

  static c10::OperatorHandle operator_of(const Node& node, const std::string& place) {
    const std::size_t first = node.target.find('.'), last = node.target.rfind('.');
    if (first != std::string::npos && first < last) {
      std::string overload = node.target.substr(last + 1);
      if (overload == "default") overload = "";
      const std::string name =
          node.target.substr(0, first) + "::" + node.target.substr(first + 1, last - first - 1);
      if (const auto found = c10::Dispatcher::singleton().findSchema({name, overload})) {
        require_known(found->schema(), place);
        return *found;
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
    for (const Source& one : source.items) list.push_back(constant_of(one));
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

class PythonStep final : public Step {
 public:
  PythonStep(PythonFunction function, std::vector<Source> inputs, std::size_t result)
      : function_(std::move(function)), inputs_(std::move(inputs)), result_(result) {}
  void run(Run& run) const override {
    Values given;
    for (const Source& one : inputs_) given.push_back(one.in(run));
    run.values[result_] = function_(given);
  }

 private:
  PythonFunction function_;
  std::vector<Source> inputs_;
  std::size_t result_;
};

// aten.dropout, and with `whole_channels` aten.feature_dropout.
class DropoutStep final : public Step {
 public:
  DropoutStep(Source input, double p, bool whole_channels, std::size_t result)
      : input_(std::move(input)), p_(p), whole_channels_(whole_channels), result_(result) {}
  void run(Run& run) const override {
    run.values[result_] = dropped(run.layer.context(), input_.in(run).toTensor(), p_, whole_channels_);
  }

 private:
  Source input_;
  double p_;
  bool whole_channels_;
  std::size_t result_;
};

// aten.bernoulli_: of stochastic depth, whose numbers are a sample's. Outside of training the mean.
class BernoulliStep final : public Step {
 public:
  BernoulliStep(Source input, double p, std::size_t result)
      : input_(std::move(input)), p_(p), result_(result) {}
  void run(Run& run) const override {
    const at::Tensor x = input_.in(run).toTensor();
    fill_bernoulli(run.layer.context(), x, p_);
    run.values[result_] = x;
  }

 private:
  Source input_;
  double p_;
  std::size_t result_;
};

// aten.scaled_dot_product_attention with dropout: in training by its formula, with masks by sample.
class AttentionStep final : public Step {
 public:
  AttentionStep(const Node& node, const std::vector<Source>& inputs, std::vector<std::size_t> results)
      : whole_(without_dropout(node), inputs, results, false), result_(results.at(0)) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i) named_[node.inputs[i].first] = inputs[i];
  }
  void run(Run& run) const override {
    const c10::IValue given = in(run, "dropout_p");
    const double p = given.isNone() ? 0.0 : given.toScalar().toDouble();
    if (p == 0.0 || !run.layer.context().training) return whole_.run(run);
    AttentionArguments arguments{.query = in(run, "query").toTensor(),
                                 .key = in(run, "key").toTensor(),
                                 .value = in(run, "value").toTensor(),
                                 .dropout = p};
    if (const auto mask = in(run, "attn_mask"); mask.isTensor()) arguments.mask = mask.toTensor();
    if (const auto scale = in(run, "scale"); !scale.isNone()) arguments.scale = scale.toDouble();
    arguments.causal = is_true(run, "is_causal");
    arguments.grouped_query = is_true(run, "enable_gqa");
    run.values[result_] = attention_that_drops(run.layer.context(), arguments);
  }

 private:
  static Node without_dropout(Node node) {
    for (auto& [name, operand] : node.inputs)
      if (name == "dropout_p") operand = {.constant = 0.0};
    return node;
  }
  c10::IValue in(const Run& run, const std::string& name) const {
    const auto found = named_.find(name);
    return found == named_.end() ? c10::IValue() : found->second.in(run);
  }
  bool is_true(const Run& run, const std::string& name) const {
    const auto found = in(run, name);
    return found.isBool() && found.toBool();
  }

  OperatorStep whole_;
  std::map<std::string, Source> named_;
  std::size_t result_;
};

class CallStep final : public Step {
 public:
  CallStep(std::size_t slot, std::vector<Source> inputs, std::vector<std::size_t> results,
           std::vector<bool> numbers)
      : slot_(slot), inputs_(std::move(inputs)), results_(std::move(results)), numbers_(std::move(numbers)) {}
  void run(Run& run) const override {
    Values given;
    for (const Source& one : inputs_) given.push_back(one.in(run));
    Values found = unpacked((*run.layer.slots()[slot_])(packed(given)), numbers_);
    for (std::size_t i = 0; i < results_.size(); ++i) run.values[results_[i]] = std::move(found.at(i));
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

double number_of(const Node& node, const std::string& name, double otherwise) {
  for (const auto& [argument, operand] : node.inputs)
    if (argument == name) return operand.constant.toScalar().toDouble();
  return otherwise;
}

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
    case kTraining:
      return run.layer.context().training;
    case kList:
      break;
  }
  c10::impl::GenericList list(c10::AnyType::get());
  for (const Source& one : items) list.push_back(one.in(run));
  return list;
}

void run_steps(const Steps& steps, Run& run) {
  for (const auto& step : steps) {
    step->run(run);
    for (const std::size_t place : step->last_uses) run.values[place] = {};
  }
}

std::unique_ptr<Step> make_step(const Node& node, const std::vector<Source>& inputs,
                                std::vector<std::size_t> results, bool always) {
  const std::string& target = node.target;
  if (only_checks(target)) return nullptr;
  const bool drops = target == "aten.dropout.default" || target == "aten.dropout_.default";
  const bool drops_channels =
      target == "aten.feature_dropout.default" || target == "aten.feature_dropout_.default";
  if (drops || drops_channels) {
    const double p = always || number_of(node, "train", 1) != 0 ? number_of(node, "p", 0.5) : 0.0;
    return std::make_unique<DropoutStep>(inputs.at(0), p, drops_channels, results.at(0));
  }
  if (target == "aten.bernoulli_.float")
    return std::make_unique<BernoulliStep>(inputs.at(0), number_of(node, "p", 0.5), results.at(0));
  if (target == "aten.scaled_dot_product_attention.default")
    return std::make_unique<AttentionStep>(node, inputs, std::move(results));
  if (auto function = python_function(target))
    return std::make_unique<PythonStep>(std::move(function), inputs, results.at(0));
  return std::make_unique<OperatorStep>(node, inputs, std::move(results), always);
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
  for (const c10::IValue& one : values) items.emplace_back(tensor(one));
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

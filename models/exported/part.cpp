#include "models/exported/part.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "models/exported/leaves.h"
#include "models/exported/modules.h"
#include "models/layers/norm.h"
#include "models/torch/own_operators.h"
#include "models/torch/written_tensors.h"
#include "runtime/error.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"

namespace tutti::exported {
namespace {

bool is_true(const Node& node, const std::string& name) {
  const Operand* const flag = node.input(name);
  return flag && flag->constant.isBool() && flag->constant.toBool();
}

const Operand& required_input(const Node& node, const std::string& name) {
  const Operand* const operand = node.input(name);
  if (!operand) throw UserError("'" + node.target + "' has no argument '" + name + "'");
  return *operand;
}

double number(const Node& node, const std::string& name) {
  const Operand* const operand = node.input(name);
  if (!operand || operand->constant.isNone())
    throw UserError("batch norm without '" + name + "' is not known");
  return operand->constant.toScalar().toDouble();
}

std::string value_of(const Node& node, const std::string& name) {
  const Operand* const operand = node.input(name);
  return operand ? operand->value : "";
}

bool is_batch_norm(const Node& node) { return node.target == "aten.batch_norm.default"; }

bool adds(const Node& node) { return node.target.starts_with("aten.add"); }

bool is_wrap(const Node& node) { return node.target.starts_with("higher_order.wrap_with_"); }

std::string below(const std::string& name, const std::string& path) {
  return path.empty() ? name : name.substr(std::min(name.size(), path.size() + 1));
}

class Builder {
 public:
  Builder(const Program& program, std::shared_ptr<const Archive> archive)
      : program_(program), archive_(std::move(archive)) {
    find_numbers(program.graph);
    find_counters();
    always_ = std::ranges::none_of(program.graph.nodes, [](const Node& node) {
      return is_true(node, "training") || is_true(node, "train");
    });
  }

  Part whole() {
    const auto modules = find_modules(program_);
    return part(*modules, program_.user_inputs, program_.graph.outputs);
  }

 private:
  // The places of values in a part. Values of a graph within the program's have names of their own.
  struct Names {
    Part& part;
    std::map<std::string, Source> known = {};
    std::string prefix = {};

    std::size_t place(const std::string& name) {
      const std::size_t place = part.values++;
      known[prefix + name] = {.kind = Source::Kind::kValue, .place = place};
      return place;
    }
    Source source(const Operand& operand) const {
      if (operand.kind == Operand::Kind::kDevice) return {.kind = Source::Kind::kDevice};
      if (operand.kind == Operand::Kind::kValue) return named(operand.value);
      if (operand.kind != Operand::Kind::kList) return {.constant = operand.constant};
      Source list{.kind = Source::Kind::kList};
      for (const Operand& item : operand.items) list.items.push_back(source(item));
      return list;
    }
    std::vector<Source> sources(const std::vector<std::string>& names) const {
      std::vector<Source> sources;
      for (const std::string& name : names) sources.push_back(named(name));
      return sources;
    }
    const Source& named(const std::string& name) const {
      const auto source = known.find(prefix + name);
      if (source == known.end()) throw UserError("nothing in it computes the value '" + name + "'");
      return source->second;
    }
    std::vector<std::size_t> places(const std::vector<std::string>& names) {
      std::vector<std::size_t> places;
      for (const std::string& name : names) places.push_back(place(name));
      return places;
    }
  };

  void find_numbers(const Graph& graph) {
    for (const Node& node : graph.nodes) {
      if (node.makes_number) numbers_.insert(node.outputs.begin(), node.outputs.end());
      for (const auto& [name, operand] : node.inputs)
        if (operand.graph) find_numbers(*operand.graph);
    }
  }

  // A second call of a batch norm counts on from what the first made.
  void find_counters() {
    for (const auto& [value, stored] : program_.stored)
      if (is_tracked(stored)) counters_.insert(value);
    for (const Node& node : program_.graph.nodes)
      if (adds(node) && counters_.contains(value_of(node, "self")))
        counters_.insert(node.outputs.begin(), node.outputs.end());
  }

  Part part(const Module& module, const std::vector<std::string>& inputs,
            const std::vector<Operand>& outputs) {
    Part part;
    part.kind = module.type;
    part.always = always_;
    Names names{part};
    own(module, names);
    for (const std::string& name : inputs) {
      part.inputs.push_back(names.place(name));
      part.numbers.push_back(numbers_.contains(name));
    }
    const auto uses = uses_of(module, outputs);
    for (std::size_t i = 0; i < module.items.size(); ++i) {
      const auto& item = module.items[i];
      auto step =
          item.node ? step_of(*item.node, module, names) : call_of(*item.module, module, uses, i, names);
      if (step) part.steps.push_back(std::move(step));
      free_after(uses, i, names);
    }
    for (const Operand& output : outputs) part.outputs.push_back(names.source(output));
    return part;
  }

  // Tensors of batch norms that are layers of their own are not the part's.
  void own(const Module& module, Names& names) {
    std::set<std::string> norms_own;
    for (const auto& item : module.items)
      if (item.node && is_layer(*item.node))
        for (const std::string& value : stored_of_norm(*item.node)) norms_own.insert(value);
    for (const std::string& value : module.stored) {
      const StoredTensor& stored = program_.stored.at(value);
      if (norms_own.contains(value) || is_tracked(stored)) continue;
      const bool is_parameter = stored.kind == StoredTensor::Kind::kParameter;
      auto& all = is_parameter ? names.part.parameters : names.part.buffers;
      names.known[value] = {.kind = is_parameter ? Source::Kind::kParameter : Source::Kind::kBuffer,
                            .place = all.size()};
      all.push_back({stored, below(stored.name, module.path)});
    }
  }

  // The last item of a module that uses each value; outputs are used after all.
  using Uses = std::map<std::string, std::size_t>;
  Uses uses_of(const Module& module, const std::vector<Operand>& outputs) const {
    Uses uses;
    for (std::size_t i = 0; i < module.items.size(); ++i) {
      const auto& item = module.items[i];
      std::vector<std::string> used;
      if (item.node)
        add_used(*item.node, used);
      else
        used = item.module->needed(numbers_);
      for (const std::string& name : used) uses[name] = i;
    }
    for (const Operand& output : outputs)
      if (output.kind == Operand::Kind::kValue) uses[output.value] = module.items.size();
    return uses;
  }

  void free_after(const Uses& uses, std::size_t item, const Names& names) const {
    if (names.part.steps.empty()) return;
    for (const auto& [name, last] : uses) {
      const auto source = names.known.find(name);
      if (last == item && source != names.known.end() && source->second.kind == Source::Kind::kValue)
        names.part.steps.back()->last_uses.push_back(source->second.place);
    }
  }

  std::unique_ptr<Step> call_of(const Module& module, const Module& caller, const Uses& uses,
                                std::size_t item, Names& names) {
    const auto inputs = module.needed(numbers_);
    std::vector<std::string> results;
    std::vector<Operand> outputs;
    std::vector<bool> numbers;
    for (const std::string& name : module.defined) {
      const auto last = uses.find(name);
      if (last == uses.end() || last->second <= item) continue;
      results.push_back(name);
      outputs.push_back({.kind = Operand::Kind::kValue, .value = name});
      numbers.push_back(numbers_.contains(name));
    }
    auto sources = names.sources(inputs);
    const std::size_t slot = names.part.slots.size();
    names.part.slots.emplace_back(below(module.path, caller.path), layer_of(module, inputs, outputs));
    return make_call(slot, std::move(sources), names.places(results), std::move(numbers));
  }

  std::shared_ptr<Layer> layer_of(const Module& module, const std::vector<std::string>& inputs,
                                  const std::vector<Operand>& outputs) {
    if (auto leaf = make_leaf(module, inputs, program_, archive_, always_)) return leaf;
    const Node* norm = nullptr;
    for (const auto& item : module.items) {
      if (item.node && counts_batches(*item.node)) continue;
      if (norm || !item.node || !is_layer(*item.node)) return make_layer(module, inputs, outputs);
      norm = item.node;
    }
    return norm && norm_path(*norm) == module.path && inputs.size() == 1
               ? batch_norm(*norm)
               : make_layer(module, inputs, outputs);
  }

  std::shared_ptr<Layer> make_layer(const Module& module, const std::vector<std::string>& inputs,
                                    const std::vector<Operand>& outputs) {
    return std::make_shared<ExportedLayer>(part(module, inputs, outputs), archive_);
  }

  std::unique_ptr<Step> step_of(const Node& node, const Module& module, Names& names) {
    if (counts_batches(node)) return nullptr;  // tutti's batch norm counts after the commit
    if (is_layer(node)) return norm_call(node, module, names);
    refuse_writes(node);
    if (is_wrap(node)) return wrapped(node, names);
    return operator_of(node, names);
  }

  static std::unique_ptr<Step> operator_of(const Node& node, Names& names) {
    std::vector<Source> inputs;
    for (const auto& [name, operand] : node.inputs) inputs.push_back(names.source(operand));
    return make_step(node, inputs, names.places(node.outputs));
  }

  // -- Batch norm: its statistics follow the verdict.

  bool is_layer(const Node& node) const {
    return is_batch_norm(node) && program_.stored.contains(value_of(node, Norms::kMean)) &&
           (always_ || is_true(node, "training"));
  }

  static std::vector<std::string> stored_of_norm(const Node& node) {
    std::vector<std::string> values;
    for (const char* name : {"weight", "bias", Norms::kMean, Norms::kVariance})
      if (const std::string value = value_of(node, name); !value.empty()) values.push_back(value);
    return values;
  }

  static bool is_tracked(const StoredTensor& stored) { return stored.name.ends_with(Norms::kTracked); }

  bool counts_batches(const Node& node) const {
    return adds(node) && counters_.contains(value_of(node, "self"));
  }

  std::string norm_path(const Node& node) const {
    const std::string& name = program_.stored.at(value_of(node, Norms::kMean)).name;
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? "" : name.substr(0, dot);
  }

  // Of a stored tensor that a batch norm uses. Its layer has the tensors of the module that calls it.
  const StoredTensor& own_of_norm(const Node& node, const std::string& name) const {
    const std::string value = value_of(node, name), path = norm_path(node);
    const auto stored = program_.stored.find(value);
    const std::string expected = path.empty() ? name : path + "." + name;
    if (stored != program_.stored.end() && stored->second.name == expected) return stored->second;
    throw UserError("a batch norm" + module_of(node) + " has as " + name + " '" +
                    (stored == program_.stored.end() ? value : stored->second.name) +
                    "', where tutti needs a tensor of its own module's, of this name");
  }

  std::shared_ptr<Layer> batch_norm(const Node& node) const {
    const StoredTensor& mean = own_of_norm(node, Norms::kMean);
    const BatchNormOptions options{.channels = mean.shape.at(0),
                                   .eps = number(node, "eps"),
                                   .momentum = number(node, "momentum"),
                                   .affine = !value_of(node, "weight").empty()};
    const std::string type = node.frames.empty() ? "" : node.frames.back().type, path = norm_path(node);
    std::shared_ptr<Layer> layer;
    if (type == "BatchNorm1d")
      layer = std::make_shared<BatchNorm1d>(options);
    else if (type == "BatchNorm3d")
      layer = std::make_shared<BatchNorm3d>(options);
    else
      layer = std::make_shared<BatchNorm2d>(options);
    const auto init = [&](const std::string& name) {
      return init_from(archive_, path.empty() ? name : path + "." + name);
    };
    for (const auto& parameter : layer->own_parameters()) {
      parameter->init = init(parameter->name);
      parameter->trained = own_of_norm(node, parameter->name).trained;
    }
    for (const auto& buffer : layer->own_buffers()) buffer->init = init(buffer->name);
    return layer;
  }

  // Of a module that is no layer of its own.
  std::unique_ptr<Step> norm_call(const Node& node, const Module& module, Names& names) {
    const std::string path = norm_path(node);
    auto& slots = names.part.slots;
    const std::string name = below(path, module.path);
    const auto known = std::ranges::find_if(slots, [&](const auto& one) { return one.first == name; });
    const auto slot = static_cast<std::size_t>(known - slots.begin());
    if (known == slots.end()) slots.emplace_back(name, batch_norm(node));
    std::vector<Source> input{names.source(required_input(node, "input"))};
    return make_call(slot, std::move(input), names.places(node.outputs), {false});
  }

  // -- Graphs within the program's.

  std::unique_ptr<Step> wrapped(const Node& node, Names& names) {
    std::size_t at = 0;
    while (at < node.inputs.size() && !node.inputs[at].second.graph) ++at;
    const bool autocast = node.target == "higher_order.wrap_with_autocast";
    if (at == node.inputs.size() || (!autocast && node.target != "higher_order.wrap_with_set_grad_enabled"))
      throw UserError("it calls '" + node.target + "', which tutti does not know");
    Mode mode{.autocast = autocast};
    if (autocast) {
      mode.enabled = node.inputs.at(2).second.constant.toBool();
      const c10::IValue& dtype = node.inputs.at(1).second.constant;
      if (dtype.isInt()) mode.dtype = static_cast<at::ScalarType>(dtype.toInt());
    } else {
      mode.enabled = node.inputs.at(0).second.constant.toBool();
    }
    const Graph& graph = *node.inputs[at].second.graph;
    Names inner{names.part, names.known, names.prefix + "/" + std::to_string(++wraps_) + "/"};
    std::vector<Source> given;
    for (std::size_t i = at + 1; i < node.inputs.size(); ++i)
      given.push_back(names.source(node.inputs[i].second));
    Steps steps;
    steps.push_back(make_copies(std::move(given), inner.places(graph.inputs)));
    for (const Node& call : graph.nodes) {
      if (is_batch_norm(call) && is_true(call, "training"))
        throw UserError("it has a batch norm within '" + node.target + "', which is not known");
      auto step = is_wrap(call) ? wrapped(call, inner) : operator_of(call, inner);
      if (step) steps.push_back(std::move(step));
    }
    std::vector<Source> made;
    for (const Operand& output : graph.outputs) made.push_back(inner.source(output));
    steps.push_back(make_copies(std::move(made), names.places(node.outputs)));
    return make_modal(mode, std::move(steps));
  }

  // A pass may be made again, so it must not change what the model keeps.
  void refuse_writes(const Node& node) const {
    if (!is_in_place(node.target)) return;
    const auto stored = program_.stored.find(value_of(node, "self"));
    if (stored != program_.stored.end()) refuse_written_buffer(stored->second.name);
  }

  const Program& program_;
  std::shared_ptr<const Archive> archive_;
  std::set<std::string> numbers_;
  std::set<std::string> counters_;  // numbers of batches of batch norms
  bool always_ = false;
  int wraps_ = 0;
};

Device device_of(const Values& inputs, const Layer& layer) {
  for (const c10::IValue& input : inputs)
    if (input.isTensor()) return {input.toTensor().device()};
  for (const auto& parameter : layer.own_parameters()) return {parameter->tensor.device()};
  for (const auto& buffer : layer.own_buffers()) return {buffer->tensor.device()};
  return {};
}

}  // namespace

std::vector<TiedNames> join_tied(Program& program, const Archive& archive) {
  std::map<std::string, std::string> firsts, joined;  // by place; by value
  std::vector<TiedNames> tied;
  for (const std::string& value : program.stored_order) {
    const StoredTensor& stored = program.stored.at(value);
    const std::string place = archive.place(stored.name);
    if (stored.kind != StoredTensor::Kind::kParameter || place.empty()) continue;
    const auto [first, is_new] = firsts.emplace(place, value);
    if (is_new) continue;
    joined[value] = first->second;
    tied.push_back({stored.name, program.stored.at(first->second).name});
  }
  const std::function<void(Operand&)> rename = [&](Operand& operand) {
    if (const auto first = joined.find(operand.value); first != joined.end()) operand.value = first->second;
    for (Operand& item : operand.items) rename(item);
  };
  for (Node& node : program.graph.nodes)
    for (auto& [name, operand] : node.inputs) rename(operand);
  for (Operand& output : program.graph.outputs) rename(output);
  for (const auto& [value, first] : joined) program.stored.erase(value);
  return tied;
}

Values run_part(const Part& part, Layer& layer, Values inputs) {
  Run run{layer, Values(part.values), device_of(inputs, layer)};
  for (std::size_t i = 0; i < inputs.size(); ++i) run.values[part.inputs[i]] = std::move(inputs[i]);
  const WrittenTensors written(layer);
  const Norms none;  // those of programs are layers
  const OwnOperators operators(layer, none, part.always, /*direct=*/true);
  run_steps(part.steps, run);
  written.require_none();
  Values outputs;
  for (const Source& output : part.outputs) outputs.push_back(output.in(run));
  return outputs;
}

Part make_part(const Program& program, const std::shared_ptr<const Archive>& archive) try {
  OwnOperators::prepare();
  return Builder(program, archive).whole();
} catch (const RunError&) {
  throw;
} catch (const std::exception& error) {
  if (is_lack_of_memory(error)) throw;
  throw UserError("its program has a form that tutti does not know: " + one_line(error));
}

}  // namespace tutti::exported

#include "models/exported/part.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "models/exported/leaves.h"
#include "models/exported/modules.h"
#include "models/layers/norm.h"
#include "runtime/error.h"
#include "tensors/out_of_memory.h"
#include "tensors/torch_error.h"

namespace tutti::exported {
namespace {

constexpr const char* kTracked = "num_batches_tracked";

const Operand* find_input(const Node& node, const std::string& name) {
  for (const auto& [input, operand] : node.inputs)
    if (input == name) return &operand;
  return nullptr;
}

bool is_true(const Node& node, const std::string& name) {
  const Operand* const found = find_input(node, name);
  return found && found->constant.isBool() && found->constant.toBool();
}

const Operand& required_input(const Node& node, const std::string& name) {
  const Operand* const found = find_input(node, name);
  if (!found) throw UserError("'" + node.target + "' has no argument '" + name + "'");
  return *found;
}

double number(const Node& node, const std::string& name) {
  const Operand* const found = find_input(node, name);
  if (!found || found->constant.isNone()) throw UserError("batch norm without '" + name + "' is not known");
  return found->constant.toScalar().toDouble();
}

std::string value_of(const Node& node, const std::string& name) {
  const Operand* const found = find_input(node, name);
  return found ? found->value : "";
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
    always_ = std::ranges::none_of(program.graph.nodes, [](const Node& one) {
      return is_true(one, "training") || is_true(one, "train");
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
      for (const Operand& one : operand.items) list.items.push_back(source(one));
      return list;
    }
    std::vector<Source> sources(const std::vector<std::string>& names) const {
      std::vector<Source> found;
      for (const std::string& name : names) found.push_back(named(name));
      return found;
    }
    const Source& named(const std::string& name) const {
      const auto found = known.find(prefix + name);
      if (found == known.end()) throw UserError("nothing in it computes the value '" + name + "'");
      return found->second;
    }
    std::vector<std::size_t> places(const std::vector<std::string>& names) {
      std::vector<std::size_t> found;
      for (const std::string& name : names) found.push_back(place(name));
      return found;
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
    for (const Operand& one : outputs) part.outputs.push_back(names.source(one));
    return part;
  }

  // Tensors of batch norms that are layers of their own are not the part's.
  void own(const Module& module, Names& names) {
    std::set<std::string> of_norms;
    for (const auto& item : module.items)
      if (item.node && is_layer(*item.node))
        for (const std::string& one : stored_of_norm(*item.node)) of_norms.insert(one);
    for (const std::string& value : module.stored) {
      const StoredTensor& stored = program_.stored.at(value);
      if (of_norms.contains(value) || is_tracked(stored)) continue;
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
    for (const Operand& one : outputs)
      if (one.kind == Operand::Kind::kValue) uses[one.value] = module.items.size();
    return uses;
  }

  void free_after(const Uses& uses, std::size_t item, const Names& names) const {
    if (names.part.steps.empty()) return;
    for (const auto& [name, last] : uses) {
      const auto found = names.known.find(name);
      if (last == item && found != names.known.end() && found->second.kind == Source::Kind::kValue)
        names.part.steps.back()->last_uses.push_back(found->second.place);
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
    std::vector<Source> inputs;
    for (const auto& [name, operand] : node.inputs) inputs.push_back(names.source(operand));
    return make_step(node, inputs, names.places(node.outputs), always_);
  }

  // -- Batch norm: its statistics follow the verdict.

  bool is_layer(const Node& node) const {
    return is_batch_norm(node) && program_.stored.contains(value_of(node, "running_mean")) &&
           (always_ || is_true(node, "training"));
  }

  static std::vector<std::string> stored_of_norm(const Node& node) {
    std::vector<std::string> found;
    for (const char* name : {"weight", "bias", "running_mean", "running_var"})
      if (const std::string value = value_of(node, name); !value.empty()) found.push_back(value);
    return found;
  }

  static bool is_tracked(const StoredTensor& stored) { return stored.name.ends_with(kTracked); }

  bool counts_batches(const Node& node) const {
    return adds(node) && counters_.contains(value_of(node, "self"));
  }

  std::string norm_path(const Node& node) const {
    const std::string& name = program_.stored.at(value_of(node, "running_mean")).name;
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
    const StoredTensor& mean = own_of_norm(node, "running_mean");
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
      return [archive = archive_, full = path.empty() ? name : path + "." + name](
                 at::Tensor& to, at::Generator) { archive->read(full, to); };
    };
    for (const auto& one : layer->own_parameters()) {
      one->init = init(one->name);
      one->trained = own_of_norm(node, one->name).trained;
    }
    for (const auto& one : layer->own_buffers()) one->init = init(one->name);
    return layer;
  }

  // Of a module that is no layer of its own.
  std::unique_ptr<Step> norm_call(const Node& node, const Module& module, Names& names) {
    const std::string path = norm_path(node);
    auto& slots = names.part.slots;
    auto found =
        std::ranges::find_if(slots, [&](const auto& one) { return one.first == below(path, module.path); });
    if (found == slots.end()) {
      slots.emplace_back(below(path, module.path), batch_norm(node));
      found = slots.end() - 1;
    }
    const auto slot = static_cast<std::size_t>(found - slots.begin());
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
    for (const Node& one : graph.nodes) {
      if (is_batch_norm(one) && is_true(one, "training"))
        throw UserError("it has a batch norm within '" + node.target + "', which is not known");
      std::vector<Source> inputs;
      for (const auto& [name, operand] : one.inputs) inputs.push_back(inner.source(operand));
      auto step =
          is_wrap(one) ? wrapped(one, inner) : make_step(one, inputs, inner.places(one.outputs), always_);
      if (step) steps.push_back(std::move(step));
    }
    std::vector<Source> made;
    for (const Operand& one : graph.outputs) made.push_back(inner.source(one));
    steps.push_back(make_copies(std::move(made), names.places(node.outputs)));
    return make_modal(mode, std::move(steps));
  }

  // A pass may be made again, so it must not change what the model keeps.
  void refuse_writes(const Node& node) const {
    const std::size_t dot = node.target.find('.', node.target.find('.') + 1);
    if (dot == std::string::npos || node.target[dot - 1] != '_' || node.target.starts_with("_operator"))
      return;
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
    if (const auto found = joined.find(operand.value); found != joined.end()) operand.value = found->second;
    for (Operand& one : operand.items) rename(one);
  };
  for (Node& node : program.graph.nodes)
    for (auto& [name, operand] : node.inputs) rename(operand);
  for (Operand& one : program.graph.outputs) rename(one);
  for (const auto& [value, first] : joined) program.stored.erase(value);
  return tied;
}

Part make_part(const Program& program, const std::shared_ptr<const Archive>& archive) try {
  return Builder(program, archive).whole();
} catch (const RunError&) {
  throw;
} catch (const std::exception& error) {
  if (is_lack_of_memory(error)) throw;
  throw UserError("its program has a form that tutti does not know: " + one_line(error));
}

}  // namespace tutti::exported

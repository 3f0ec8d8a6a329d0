#include "io/exported/program.h"

#include <ATen/core/List.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "io/formats/dtypes.h"
#include "io/json/json_text.h"
#include "recipe/dotted_path.h"
#include "runtime/error.h"

namespace tutti::exported {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPrefix = "torch.ops.";
constexpr std::size_t kMostFrames = 200;  // modules within each other; readers of programs are recursive

int64_t memory_format_of(int64_t number) {
  using enum at::MemoryFormat;
  const at::MemoryFormat formats[] = {Contiguous, ChannelsLast, ChannelsLast3d, Preserve};
  if (number < 1 || number > 4) throw UserError("it has an unknown memory format: " + std::to_string(number));
  return static_cast<int64_t>(formats[number - 1]);
}

// JSON has no infinities, nor NaN: they are texts.
double number(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const auto text = json.get<std::string>();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || end != text.c_str() + text.size()) throw UserError("it has a text that is no number");
  return value;
}

Operand constant(c10::IValue value) { return {.constant = std::move(value)}; }
Operand value(std::string name) { return {.kind = Operand::Kind::kValue, .value = std::move(name)}; }

Graph graph_of(const Json& json);

// A union of the schema: {"as_int": 1}.
std::pair<std::string, const Json*> chosen(const Json& json) {
  for (const auto& [key, item] : json.items()) return {key, &item};
  return {"as_none", &json};
}

// {"as_int": 8} or {"as_name": "s77"}.
Operand symbol(const Json& json) {
  const auto [kind, item] = chosen(json);
  if (kind == "as_name") return value(item->get<std::string>());
  if (kind == "as_expr") return value(item->at("expr_str").get<std::string>());
  if (kind == "as_int") return constant(whole_number(*item));
  if (kind == "as_float") return constant(number(*item));
  if (kind == "as_bool") return constant(item->get<bool>());
  throw UserError("it has an unknown kind of number: " + kind);
}

template <class Item>
Operand list(const Json& items, Item item) {
  Operand list{.kind = Operand::Kind::kList};
  for (const Json& element : items) list.items.push_back(item(element));
  return list;
}

Operand tensor(const Json& json) { return value(json.at("name").get<std::string>()); }

Operand optional_tensor(const Json& json) {
  const auto [kind, item] = chosen(json);
  return kind == "as_tensor" ? tensor(*item) : constant({});
}

Operand operand(const Json& json) {
  const auto [kind, item] = chosen(json);
  if (kind == "as_none") return constant({});
  if (kind == "as_tensor") return tensor(*item);
  if (kind == "as_tensors") return list(*item, tensor);
  if (kind == "as_optional_tensors") return list(*item, optional_tensor);
  if (kind == "as_optional_tensor") return optional_tensor(*item);
  if (kind == "as_int") return constant(whole_number(*item));
  if (kind == "as_float") return constant(number(*item));
  if (kind == "as_bool") return constant(item->get<bool>());
  if (kind == "as_string") return constant(item->get<std::string>());
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") return symbol(*item);
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") return list(*item, symbol);
  if (kind == "as_ints") return list(*item, [](const Json& one) { return constant(whole_number(one)); });
  if (kind == "as_floats") return list(*item, [](const Json& one) { return constant(number(one)); });
  if (kind == "as_bools") return list(*item, [](const Json& one) { return constant(one.get<bool>()); });
  if (kind == "as_strings")
    return list(*item, [](const Json& one) { return constant(one.get<std::string>()); });
  if (kind == "as_scalar_type") return constant(static_cast<int64_t>(dtype_of(whole_number(*item))));
  if (kind == "as_memory_format") return constant(memory_format_of(whole_number(*item)));
  if (kind == "as_layout") return constant(static_cast<int64_t>(at::kStrided));
  if (kind == "as_device") return {.kind = Operand::Kind::kDevice};
  if (kind == "as_graph")
    return {.kind = Operand::Kind::kGraph, .graph = std::make_shared<Graph>(graph_of(item->at("graph")))};
  throw UserError("it has an unknown kind of argument: " + kind);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// "L__self__,,Net;L__self__conv,conv,torch.nn.modules.conv.Conv2d"; a second call of a module has "conv@1".
std::vector<Frame> frames_of(const Json& metadata) {
  const auto stack = metadata.find("nn_module_stack");
  if (stack == metadata.end() || stack->get<std::string>().empty()) return {};
  std::vector<Frame> frames;
  for (const std::string& part : split(stack->get<std::string>(), ';')) {
    if (frames.size() == kMostFrames) throw UserError("it has modules that are nested too deeply");
    const auto parts = split(part, ',');
    if (parts.size() < 3) return {};
    frames.push_back({parts[0], parts[1].substr(0, parts[1].find('@')), last_part(parts[2])});
  }
  return frames;
}

void add_outputs(const Json& json, Node& node) {
  const auto [kind, item] = chosen(json);
  if (kind == "as_tensors" || kind == "as_optional_tensors") {
    node.makes_list = true;
    for (const Json& output : *item) {
      const Json& named = output.contains("name") ? output : *chosen(output).second;
      node.outputs.push_back(named.contains("name") ? named.at("name").get<std::string>() : "");
    }
  } else if (kind == "as_none") {
    node.outputs.emplace_back();
  } else if (item->contains("name")) {
    node.outputs.push_back(item->at("name").get<std::string>());
  } else {
    node.outputs.push_back(symbol(*item).value);
    node.makes_number = true;
  }
}

Node node_of(const Json& json) {
  Node node;
  node.target = json.at("target").get<std::string>();
  if (node.target.starts_with(kPrefix)) node.target.erase(0, kPrefix.size());
  for (const Json& input : json.at("inputs"))
    node.inputs.emplace_back(input.at("name").get<std::string>(), operand(input.at("arg")));
  for (const Json& output : json.at("outputs")) add_outputs(output, node);
  node.frames = frames_of(json.at("metadata"));
  return node;
}

Graph graph_of(const Json& json) {
  Graph graph;
  for (const Json& input : json.at("inputs")) graph.inputs.push_back(operand(input).value);
  for (const Json& node : json.at("nodes")) graph.nodes.push_back(node_of(node));
  for (const Json& output : json.at("outputs")) graph.outputs.push_back(operand(output));
  return graph;
}

// -1 is free.
int64_t size_of(const Operand& size) {
  if (size.kind != Operand::Kind::kConstant) return -1;
  if (!size.constant.isInt() || size.constant.toInt() < 0)
    throw UserError("it has a tensor with a size that is no whole number");
  return size.constant.toInt();
}

StoredTensor stored(StoredTensor::Kind kind, std::string name, const Json& meta, bool persistent = true) {
  StoredTensor tensor{.kind = kind, .name = std::move(name), .persistent = persistent};
  for (const Json& size : meta.at("sizes")) {
    tensor.shape.push_back(size_of(symbol(size)));
    if (tensor.shape.back() < 0) throw UserError(tensor.name + " has a size that is not fixed");
  }
  tensor.dtype = dtype_of(whole_number(meta.at("dtype")));
  if (!contiguous_bytes(tensor.shape, tensor.dtype)) throw UserError(tensor.name + " is too large");
  tensor.trained = meta.at("requires_grad").get<bool>();
  return tensor;
}

void add_input(const Json& spec, const Json& metas, Program& program) {
  const auto [kind, item] = chosen(spec);
  using enum StoredTensor::Kind;
  const auto add = [&](StoredTensor::Kind of, const char* key, bool persistent = true) {
    const std::string name = item->at("arg").at("name").get<std::string>();
    program.stored_order.push_back(name);
    program.stored[name] = stored(of, item->at(key).get<std::string>(), metas.at(name), persistent);
  };
  if (kind == "parameter")
    add(kParameter, "parameter_name");
  else if (kind == "buffer")
    add(kBuffer, "buffer_name", item->value("persistent", true));
  else if (kind == "tensor_constant")
    add(kConstant, "tensor_constant_name", false);
  else if (kind == "user_input")
    program.user_inputs.push_back(operand(item->at("arg")).value);
  else if (kind != "constant_input")
    throw UserError("it has an unknown kind of input: " + kind);
}

// "Symbol('s77', positive=True, integer=True)" or "s77": its largest value; 0: any.
int64_t most_of(const std::string& symbol, const Json& ranges) {
  const std::size_t quote = symbol.find('\'');
  const std::string name = quote == std::string::npos
                               ? symbol
                               : symbol.substr(quote + 1, symbol.find('\'', quote + 1) - quote - 1);
  const auto range = ranges.find(name);
  if (range == ranges.end()) return 0;
  const auto most = range->find("max_val");
  return most != range->end() && most->is_number_integer() ? most->get<int64_t>() : 0;
}

void add_meta(const std::string& value, const Json& metas, const Json& ranges, Program& program) {
  const auto written = metas.find(value);
  if (written == metas.end()) return;
  Program::Meta meta{.dtype = dtype_of(whole_number(written->at("dtype")))};
  for (const Json& size : written->at("sizes")) {
    const Operand length = symbol(size);
    const int64_t one_size = size_of(length);
    if (one_size < 0 && meta.sizes.empty()) meta.most = most_of(length.value, ranges);
    meta.sizes.push_back(one_size);
  }
  program.metas[value] = std::move(meta);
}

// Names of the leaves of a TreeSpec: keys of dicts and of transformers' outputs, indices of tuples.
void add_names(const Json& spec, const std::string& prefix, std::vector<std::string>& names) {
  if (spec.at("type").is_null()) return names.push_back(prefix);
  const Json& children = spec.at("children_spec");
  Json keys;
  if (spec.at("context").is_string())
    keys = parse_json(spec.at("context").get<std::string>(), nullptr, false);
  if (keys.is_array() && !keys.empty() && keys[0].is_array()) keys = Json(keys[0]);
  const bool named = keys.is_array() && keys.size() == children.size();
  for (std::size_t i = 0; i < children.size(); ++i) {
    const std::string name = named && keys[i].is_string() ? keys[i].get<std::string>() : std::to_string(i);
    add_names(children[i], prefix.empty() ? name : prefix + "." + name, names);
  }
}

void read_outputs(const Json& graph_module, Program& program) {
  for (std::size_t i = 0; const Json& spec : graph_module.at("signature").at("output_specs")) {
    const auto [kind, item] = chosen(spec);
    if (kind == "buffer_mutation" || kind == "parameter_mutation")
      throw UserError(
          "it was changed by run_decompositions, so that it returns what forward writes; save it as "
          "torch.export.export made it");
    if (kind == "user_output") program.output_places.push_back(i);
    ++i;
  }
  const Json& calls = graph_module.at("module_call_graph");
  const Json& signature = calls.at(0).at("signature");
  if (!signature.is_null()) {
    const Json tree = parse_json(signature.at("out_spec").get<std::string>(), nullptr, false);
    if (tree.is_array() && tree.size() == 2) add_names(tree[1], "", program.output_names);
  }
  if (program.output_names.size() == program.output_places.size()) return;
  program.output_names.clear();
  for (std::size_t i = 0; i < program.output_places.size(); ++i)
    program.output_names.push_back(std::to_string(i));
}

}  // namespace

at::ScalarType dtype_of(int64_t number) {
  using enum at::ScalarType;
  static const std::map<int64_t, at::ScalarType> all{
      {1, Byte},           {2, Char},  {3, Short},    {4, Int},         {5, Long},
      {6, Half},           {7, Float}, {8, Double},   {9, ComplexHalf}, {10, ComplexFloat},
      {11, ComplexDouble}, {12, Bool}, {13, BFloat16}};
  const auto dtype = all.find(number);
  if (dtype == all.end())
    throw UserError("it has tensors of a type that tutti does not know: " + std::to_string(number));
  return dtype->second;
}

const Operand* Node::input(const std::string& name) const {
  for (const auto& [argument, operand] : inputs)
    if (argument == name) return &operand;
  return nullptr;
}

bool is_in_place(const std::string& target) {
  const std::size_t dot = target.find('.', target.find('.') + 1);
  return dot != std::string::npos && target[dot - 1] == '_' && !target.starts_with("_operator");
}

bool writes_in_place(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return is_in_place(node.target) || std::ranges::any_of(node.inputs, [](const auto& input) {
             return input.second.graph && writes_in_place(*input.second.graph);
           });
  });
}

Program parse_program(const std::string& text) try {
  const Json json = parse_json(text);
  const Json& graph_module = json.at("graph_module");
  Program program;
  program.graph = graph_of(graph_module.at("graph"));
  const Json& metas = graph_module.at("graph").at("tensor_values");
  for (const Json& spec : graph_module.at("signature").at("input_specs")) add_input(spec, metas, program);
  read_outputs(graph_module, program);
  const Json ranges = json.value("range_constraints", Json::object());
  for (const std::string& input : program.user_inputs) add_meta(input, metas, ranges, program);
  for (const Operand& output : program.graph.outputs) add_meta(output.value, metas, ranges, program);
  return program;
} catch (const Json::exception& error) {
  throw UserError(
      std::string("its program has a form that tutti does not know (PyTorch 2.9 to 2.15 are read): ") +
      json_problem(error));
}

}  // namespace tutti::exported

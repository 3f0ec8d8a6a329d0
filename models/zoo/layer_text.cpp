#include "models/zoo/layer_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "models/layers/activation.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/pool.h"
#include "recipe/catalog.h"
#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int64_t kWidestLayer = 1'000'000'000;

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// "a, (b, c), d" to "a", "(b, c)", "d".
std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0) throw UserError("a ')' too many");
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  if (depth > 0) throw UserError("a ')' is missing");
  for (std::string& part : parts) part = trimmed(part);
  if (parts.back().empty()) parts.pop_back();  // Python allows a comma at the end
  return parts;
}

// The arguments of a layer, each asked for by its name; `names` in torch's order.
class Arguments {
 public:
  Arguments(const std::string& list, std::vector<std::string> names) : names_(std::move(names)) {
    std::size_t position = 0;
    for (const std::string& part : parts_of(list)) {
      const auto equals = part.find('=');
      if (equals == std::string::npos && given_.size() > position)
        throw UserError("argument " + part + " has no name, and follows one that has");
      if (equals == std::string::npos && position == names_.size())
        throw UserError("more than " + std::to_string(names_.size()) + " arguments");
      const std::string name =
          equals == std::string::npos ? names_[position++] : trimmed(part.substr(0, equals));
      if (std::find(names_.begin(), names_.end(), name) == names_.end())
        throw UserError("there is no argument " + name + "; there are " + joined(names_));
      const std::string value = equals == std::string::npos ? part : trimmed(part.substr(equals + 1));
      if (!given_.emplace(name, value).second) throw UserError("argument " + name + " is given twice");
    }
  }

  // 3, or where the layer has so many `dimensions` the same for all: (3, 3).
  int64_t integer(const std::string& name, std::optional<int64_t> fallback, int64_t least,
                  std::size_t dimensions = 0) const {
    const auto found = given_.find(name);
    if (found == given_.end() && !fallback) throw UserError("argument " + name + " is missing");
    if (found == given_.end()) return *fallback;
    const int64_t value = one_of_all(name, found->second, dimensions);
    if (value < least || value > kWidestLayer)
      wrong(name, "an integer from " + std::to_string(least) + " to " + std::to_string(kWidestLayer));
    return value;
  }

  double number(const std::string& name, double fallback) const {
    const auto found = given_.find(name);
    if (found == given_.end()) return fallback;
    double value = 0;
    const char* const end = found->second.data() + found->second.size();
    const auto [rest, error] = std::from_chars(found->second.data(), end, value);
    if (error != std::errc() || rest != end) wrong(name, "a number");
    return value;
  }

  bool flag(const std::string& name, bool fallback) const {
    const auto found = given_.find(name);
    if (found == given_.end()) return fallback;
    if (found->second != "True" && found->second != "False") wrong(name, "True or False");
    return found->second == "True";
  }

  const std::string& text(const std::string& name, const std::string& fallback) const {
    const auto found = given_.find(name);
    return found == given_.end() ? fallback : found->second;
  }

 private:
  int64_t one_of_all(const std::string& name, const std::string& text, std::size_t dimensions) const {
    const bool is_tuple = dimensions > 0 && text.size() > 1 && text.front() == '(' && text.back() == ')';
    if (!is_tuple) return whole(name, text);
    const auto parts = parts_of(text.substr(1, text.size() - 2));
    if (parts.size() != dimensions) wrong(name, std::to_string(dimensions) + " of them in parentheses");
    for (const std::string& one : parts)
      if (whole(name, one) != whole(name, parts[0])) wrong(name, "the same integer in all dimensions");
    return whole(name, parts[0]);
  }

  int64_t whole(const std::string& name, const std::string& text) const {
    int64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || rest != text.data() + text.size()) wrong(name, "an integer");
    return number;
  }

  [[noreturn]] void wrong(const std::string& name, const std::string& expected) const {
    throw UserError("argument " + name + ": expected " + expected + ", found " + given_.at(name));
  }

  std::vector<std::string> names_;
  std::map<std::string, std::string> given_;
};

// Of an argument there is one value only.
void only(const char* argument, const std::string& value, bool has_it) {
  if (!has_it) throw UserError(std::string("argument ") + argument + ": only " + value + " is supported");
}

std::shared_ptr<Layer> linear(const Arguments& of) {
  return std::make_shared<Linear>(of.integer("in_features", {}, 1), of.integer("out_features", {}, 1),
                                  of.flag("bias", true));
}

std::shared_ptr<Layer> conv2d(const Arguments& of) {
  only("dilation", "1", of.integer("dilation", 1, 1, 2) == 1);
  const Conv2dOptions options{.in_channels = of.integer("in_channels", {}, 1),
                              .out_channels = of.integer("out_channels", {}, 1),
                              .kernel_size = of.integer("kernel_size", {}, 1, 2),
                              .stride = of.integer("stride", 1, 1, 2),
                              .padding = of.integer("padding", 0, 0, 2),
                              .groups = of.integer("groups", 1, 1),
                              .bias = of.flag("bias", true)};
  if (options.in_channels % options.groups != 0 || options.out_channels % options.groups != 0)
    throw UserError("groups do not divide the channels");
  return std::make_shared<Conv2d>(options);
}

template <class Norm>
std::shared_ptr<Layer> batch_norm(const Arguments& of) {
  const double eps = of.number("eps", 1e-5), momentum = of.number("momentum", 0.1);
  if (!(eps > 0 && eps < 1)) throw UserError("argument eps: expected a number in (0, 1)");
  if (!(momentum >= 0 && momentum <= 1)) throw UserError("argument momentum: expected a number in [0, 1]");
  only("affine", "True", of.flag("affine", true));
  only("track_running_stats", "True", of.flag("track_running_stats", true));
  return std::make_shared<Norm>(of.integer("num_features", {}, 1), eps, momentum);
}

std::shared_ptr<Layer> layer_norm(const Arguments& of) {
  only("elementwise_affine", "True", of.flag("elementwise_affine", true));
  only("bias", "True", of.flag("bias", true));
  const double eps = of.number("eps", 1e-5);
  if (!(eps > 0 && eps < 1)) throw UserError("argument eps: expected a number in (0, 1)");
  return std::make_shared<LayerNorm>(of.integer("normalized_shape", {}, 1, 1), eps);
}

std::shared_ptr<Layer> relu(const Arguments& of) { return std::make_shared<ReLU>(of.flag("inplace", false)); }

// In place or not, the numbers are the same.
std::shared_ptr<Layer> leaky_relu(const Arguments& of) {
  of.flag("inplace", false);
  return std::make_shared<LeakyReLU>(of.number("negative_slope", 0.01));
}

std::shared_ptr<Layer> silu(const Arguments& of) {
  of.flag("inplace", false);
  return std::make_shared<SiLU>();
}

std::shared_ptr<Layer> gelu(const Arguments& of) {
  const std::string& how = of.text("approximate", "'none'");
  const bool tanh = how == "'tanh'" || how == "\"tanh\"", none = how == "'none'" || how == "\"none\"";
  if (!tanh && !none) throw UserError("argument approximate: expected 'none' or 'tanh', found " + how);
  return std::make_shared<GELU>(tanh ? GELU::Form::kTanh : GELU::Form::kExact);
}

std::shared_ptr<Layer> flatten(const Arguments& of) {
  only("start_dim", "1", of.text("start_dim", "1") == "1");
  only("end_dim", "-1", of.text("end_dim", "-1") == "-1");
  return std::make_shared<Flatten>();
}

struct Window {
  int64_t size, stride, padding;
};

Window window_of(const Arguments& of) {
  only("ceil_mode", "False", !of.flag("ceil_mode", false));
  const int64_t size = of.integer("kernel_size", {}, 1, 2);
  const int64_t padding = of.integer("padding", 0, 0, 2);
  if (2 * padding > size) throw UserError("argument padding: more than half of kernel_size");
  return {size, of.integer("stride", size, 1, 2), padding};
}

std::shared_ptr<Layer> max_pool2d(const Arguments& of) {
  only("dilation", "1", of.integer("dilation", 1, 1, 2) == 1);
  only("return_indices", "False", !of.flag("return_indices", false));
  const auto [size, stride, padding] = window_of(of);
  return std::make_shared<MaxPool2d>(size, stride, padding);
}

std::shared_ptr<Layer> avg_pool2d(const Arguments& of) {
  only("divisor_override", "None", of.text("divisor_override", "None") == "None");
  const auto [size, stride, padding] = window_of(of);
  return std::make_shared<AvgPool2d>(size, stride, padding, of.flag("count_include_pad", true));
}

std::shared_ptr<Layer> adaptive_avg_pool2d(const Arguments& of) {
  only("output_size", "1", of.integer("output_size", {}, 1, 2) == 1);
  return std::make_shared<AdaptiveAvgPool2d>();
}

std::shared_ptr<Layer> dropout(const Arguments& of) {
  only("inplace", "False", !of.flag("inplace", false));
  const double p = of.number("p", 0.5);
  if (!(p >= 0 && p < 1)) throw UserError("argument p: expected a number in [0, 1)");
  return std::make_shared<Dropout>(p);
}

template <class Plain>
std::shared_ptr<Layer> without_arguments(const Arguments&) {
  return std::make_shared<Plain>();
}

struct LayerKind {
  std::vector<std::string> arguments;  // torch's, in torch's order
  std::shared_ptr<Layer> (*make)(const Arguments& of);
};

const std::map<std::string, LayerKind>& layer_kinds() {
  static const std::map<std::string, LayerKind> all = {
      {"Linear", {{"in_features", "out_features", "bias"}, linear}},
      {"Conv2d",
       {{"in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias"},
        conv2d}},
      {"BatchNorm1d",
       {{"num_features", "eps", "momentum", "affine", "track_running_stats"}, batch_norm<BatchNorm1d>}},
      {"BatchNorm2d",
       {{"num_features", "eps", "momentum", "affine", "track_running_stats"}, batch_norm<BatchNorm2d>}},
      {"LayerNorm", {{"normalized_shape", "eps", "elementwise_affine", "bias"}, layer_norm}},
      {"ReLU", {{"inplace"}, relu}},
      {"LeakyReLU", {{"negative_slope", "inplace"}, leaky_relu}},
      {"SiLU", {{"inplace"}, silu}},
      {"Sigmoid", {{}, without_arguments<Sigmoid>}},
      {"Identity", {{}, without_arguments<Identity>}},
      {"GELU", {{"approximate"}, gelu}},
      {"Tanh", {{}, without_arguments<Tanh>}},
      {"Flatten", {{"start_dim", "end_dim"}, flatten}},
      {"MaxPool2d",
       {{"kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"}, max_pool2d}},
      {"AvgPool2d",
       {{"kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"},
        avg_pool2d}},
      {"AdaptiveAvgPool2d", {{"output_size"}, adaptive_avg_pool2d}},
      {"Dropout", {{"p", "inplace"}, dropout}}};
  return all;
}

}  // namespace

std::shared_ptr<Layer> make_layer(const std::string& text) {
  const std::string whole = trimmed(text);
  const auto open = whole.find('(');
  const std::string kind = trimmed(whole.substr(0, open));
  const auto found = layer_kinds().find(kind);
  if (found == layer_kinds().end()) {
    std::vector<std::string> kinds;
    for (const auto& [name, ignored] : layer_kinds()) kinds.push_back(name);
    throw UserError("there is no layer '" + kind + "'; there are " + joined(kinds));
  }
  if (open != std::string::npos && whole.back() != ')')
    throw UserError(kind + ": a ')' is missing at the end");
  const std::string list = open == std::string::npos ? "" : whole.substr(open + 1, whole.size() - open - 2);
  try {
    return found->second.make(Arguments(list, found->second.arguments));
  } catch (const UserError& error) {
    throw UserError(kind + ": " + error.what());
  }
}

}  // namespace tutti

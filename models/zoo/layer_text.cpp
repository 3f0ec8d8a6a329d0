#include "models/zoo/layer_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <vector>

#include "models/layers/activation.h"
#include "models/layers/conv.h"
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

// Splits "a, (b, c), d" into "a", "(b, c)", "d".
std::vector<std::string> split_arguments(const std::string& list) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : list) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth < 0) throw UserError("an extra ')'");
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

// The arguments of a layer by name; `names` in torch's order.
class Arguments {
 public:
  Arguments(const std::string& list, std::vector<std::string> names) : names_(std::move(names)) {
    std::size_t position = 0;
    for (const std::string& part : split_arguments(list)) {
      const auto equals = part.find('=');
      if (equals == std::string::npos && given_.size() > position)
        throw UserError("argument " + part + " has no name but follows a named argument");
      if (equals == std::string::npos && position == names_.size())
        throw UserError("more than " + std::to_string(names_.size()) + " arguments");
      const std::string name =
          equals == std::string::npos ? names_[position++] : trimmed(part.substr(0, equals));
      if (std::find(names_.begin(), names_.end(), name) == names_.end())
        throw UserError("there is no argument " + name + "; expected one of " + joined(names_));
      const std::string value = equals == std::string::npos ? part : trimmed(part.substr(equals + 1));
      if (!given_.emplace(name, value).second) throw UserError("argument " + name + " is given twice");
    }
  }

  int64_t integer(const std::string& name, std::optional<int64_t> fallback, int64_t min) const {
    if (!is_given(name, fallback.has_value())) return *fallback;
    const int64_t value = to_integer(name, given_.at(name));
    require_range(name, value, min);
    return value;
  }

  // Reads 3 or, in parentheses, `dimensions` integers: (3, 5). One number stands for all.
  Shape integers(const std::string& name, std::optional<int64_t> fallback, int64_t min,
                 std::size_t dimensions) const {
    if (!is_given(name, fallback.has_value())) return Shape(dimensions, *fallback);
    Shape values = tuple(name);
    if (values.size() != dimensions && !(values.size() == 1 && given_.at(name).front() != '('))
      fail(name, std::to_string(dimensions) + " of them in parentheses");
    values.resize(dimensions, values.front());
    for (const int64_t value : values) require_range(name, value, min);
    return values;
  }

  Extent2d pair(const std::string& name, std::optional<int64_t> fallback, int64_t min) const {
    const Shape both = integers(name, fallback, min, 2);
    return {both[0], both[1]};
  }

  // One or more integers: 3, (3,), (3, 5).
  Shape shape(const std::string& name) const {
    is_given(name, /*has_fallback=*/false);
    Shape values = tuple(name);
    for (const int64_t value : values) require_range(name, value, 1);
    return values;
  }

  double number(const std::string& name, double fallback) const {
    const auto found = given_.find(name);
    if (found == given_.end()) return fallback;
    double value = 0;
    const char* const end = found->second.data() + found->second.size();
    const auto [rest, error] = std::from_chars(found->second.data(), end, value);
    if (error != std::errc() || rest != end) fail(name, "a number");
    return value;
  }

  bool flag(const std::string& name, bool fallback) const {
    const auto found = given_.find(name);
    if (found == given_.end()) return fallback;
    if (found->second != "True" && found->second != "False") fail(name, "True or False");
    return found->second == "True";
  }

  std::string text(const std::string& name, const std::string& fallback) const {
    const auto found = given_.find(name);
    return found == given_.end() ? fallback : found->second;
  }

 private:
  // Throws if the argument is missing.
  bool is_given(const std::string& name, bool has_fallback) const {
    const bool given = given_.count(name) > 0;
    if (!given && !has_fallback) throw UserError("argument " + name + " is missing");
    return given;
  }

  Shape tuple(const std::string& name) const {
    const std::string& text = given_.at(name);
    const bool is_tuple = text.size() > 1 && text.front() == '(' && text.back() == ')';
    if (!is_tuple) return {to_integer(name, text)};
    Shape values;
    for (const std::string& one : split_arguments(text.substr(1, text.size() - 2)))
      values.push_back(to_integer(name, one));
    if (values.empty()) fail(name, "at least one integer");
    return values;
  }

  void require_range(const std::string& name, int64_t value, int64_t min) const {
    if (value < min || value > kWidestLayer)
      fail(name, "an integer from " + std::to_string(min) + " to " + std::to_string(kWidestLayer));
  }

  int64_t to_integer(const std::string& name, const std::string& text) const {
    int64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || rest != text.data() + text.size()) fail(name, "an integer");
    return number;
  }

  [[noreturn]] void fail(const std::string& name, const std::string& expected) const {
    throw UserError("argument " + name + ": expected " + expected + ", found " + given_.at(name));
  }

  std::vector<std::string> names_;
  std::map<std::string, std::string> given_;
};

// Throws UserError unless the argument has the only supported value.
void require_value(const char* argument, const std::string& value, bool has_value) {
  if (!has_value) throw UserError(std::string("argument ") + argument + ": only " + value + " is supported");
}

std::shared_ptr<Layer> linear(const Arguments& args) {
  return std::make_shared<Linear>(args.integer("in_features", {}, 1), args.integer("out_features", {}, 1),
                                  args.flag("bias", true));
}

bool is_quoted(const std::string& text, const std::string& word) {
  return text == "'" + word + "'" || text == "\"" + word + "\"";
}

// Numbers, 'valid' (none), or 'same': the output is as large as the input.
Shape padding_of(const Arguments& args, const Shape& kernel, const Shape& stride, const Shape& dilation) {
  const std::string text = args.text("padding", "0");
  if (is_quoted(text, "valid")) return Shape(kernel.size(), 0);
  if (!is_quoted(text, "same")) return args.integers("padding", 0, 0, kernel.size());
  Shape padding;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    const int64_t both_sides = dilation[d] * (kernel[d] - 1);
    if (stride[d] != 1 || both_sides % 2 != 0)
      throw UserError("argument padding: 'same' needs stride 1 and an odd kernel_size");
    padding.push_back(both_sides / 2);
  }
  return padding;
}

// The common arguments of convolutions.
struct Window {
  Shape kernel_size, stride, padding, dilation;
};

template <class Options>
void read_convolution(const Arguments& args, std::size_t dimensions, Options& options, Window& window) {
  if (!is_quoted(args.text("padding_mode", "'zeros'"), "zeros"))
    throw UserError("argument padding_mode: only 'zeros' is supported");
  options.in_channels = args.integer("in_channels", {}, 1);
  options.out_channels = args.integer("out_channels", {}, 1);
  options.groups = args.integer("groups", 1, 1);
  options.bias = args.flag("bias", true);
  if (options.in_channels % options.groups != 0 || options.out_channels % options.groups != 0)
    throw UserError("groups do not divide the channels");
  window.kernel_size = args.integers("kernel_size", {}, 1, dimensions);
  window.stride = args.integers("stride", 1, 1, dimensions);
  window.dilation = args.integers("dilation", 1, 1, dimensions);
  window.padding = padding_of(args, window.kernel_size, window.stride, window.dilation);
}

std::shared_ptr<Layer> conv1d(const Arguments& args) {
  Conv1dOptions options;
  Window window;
  read_convolution(args, 1, options, window);
  options.kernel_size = window.kernel_size[0];
  options.stride = window.stride[0];
  options.padding = window.padding[0];
  options.dilation = window.dilation[0];
  return std::make_shared<Conv1d>(options);
}

std::shared_ptr<Layer> conv2d(const Arguments& args) {
  Conv2dOptions options;
  Window window;
  read_convolution(args, 2, options, window);
  const auto extent = [](const Shape& both) { return Extent2d(both[0], both[1]); };
  options.kernel_size = extent(window.kernel_size);
  options.stride = extent(window.stride);
  options.padding = extent(window.padding);
  options.dilation = extent(window.dilation);
  return std::make_shared<Conv2d>(options);
}

std::shared_ptr<Layer> conv3d(const Arguments& args) {
  Conv3dOptions options;
  Window window;
  read_convolution(args, 3, options, window);
  const auto extent = [](const Shape& all) { return Extent3d{all[0], all[1], all[2]}; };
  options.kernel_size = extent(window.kernel_size);
  options.stride = extent(window.stride);
  options.padding = extent(window.padding);
  options.dilation = extent(window.dilation);
  return std::make_shared<Conv3d>(options);
}

double eps_of(const Arguments& args) {
  const double eps = args.number("eps", 1e-5);
  if (!(eps > 0 && eps < 1)) throw UserError("argument eps: expected a number in (0, 1)");
  return eps;
}

template <class Norm>
std::shared_ptr<Layer> batch_norm(const Arguments& args) {
  const BatchNormOptions options{.channels = args.integer("num_features", {}, 1),
                                 .eps = eps_of(args),
                                 .momentum = args.number("momentum", 0.1),
                                 .affine = args.flag("affine", true)};
  if (!(options.momentum >= 0 && options.momentum <= 1))
    throw UserError("argument momentum: expected a number in [0, 1]");
  require_value("track_running_stats", "True", args.flag("track_running_stats", true));
  return std::make_shared<Norm>(options);
}

std::shared_ptr<Layer> layer_norm(const Arguments& args) {
  return std::make_shared<LayerNorm>(LayerNormOptions{.shape = args.shape("normalized_shape"),
                                                      .eps = eps_of(args),
                                                      .affine = args.flag("elementwise_affine", true),
                                                      .bias = args.flag("bias", true)});
}

std::shared_ptr<Layer> group_norm(const Arguments& args) {
  const GroupNormOptions options{.groups = args.integer("num_groups", {}, 1),
                                 .channels = args.integer("num_channels", {}, 1),
                                 .eps = eps_of(args),
                                 .affine = args.flag("affine", true)};
  if (options.channels % options.groups != 0) throw UserError("num_groups does not divide num_channels");
  return std::make_shared<GroupNorm>(options);
}

std::shared_ptr<Layer> relu(const Arguments& args) {
  return std::make_shared<ReLU>(args.flag("inplace", false));
}

// `inplace` is accepted; the results are the same.
std::shared_ptr<Layer> leaky_relu(const Arguments& args) {
  args.flag("inplace", false);
  return std::make_shared<LeakyReLU>(args.number("negative_slope", 0.01));
}

std::shared_ptr<Layer> silu(const Arguments& args) {
  args.flag("inplace", false);
  return std::make_shared<SiLU>();
}

std::shared_ptr<Layer> gelu(const Arguments& args) {
  const std::string approximate = args.text("approximate", "'none'");
  const bool tanh = is_quoted(approximate, "tanh"), none = is_quoted(approximate, "none");
  if (!tanh && !none)
    throw UserError("argument approximate: expected 'none' or 'tanh', found " + approximate);
  return std::make_shared<GELU>(tanh ? GELU::Form::kTanh : GELU::Form::kExact);
}

std::shared_ptr<Layer> flatten(const Arguments& args) {
  require_value("start_dim", "1", args.text("start_dim", "1") == "1");
  require_value("end_dim", "-1", args.text("end_dim", "-1") == "-1");
  return std::make_shared<Flatten>();
}

// The common arguments of pools; torch's stride is the window's size by default.
template <class Options>
Options pool_options(const Arguments& args) {
  Options options;
  options.kernel_size = args.pair("kernel_size", {}, 1);
  const bool strides = args.text("stride", "None") != "None";
  options.stride = strides ? args.pair("stride", {}, 1) : options.kernel_size;
  options.padding = args.pair("padding", 0, 0);
  options.ceil_mode = args.flag("ceil_mode", false);
  if (2 * options.padding.height > options.kernel_size.height ||
      2 * options.padding.width > options.kernel_size.width)
    throw UserError("argument padding: more than half of kernel_size");
  return options;
}

std::shared_ptr<Layer> max_pool2d(const Arguments& args) {
  require_value("return_indices", "False", !args.flag("return_indices", false));
  auto options = pool_options<MaxPool2dOptions>(args);
  options.dilation = args.pair("dilation", 1, 1);
  return std::make_shared<MaxPool2d>(options);
}

std::shared_ptr<Layer> avg_pool2d(const Arguments& args) {
  require_value("divisor_override", "None", args.text("divisor_override", "None") == "None");
  auto options = pool_options<AvgPool2dOptions>(args);
  options.counts_padding = args.flag("count_include_pad", true);
  return std::make_shared<AvgPool2d>(options);
}

std::shared_ptr<Layer> adaptive_avg_pool2d(const Arguments& args) {
  return std::make_shared<AdaptiveAvgPool2d>(args.pair("output_size", {}, 1));
}

std::shared_ptr<Layer> dropout(const Arguments& args) {
  require_value("inplace", "False", !args.flag("inplace", false));
  const double p = args.number("p", 0.5);
  if (!(p >= 0 && p < 1)) throw UserError("argument p: expected a number in [0, 1)");
  return std::make_shared<Dropout>(p);
}

template <class Plain>
std::shared_ptr<Layer> without_arguments(const Arguments&) {
  return std::make_shared<Plain>();
}

struct LayerKind {
  std::vector<std::string> arguments;  // torch's, in torch's order
  std::shared_ptr<Layer> (*make)(const Arguments& args);
};

const std::map<std::string, LayerKind>& layer_kinds() {
  static const std::vector<std::string> convolution = {"in_channels", "out_channels", "kernel_size",
                                                       "stride",      "padding",      "dilation",
                                                       "groups",      "bias",         "padding_mode"};
  static const std::vector<std::string> batches = {"num_features", "eps", "momentum", "affine",
                                                   "track_running_stats"};
  static const std::map<std::string, LayerKind> all = {
      {"Linear", {{"in_features", "out_features", "bias"}, linear}},
      {"Conv1d", {convolution, conv1d}},
      {"Conv2d", {convolution, conv2d}},
      {"Conv3d", {convolution, conv3d}},
      {"BatchNorm1d", {batches, batch_norm<BatchNorm1d>}},
      {"BatchNorm2d", {batches, batch_norm<BatchNorm2d>}},
      {"BatchNorm3d", {batches, batch_norm<BatchNorm3d>}},
      {"LayerNorm", {{"normalized_shape", "eps", "elementwise_affine", "bias"}, layer_norm}},
      {"GroupNorm", {{"num_groups", "num_channels", "eps", "affine"}, group_norm}},
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
  const std::string call = trimmed(text);
  const auto open = call.find('(');
  const std::string kind = trimmed(call.substr(0, open));
  const auto found = layer_kinds().find(kind);
  if (found == layer_kinds().end()) {
    std::vector<std::string> kinds;
    for (const auto& [name, ignored] : layer_kinds()) kinds.push_back(name);
    throw UserError("there is no layer '" + kind + "'; expected one of " + joined(kinds));
  }
  if (open != std::string::npos && call.back() != ')')
    throw UserError(kind + ": a ')' is missing at the end");
  const std::string list = open == std::string::npos ? "" : call.substr(open + 1, call.size() - open - 2);
  try {
    return found->second.make(Arguments(list, found->second.arguments));
  } catch (const UserError& error) {
    throw UserError(kind + ": " + error.what());
  }
}

}  // namespace tutti

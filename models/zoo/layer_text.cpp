#include "models/zoo/layer_text.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/conv.h"
#include "models/layers/embedding.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/pool.h"
#include "models/layers/recurrent.h"
#include "models/zoo/layer_arguments.h"
#include "recipe/catalog.h"
#include "runtime/error.h"

namespace tutti {
namespace {

// Throws UserError unless the argument has the only supported value.
void require_value(const char* argument, const std::string& value, bool has_value) {
  if (!has_value) throw UserError(std::string("argument ") + argument + ": only " + value + " is supported");
}

std::shared_ptr<Layer> linear(const LayerArguments& args) {
  return std::make_shared<Linear>(args.integer("in_features", {}, 1), args.integer("out_features", {}, 1),
                                  args.flag("bias", true));
}

// As one writes a word, or as PyTorch prints one: Conv2d(3, 4, kernel_size=(3, 3), padding=same).
bool is_word(const std::string& text, const std::string& word) {
  return text == "'" + word + "'" || text == "\"" + word + "\"" || text == word;
}

// Numbers, 'valid' (none), or 'same': the output is as large as the input.
Shape padding_of(const LayerArguments& args, const Shape& kernel, const Shape& stride,
                 const Shape& dilation) {
  const std::string text = args.text("padding", "0");
  if (is_word(text, "valid")) return Shape(kernel.size(), 0);
  if (!is_word(text, "same")) return args.integers("padding", 0, 0, kernel.size());
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
void read_convolution(const LayerArguments& args, std::size_t dimensions, Options& options, Window& window) {
  if (!is_word(args.text("padding_mode", "'zeros'"), "zeros"))
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

std::shared_ptr<Layer> conv1d(const LayerArguments& args) {
  Conv1dOptions options;
  Window window;
  read_convolution(args, 1, options, window);
  options.kernel_size = window.kernel_size[0];
  options.stride = window.stride[0];
  options.padding = window.padding[0];
  options.dilation = window.dilation[0];
  return std::make_shared<Conv1d>(options);
}

std::shared_ptr<Layer> conv2d(const LayerArguments& args) {
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

std::shared_ptr<Layer> conv3d(const LayerArguments& args) {
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

double eps_of(const LayerArguments& args) {
  const double eps = args.number("eps", 1e-5);
  if (!(eps > 0 && eps < 1)) throw UserError("argument eps: expected a number in (0, 1)");
  return eps;
}

template <class Norm>
std::shared_ptr<Layer> batch_norm(const LayerArguments& args) {
  const BatchNormOptions options{.channels = args.integer("num_features", {}, 1),
                                 .eps = eps_of(args),
                                 .momentum = args.number("momentum", 0.1),
                                 .affine = args.flag("affine", true)};
  if (!(options.momentum >= 0 && options.momentum <= 1))
    throw UserError("argument momentum: expected a number in [0, 1]");
  require_value("track_running_stats", "True", args.flag("track_running_stats", true));
  return std::make_shared<Norm>(options);
}

std::shared_ptr<Layer> layer_norm(const LayerArguments& args) {
  return std::make_shared<LayerNorm>(LayerNormOptions{.shape = args.shape("normalized_shape"),
                                                      .eps = eps_of(args),
                                                      .affine = args.flag("elementwise_affine", true),
                                                      .bias = args.flag("bias", true)});
}

std::shared_ptr<Layer> group_norm(const LayerArguments& args) {
  const GroupNormOptions options{.groups = args.integer("num_groups", {}, 1),
                                 .channels = args.integer("num_channels", {}, 1),
                                 .eps = eps_of(args),
                                 .affine = args.flag("affine", true)};
  if (options.channels % options.groups != 0) throw UserError("num_groups does not divide num_channels");
  return std::make_shared<GroupNorm>(options);
}

std::shared_ptr<Layer> relu(const LayerArguments& args) {
  return std::make_shared<ReLU>(args.flag("inplace", false));
}

// `inplace` is accepted; the results are the same.
std::shared_ptr<Layer> leaky_relu(const LayerArguments& args) {
  args.flag("inplace", false);
  return std::make_shared<LeakyReLU>(args.number("negative_slope", 0.01));
}

std::shared_ptr<Layer> silu(const LayerArguments& args) {
  args.flag("inplace", false);
  return std::make_shared<SiLU>();
}

std::shared_ptr<Layer> gelu(const LayerArguments& args) {
  const std::string approximate = args.text("approximate", "'none'");
  const bool tanh = is_word(approximate, "tanh"), none = is_word(approximate, "none");
  if (!tanh && !none)
    throw UserError("argument approximate: expected 'none' or 'tanh', found " + approximate);
  return std::make_shared<GELU>(tanh ? GELU::Form::kTanh : GELU::Form::kExact);
}

std::shared_ptr<Layer> flatten(const LayerArguments& args) {
  require_value("start_dim", "1", args.text("start_dim", "1") == "1");
  require_value("end_dim", "-1", args.text("end_dim", "-1") == "-1");
  return std::make_shared<Flatten>();
}

// The common arguments of pools; torch's stride is the window's size by default.
template <class Options>
Options pool_options(const LayerArguments& args) {
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

std::shared_ptr<Layer> max_pool2d(const LayerArguments& args) {
  require_value("return_indices", "False", !args.flag("return_indices", false));
  auto options = pool_options<MaxPool2dOptions>(args);
  options.dilation = args.pair("dilation", 1, 1);
  return std::make_shared<MaxPool2d>(options);
}

std::shared_ptr<Layer> avg_pool2d(const LayerArguments& args) {
  require_value("divisor_override", "None", args.text("divisor_override", "None") == "None");
  auto options = pool_options<AvgPool2dOptions>(args);
  options.counts_padding = args.flag("count_include_pad", true);
  return std::make_shared<AvgPool2d>(options);
}

std::shared_ptr<Layer> adaptive_avg_pool2d(const LayerArguments& args) {
  return std::make_shared<AdaptiveAvgPool2d>(args.pair("output_size", {}, 1));
}

std::shared_ptr<Layer> dropout(const LayerArguments& args) {
  require_value("inplace", "False", !args.flag("inplace", false));
  const double p = args.number("p", 0.5);
  if (!(p >= 0 && p < 1)) throw UserError("argument p: expected a number in [0, 1)");
  return std::make_shared<Dropout>(p);
}

std::shared_ptr<Layer> rms_norm(const LayerArguments& args) {
  const Shape shape = args.shape("normalized_shape");
  if (shape.size() != 1) throw UserError("argument normalized_shape: only one dimension is supported");
  require_value("elementwise_affine", "True", args.flag("elementwise_affine", true));
  // torch's default, the epsilon of float32.
  const double eps = args.holds("eps") ? args.number("eps", 0) : std::numeric_limits<float>::epsilon();
  return std::make_shared<RMSNorm>(shape[0], eps);
}

std::shared_ptr<Layer> conv_transpose2d(const LayerArguments& args) {
  if (!is_word(args.text("padding_mode", "'zeros'"), "zeros"))
    throw UserError("argument padding_mode: only 'zeros' is supported");
  const ConvTranspose2dOptions options{.in_channels = args.integer("in_channels", {}, 1),
                                       .out_channels = args.integer("out_channels", {}, 1),
                                       .kernel_size = args.pair("kernel_size", {}, 1),
                                       .stride = args.pair("stride", 1, 1),
                                       .padding = args.pair("padding", 0, 0),
                                       .output_padding = args.pair("output_padding", 0, 0),
                                       .dilation = args.pair("dilation", 1, 1),
                                       .groups = args.integer("groups", 1, 1),
                                       .bias = args.flag("bias", true)};
  if (options.in_channels % options.groups != 0 || options.out_channels % options.groups != 0)
    throw UserError("groups do not divide the channels");
  return std::make_shared<ConvTranspose2d>(options);
}

std::shared_ptr<Layer> upsample(const LayerArguments& args) {
  using Mode = UpsampleOptions::Mode;
  static const std::map<std::string, Mode> modes = {
      {"nearest", Mode::kNearest}, {"bilinear", Mode::kBilinear}, {"bicubic", Mode::kBicubic}};
  UpsampleOptions options;
  const std::string mode = args.text("mode", "'nearest'");
  const auto named_mode =
      std::ranges::find_if(modes, [&](const auto& one) { return is_word(mode, one.first); });
  if (named_mode == modes.end())
    throw UserError("argument mode: expected 'nearest', 'bilinear' or 'bicubic', found " + mode);
  options.mode = named_mode->second;
  options.align_corners = args.holds("align_corners") && args.flag("align_corners", false);
  require_value("align_corners", "None of 'nearest'",
                options.mode != Mode::kNearest || !args.holds("align_corners"));
  if (args.holds("size") == args.holds("scale_factor"))
    throw UserError("expected one of the arguments size and scale_factor");
  if (args.holds("size"))
    options.size = args.pair("size", {}, 1);
  else
    options.scale_factor = args.factors("scale_factor");
  return std::make_shared<Upsample>(options);
}

std::shared_ptr<Layer> embedding(const LayerArguments& args) {
  for (const char* other : {"max_norm", "norm_type", "scale_grad_by_freq", "sparse"})
    require_value(other, "torch's default", !args.holds(other) || args.text(other, "") == "False");
  const int64_t rows = args.integer("num_embeddings", {}, 1), features = args.integer("embedding_dim", {}, 1);
  if (!args.holds("padding_idx")) return std::make_shared<Embedding>(rows, features, 1.0);
  const int64_t padding = args.integer("padding_idx", {}, -rows);
  if (padding >= rows) throw UserError("argument padding_idx: there is no such row");
  return std::make_shared<TokenEmbedding>(rows, features, padding < 0 ? padding + rows : padding, 1.0);
}

template <class Kind>
std::shared_ptr<Layer> recurrent(const LayerArguments& args) {
  const RecurrentOptions options{.input_size = args.integer("input_size", {}, 1),
                                 .hidden_size = args.integer("hidden_size", {}, 1),
                                 .num_layers = args.integer("num_layers", 1, 1),
                                 .bias = args.flag("bias", true),
                                 .dropout = args.number("dropout", 0.0),
                                 .bidirectional = args.flag("bidirectional", false)};
  require_value("batch_first", "True", args.flag("batch_first", false));
  require_value("proj_size", "0", args.text("proj_size", "0") == "0");
  if (!(options.dropout >= 0 && options.dropout < 1))
    throw UserError("argument dropout: expected a number in [0, 1)");
  return std::make_shared<Kind>(options);
}

std::shared_ptr<Layer> softmax(const LayerArguments& args) {
  return std::make_shared<Softmax>(args.integer("dim", -1, -8));
}

std::shared_ptr<Layer> select(const LayerArguments& args) {
  return std::make_shared<Select>(args.integer("dim", {}, -8), args.integer("index", {}, -1'000'000'000));
}

// "Sequential(Linear(8, 8), ReLU())", and the same with arguments by name behind the layers.
struct Nested {
  std::vector<std::shared_ptr<Layer>> layers;
  std::map<std::string, std::string> named;
};

bool is_named(const std::string& argument) { return argument.find('=') < argument.find('('); }

Nested nested(const std::string& list, const std::vector<std::string>& names) {
  Nested out;
  for (const std::string& part : split_arguments(list)) {
    if (!is_named(part)) {
      if (!out.named.empty()) throw UserError("a layer follows a named argument");
      out.layers.push_back(make_layer(part));
      continue;
    }
    const auto equals = part.find('=');
    const std::string name = without_blanks_around(part.substr(0, equals));
    if (std::ranges::count(names, name) == 0)
      throw UserError("there is no argument " + name +
                      (names.empty() ? "" : "; expected one of " + joined(names)));
    out.named[name] = without_blanks_around(part.substr(equals + 1));
  }
  if (out.layers.empty()) throw UserError("expected layers in the parentheses");
  return out;
}

std::shared_ptr<Layer> chain(std::vector<std::shared_ptr<Layer>> layers) {
  return layers.size() == 1 ? layers.front() : std::make_shared<Sequential>(std::move(layers));
}

constexpr const char* kNests[] = {"Sequential", "Residual", "Concat"};

// A layer that is made of others.
std::shared_ptr<Layer> made_of_layers(const std::string& kind, const std::string& list) {
  if (kind == "Sequential") return std::make_shared<Sequential>(nested(list, {}).layers);
  if (kind == "Residual") {
    Nested parts = nested(list, {"shortcut"});
    const auto shortcut = parts.named.find("shortcut");
    return std::make_shared<ResidualLayers>(
        chain(std::move(parts.layers)),
        shortcut == parts.named.end() ? nullptr : make_layer(shortcut->second));
  }
  Nested parts = nested(list, {"dim"});
  const auto dim = parts.named.find("dim");
  const std::string given = dim == parts.named.end() ? "1" : dim->second;
  return std::make_shared<Concat>(std::move(parts.layers),
                                  LayerArguments(given, {"dim"}).integer("dim", 1, -8));
}

template <class Plain>
std::shared_ptr<Layer> without_arguments(const LayerArguments&) {
  return std::make_shared<Plain>();
}

struct LayerKind {
  std::vector<std::string> arguments;  // torch's, in torch's order
  std::shared_ptr<Layer> (*make)(const LayerArguments& args);
};

const std::map<std::string, LayerKind>& layer_kinds() {
  static const std::vector<std::string> convolution = {"in_channels", "out_channels", "kernel_size",
                                                       "stride",      "padding",      "dilation",
                                                       "groups",      "bias",         "padding_mode"};
  static const std::vector<std::string> batches = {"num_features", "eps", "momentum", "affine",
                                                   "track_running_stats"};
  static const std::vector<std::string> recurrences = {"input_size",    "hidden_size", "num_layers",
                                                       "bias",          "batch_first", "dropout",
                                                       "bidirectional", "proj_size"};
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
      {"Dropout", {{"p", "inplace"}, dropout}},
      {"RMSNorm", {{"normalized_shape", "eps", "elementwise_affine"}, rms_norm}},
      {"ConvTranspose2d",
       {{"in_channels", "out_channels", "kernel_size", "stride", "padding", "output_padding", "groups",
         "bias", "dilation", "padding_mode"},
        conv_transpose2d}},
      {"Upsample", {{"size", "scale_factor", "mode", "align_corners"}, upsample}},
      {"Embedding",
       {{"num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq",
         "sparse"},
        embedding}},
      {"LSTM", {recurrences, recurrent<LSTM>}},
      {"GRU", {recurrences, recurrent<GRU>}},
      {"Softmax", {{"dim"}, softmax}},
      {"Select", {{"dim", "index"}, select}}};
  return all;
}

}  // namespace

std::shared_ptr<Layer> make_layer(const std::string& text) {
  constexpr int kMostDepth = 64;
  int depth = 0;
  for (const char c : text)
    if ((depth += c == '(' ? 1 : c == ')' ? -1 : 0) > kMostDepth) throw UserError("layers nested too deeply");
  const std::string call = without_blanks_around(text);
  const auto open = call.find('(');
  const std::string kind = without_blanks_around(call.substr(0, open));
  if (open != std::string::npos && call.back() != ')')
    throw UserError(kind + ": a ')' is missing at the end");
  const std::string list = open == std::string::npos ? "" : call.substr(open + 1, call.size() - open - 2);
  const auto maker = layer_kinds().find(kind);
  const bool is_nest = std::ranges::count(kNests, kind) > 0;
  if (maker == layer_kinds().end() && !is_nest) {
    std::vector<std::string> kinds(std::begin(kNests), std::end(kNests));
    for (const auto& [name, ignored] : layer_kinds()) kinds.push_back(name);
    throw UserError("there is no layer '" + kind + "'; expected one of " + joined(kinds));
  }
  try {
    if (is_nest) return made_of_layers(kind, list);
    return maker->second.make(LayerArguments(list, maker->second.arguments));
  } catch (const UserError& error) {
    throw UserError(kind + ": " + error.what());
  }
}

}  // namespace tutti

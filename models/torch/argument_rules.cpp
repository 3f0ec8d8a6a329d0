#include "models/torch/argument_rules.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace tutti {
namespace {

using Arguments = torch::jit::Stack;

bool is_integral(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
}

// True if all numbers of an integral tensor are in [least, most].
bool is_within(const at::Tensor& tensor, int64_t least, int64_t most) {
  if (!is_integral(tensor)) return false;
  if (tensor.numel() == 0) return true;
  return tensor.min().item<int64_t>() >= least && tensor.max().item<int64_t>() <= most;
}

bool are_lengths(const c10::IValue& lengths) {
  if (lengths.isTensor()) return is_within(lengths.toTensor(), 0, std::numeric_limits<int64_t>::max());
  if (!lengths.isIntList()) return false;
  for (const int64_t length : lengths.toIntVector())
    if (length < 0) return false;
  return true;
}

// ctc_loss(log_probs, targets, input_lengths, target_lengths, ...)
std::string ctc_loss(const Arguments& given) {
  const at::Tensor &scores = given[0].toTensor(), &targets = given[1].toTensor();
  if (scores.dim() == 0 || !is_within(targets, 0, scores.size(-1) - 1))
    return "its targets are no classes of its scores";
  return are_lengths(given[2]) && are_lengths(given[3]) ? "" : "its lengths are negative";
}

// embedding_bag(weight, indices, offsets, ...)
std::string embedding_bag(const Arguments& given) {
  const at::Tensor &indices = given[1].toTensor(), &offsets = given[2].toTensor();
  if (!is_within(offsets, 0, indices.numel())) return "its offsets are no places of its indices";
  const int64_t bags = offsets.numel();
  const bool rises = offsets.dim() != 1 || bags < 2 ||
                     offsets.slice(0, 1).ge(offsets.slice(0, 0, bags - 1)).all().item<bool>();
  return rises ? "" : "its offsets do not rise";
}

// The weights of one layer in one direction, which begin at `at`.
bool are_weights_of_lstm(const std::vector<at::Tensor>& weights, std::size_t at, bool has_biases,
                         int64_t inputs, int64_t hidden) {
  const int64_t rows = 4 * hidden;
  const bool biases = !has_biases || (weights[at + 2].sizes() == at::IntArrayRef{rows} &&
                                      weights[at + 3].sizes() == at::IntArrayRef{rows});
  return biases && weights[at].sizes() == at::IntArrayRef({rows, inputs}) &&
         weights[at + 1].sizes() == at::IntArrayRef({rows, hidden});
}

// `first`: of the arguments from the states on: hx, params, has_biases, num_layers, dropout, train,
// bidirectional.
std::string lstm(const Arguments& given, std::size_t first, int64_t inputs, int64_t samples) {
  const std::vector<at::Tensor> states = given[first].toTensorVector(),
                                weights = given[first + 1].toTensorVector();
  const bool has_biases = given[first + 2].toBool();
  const int64_t layers = given[first + 3].toInt(), directions = given[first + 6].toBool() ? 2 : 1;
  constexpr const char* kWrong = "its weights and states do not fit each other";
  if (states.size() != 2 || states[0].dim() != 3 || states[1].dim() != 3 || layers < 1) return kWrong;
  const int64_t hidden = states[0].size(2);
  if (states[1].size(2) != hidden) return "";  // projections, of which libtorch looks at sizes
  const std::size_t in_layer = has_biases ? 4 : 2;
  if (states[0].sizes() != states[1].sizes() || states[0].size(0) != layers * directions ||
      (samples >= 0 && states[0].size(1) != samples) ||
      weights.size() != in_layer * static_cast<std::size_t>(layers * directions))
    return kWrong;
  for (std::size_t layer = 0; layer < weights.size() / in_layer; ++layer) {
    const bool is_first = layer < static_cast<std::size_t>(directions);
    if (!are_weights_of_lstm(weights, layer * in_layer, has_biases, is_first ? inputs : hidden * directions,
                             hidden))
      return kWrong;
  }
  return "";
}

// lstm(input, hx, ..., batch_first), or lstm(data, batch_sizes, hx, ...).
std::string lstm_of_either(const Arguments& given) {
  const at::Tensor& input = given[0].toTensor();
  if (given[1].isTensor())
    return input.dim() == 2 ? lstm(given, 2, input.size(1), -1) : "expected a packed input";
  if (input.dim() != 3) return "expected an input of three dimensions";
  return lstm(given, 1, input.size(2), input.size(given[8].toBool() ? 0 : 1));
}

bool has(const c10::IValue& value, int64_t number) {
  if (value.isInt()) return value.toInt() == number;
  return value.isTensor() && is_integral(value.toTensor()) && value.toTensor().eq(number).any().item<bool>();
}

int64_t least_of(const c10::IValue& value) {
  const bool is_int = value.isTensor() && value.toTensor().scalar_type() == at::kInt;
  return is_int ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int64_t>::min();
}

constexpr const char* kOverflows = "the least number divided by -1 has no place in its type";

// div(self, other, rounding_mode): of whole numbers, the processor's own division.
std::string division(const Arguments& given) {
  if (given.size() < 3 || !given[2].isString() || given[2].toStringRef() != "trunc") return "";
  return has(given[1], -1) && has(given[0], least_of(given[0])) ? kOverflows : "";
}

std::string division_of_numbers(const Arguments& given) {
  if (given.size() < 2 || !given[0].isInt() || !given[1].isInt()) return "";
  if (given[1].toInt() == 0) return "a division by zero";
  return given[1].toInt() == -1 && given[0].toInt() == std::numeric_limits<int64_t>::min() ? kOverflows : "";
}

std::string pattern(const Arguments& given) {
  const bool is_empty = given.size() > 1 && given[1].isString() && given[1].toStringRef().empty();
  return is_empty ? "it looks for an empty text" : "";
}

constexpr double kMostItems = 1e7, kMostTensors = 1e6;

std::string bounded_items(double items) {
  return items > kMostItems ? "it makes a list or a text of more than 10,000,000 items" : "";
}

double size_of(const c10::IValue& value) {
  if (value.isList()) return static_cast<double>(value.toListRef().size());
  return value.isString() ? static_cast<double>(value.toStringRef().size()) : 0.0;
}

double number_of(const Arguments& given, std::size_t index) {
  return index < given.size() && given[index].isInt() ? static_cast<double>(given[index].toInt()) : 0.0;
}

// A list, or a text, so many times.
std::string product(const Arguments& given) {
  if (given.size() < 2) return "";
  return bounded_items(
      std::max(size_of(given[0]) * number_of(given, 1), size_of(given[1]) * number_of(given, 0)));
}

std::string length(const Arguments& given) { return bounded_items(number_of(given, 0)); }

// join(self, values)
std::string join(const Arguments& given) {
  double items = 0.0;
  if (given.size() > 1 && given[1].isList())
    for (const c10::IValue& text : given[1].toListRef()) items += size_of(text) + size_of(given[0]);
  return bounded_items(items);
}

// A tensor without memory may have any number of items.
std::string items_of_tensor(const Arguments& given) {
  return given.at(0).isTensor() ? bounded_items(static_cast<double>(given[0].toTensor().numel())) : "";
}

// The parts of a list, however deep, and the numbers of its tensors; beyond the bound it is not counted on.
double printed_size(const c10::IValue& value) {
  if (value.isTensor()) return static_cast<double>(value.toTensor().numel());
  double size = std::max(size_of(value), 1.0);
  if (value.isList())
    for (const c10::IValue& item : value.toListRef())
      if (size <= kMostItems) size += printed_size(item);
  return size;
}

// str(self), format(self, ...), percentFormat(self, ...)
std::string printed(const Arguments& given) {
  double size = 0.0;
  for (const c10::IValue& argument : given)
    if (size <= kMostItems) size += printed_size(argument);
  return bounded_items(size);
}

// A tensor takes some hundreds of bytes, however few numbers it has.
std::string bounded_tensors(double count) {
  return count > kMostTensors ? "it makes more than 1,000,000 tensors" : "";
}

double size_along(const Arguments& given, std::size_t argument) {
  const auto dim = static_cast<int64_t>(number_of(given, argument));
  if (!given.at(0).isTensor() || given[0].toTensor().dim() == 0) return 0.0;
  const at::Tensor& tensor = given[0].toTensor();
  return dim < -tensor.dim() || dim >= tensor.dim() ? 0.0 : static_cast<double>(tensor.size(dim));
}

// unbind(self, dim)
std::string unbind(const Arguments& given) { return bounded_tensors(size_along(given, 1)); }

// split(self, split_size, dim)
std::string split(const Arguments& given) {
  return bounded_tensors(size_along(given, 2) / std::max(number_of(given, 1), 1.0));
}

// chunk(self, chunks, dim)
std::string chunk(const Arguments& given) {
  return bounded_tensors(std::min(size_along(given, 2), number_of(given, 1)));
}

// tensor_split(self, sections, dim), of which some are empty; hsplit(self, sections) and its kin
std::string tensor_split(const Arguments& given) { return bounded_tensors(number_of(given, 1)); }

}  // namespace

ArgumentRule argument_rule(const std::string& name) {
  static const std::map<std::string, ArgumentRule> rules{
      {"aten::ctc_loss", ctc_loss},
      {"aten::embedding_bag", embedding_bag},
      {"aten::lstm", lstm_of_either},
      {"aten::div", division},
      {"aten::divide", division},
      {"aten::floordiv", division_of_numbers},
      {"aten::remainder", division_of_numbers},
      {"aten::__round_to_zero_floordiv", division_of_numbers},
      {"aten::divmod", division_of_numbers},
      {"aten::count", pattern},
      {"aten::mul", product},
      {"prim::rangelist", length},
      {"aten::join", join},
      {"aten::_tensor_to_list", items_of_tensor},
      {"prim::tolist", items_of_tensor},
      {"aten::unbind", unbind},
      {"aten::split", split},
      {"aten::chunk", chunk},
      {"aten::tensor_split", tensor_split},
      {"aten::hsplit", tensor_split},
      {"aten::vsplit", tensor_split},
      {"aten::dsplit", tensor_split},
      {"aten::str", printed},
      {"aten::format", printed},
      {"aten::percentFormat", printed}};
  const bool in_place = name.ends_with('_') && !name.ends_with("__");
  const auto rule = rules.find(in_place ? name.substr(0, name.size() - 1) : name);
  return rule == rules.end() ? nullptr : rule->second;
}

}  // namespace tutti

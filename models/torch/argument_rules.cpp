#include "models/torch/argument_rules.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/scalar_tensor.h>

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
  const std::size_t in_one = has_biases ? 4 : 2;
  if (states[0].sizes() != states[1].sizes() || states[0].size(0) != layers * directions ||
      (samples >= 0 && states[0].size(1) != samples) ||
      weights.size() != in_one * static_cast<std::size_t>(layers * directions))
    return kWrong;
  for (std::size_t one = 0; one < weights.size() / in_one; ++one) {
    const bool is_first = one < static_cast<std::size_t>(directions);
    if (!are_weights_of_lstm(weights, one * in_one, has_biases, is_first ? inputs : hidden * directions,
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
      {"aten::replace", pattern},
      {"aten::count", pattern}};
  const bool in_place = name.ends_with('_') && !name.ends_with("__");
  const auto found = rules.find(in_place ? name.substr(0, name.size() - 1) : name);
  return found == rules.end() ? nullptr : found->second;
}

}  // namespace tutti

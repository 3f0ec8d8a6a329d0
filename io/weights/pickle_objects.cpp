#include "io/weights/pickle_objects.h"

#include <array>
#include <map>
#include <optional>
#include <stdexcept>

#include "io/formats/dtypes.h"
#include "tensors/tree.h"

namespace tutti {
namespace {

using Arguments = std::vector<PickledValue*>;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

template <class Kind>
const Kind& argument(const Arguments& arguments, std::size_t index, const char* what) {
  const Kind* value = index < arguments.size() ? std::get_if<Kind>(&arguments[index]->value) : nullptr;
  if (!value) refuse("expected " + std::string(what) + " as argument " + std::to_string(index + 1));
  return *value;
}

std::optional<at::ScalarType> dtype_of_storage(const std::string& global) {
  static const std::map<std::string, at::ScalarType> types{{"torch.FloatStorage", at::kFloat},
                                                           {"torch.DoubleStorage", at::kDouble},
                                                           {"torch.HalfStorage", at::kHalf},
                                                           {"torch.BFloat16Storage", at::kBFloat16},
                                                           {"torch.LongStorage", at::kLong},
                                                           {"torch.IntStorage", at::kInt},
                                                           {"torch.ShortStorage", at::kShort},
                                                           {"torch.CharStorage", at::kChar},
                                                           {"torch.ComplexFloatStorage", at::kComplexFloat},
                                                           {"torch.ComplexDoubleStorage", at::kComplexDouble},
                                                           {"torch.ByteStorage", at::kByte},
                                                           {"torch.BoolStorage", at::kBool},
                                                           {"torch.storage.UntypedStorage", at::kByte}};
  const auto type = types.find(global);
  return type == types.end() ? std::nullopt : std::optional(type->second);
}

std::optional<at::ScalarType> dtype_of_global(const std::string& global) {
  constexpr std::string_view kTorch = "torch.";
  return global.starts_with(kTorch) ? dtype_of_name(global.substr(kTorch.size())) : std::nullopt;
}

Shape integers(const Arguments& arguments, std::size_t index, const char* what) {
  Shape numbers;
  for (const PickledValue* value : argument<PickledList>(arguments, index, what).values) {
    const auto* number = std::get_if<int64_t>(&value->value);
    if (!number || *number < 0) refuse(std::string(what) + " of a tensor are not whole numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

// Every number of the tensor lies in its storage, and their bytes can be counted.
void require_inside(const PickledTensor& tensor) {
  if (tensor.shape.size() != tensor.strides.size()) refuse("a tensor has strides of another rank");
  const auto bytes = contiguous_bytes(tensor.shape, tensor.storage.dtype);
  if (!bytes) refuse("a tensor of shape " + shape_text(tensor.shape) + " is too large");
  if (*bytes == 0) return;
  int64_t last = tensor.offset;
  bool fits = last >= 0;
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
    int64_t way = 0;
    fits = fits && !__builtin_mul_overflow(tensor.shape[d] - 1, tensor.strides[d], &way) &&
           !__builtin_add_overflow(last, way, &last);
  }
  if (!fits || last >= tensor.storage.numbers)
    refuse("a tensor of shape " + shape_text(tensor.shape) + " lies outside its storage '" +
           tensor.storage.key + "' of " + std::to_string(tensor.storage.numbers) + " numbers");
}

PickledTensor tensor_of(const Arguments& arguments) {
  PickledTensor tensor{argument<PickledStorage>(arguments, 0, "a storage"),
                       argument<int64_t>(arguments, 1, "an offset"), integers(arguments, 2, "sizes"),
                       integers(arguments, 3, "strides")};
  return tensor;
}

PickledValue rebuilt_tensor(const Arguments& arguments) {
  PickledTensor tensor = tensor_of(arguments);
  require_inside(tensor);
  return {std::move(tensor)};
}

// Of a storage without a dtype: (storage, offset, sizes, strides, requires_grad, hooks, dtype, metadata).
PickledValue rebuilt_tensor_of_dtype(const Arguments& arguments) {
  PickledTensor tensor = tensor_of(arguments);
  const std::string& name = argument<PickledGlobal>(arguments, 6, "a dtype").name;
  const auto dtype = dtype_of_global(name);
  if (!dtype) refuse("'" + name + "' is no dtype that tutti reads");
  tensor.storage.numbers = tensor.storage.numbers *
                           static_cast<int64_t>(c10::elementSize(tensor.storage.dtype)) /
                           static_cast<int64_t>(c10::elementSize(*dtype));
  tensor.storage.dtype = *dtype;
  require_inside(tensor);
  return {std::move(tensor)};
}

PickledValue parameter_of(const Arguments& arguments) {
  return {argument<PickledTensor>(arguments, 0, "a tensor")};
}

// An OrderedDict is mostly made empty, and filled later; or from a list of pairs.
PickledValue ordered_dict(const Arguments& arguments) {
  PickledDict dict;
  if (arguments.empty()) return {std::move(dict)};
  for (const PickledValue* pair : argument<PickledList>(arguments, 0, "a list of pairs").values) {
    const auto* two = std::get_if<PickledList>(&pair->value);
    if (!two || two->values.size() != 2) refuse("an OrderedDict of what are no pairs");
    dict.entries.emplace_back(two->values[0], two->values[1]);
  }
  return {std::move(dict)};
}

PickledValue size_of(const Arguments& arguments) { return {argument<PickledList>(arguments, 0, "sizes")}; }

// Beside weights there may be scalars of numpy, and arrays: no weights need them.
PickledValue unread(const Arguments&) { return {}; }

using Function = PickledValue (*)(const Arguments&);
const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all{
      {"collections.OrderedDict", ordered_dict},
      {"torch._utils._rebuild_tensor", rebuilt_tensor},
      {"torch._utils._rebuild_tensor_v2", rebuilt_tensor},
      {"torch._utils._rebuild_tensor_v3", rebuilt_tensor_of_dtype},
      {"torch._utils._rebuild_parameter", parameter_of},
      {"torch._utils._rebuild_parameter_with_state", parameter_of},
      {"torch.Size", size_of},
      {"torch.device", unread},
      {"numpy.core.multiarray.scalar", unread},
      {"numpy._core.multiarray.scalar", unread},
      {"numpy.core.multiarray._reconstruct", unread},
      {"numpy._core.multiarray._reconstruct", unread},
      {"numpy.ndarray", unread},
      {"numpy.dtype", unread},
      {"_codecs.encode", unread}};
  return all;
}

bool is_of_state_dict(const std::string& global) {
  return functions().contains(global) || dtype_of_storage(global) || dtype_of_global(global);
}

PickledValue called_by_state_dict(const std::string& global, const Arguments& arguments) {
  const auto function = functions().find(global);
  if (function == functions().end()) refuse("it cannot be called");
  return function->second(arguments);
}

}  // namespace

const PickledObjects kObjectsOfStateDicts{
    is_of_state_dict, called_by_state_dict,
    "which no state dict needs; tutti runs none of it: torch.save the state_dict() alone"};

PickledValue storage_of(const PickledValue& id) {
  const auto* parts = std::get_if<PickledList>(&id.value);
  if (!parts) refuse("a persistent id is no tuple");
  const std::string& kind = argument<std::string>(parts->values, 0, "'storage'");
  const std::string& type = argument<PickledGlobal>(parts->values, 1, "a storage's type").name;
  const auto dtype = dtype_of_storage(type);
  if (kind != "storage" || !dtype) refuse("a persistent id is no storage's");
  PickledStorage storage{argument<std::string>(parts->values, 2, "a storage's key"), *dtype,
                         argument<int64_t>(parts->values, 4, "a storage's size")};
  int64_t bytes = 0;
  if (storage.numbers < 0 ||
      __builtin_mul_overflow(storage.numbers, static_cast<int64_t>(c10::elementSize(*dtype)), &bytes))
    refuse("a storage of " + std::to_string(storage.numbers) + " numbers");
  return {std::move(storage)};
}

}  // namespace tutti

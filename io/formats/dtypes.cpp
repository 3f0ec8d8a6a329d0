#include "io/formats/dtypes.h"

#include <algorithm>
#include <limits>

#include "runtime/error.h"

namespace tutti {
namespace {

struct Row {
  at::ScalarType dtype;
  const char* name;
  const char* safetensors;
};

constexpr Row kRows[] = {
    {at::kFloat, "float32", "F32"},      {at::kDouble, "float64", "F64"}, {at::kHalf, "float16", "F16"},
    {at::kBFloat16, "bfloat16", "BF16"}, {at::kLong, "int64", "I64"},     {at::kInt, "int32", "I32"},
    {at::kShort, "int16", "I16"},        {at::kChar, "int8", "I8"},       {at::kByte, "uint8", "U8"},
    {at::kUInt16, "uint16", "U16"},      {at::kUInt32, "uint32", "U32"},  {at::kUInt64, "uint64", "U64"},
    {at::kBool, "bool", "BOOL"},
};

const Row& row_of(at::ScalarType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row;
  }
  TUTTI_ASSERT(false, std::string("no file holds ") + c10::toString(dtype));
}

}  // namespace

std::string dtype_name(at::ScalarType dtype) { return row_of(dtype).name; }

std::string safetensors_name(at::ScalarType dtype) { return row_of(dtype).safetensors; }

std::optional<at::ScalarType> dtype_of_name(const std::string& name) {
  for (const Row& row : kRows) {
    if (name == row.name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<at::ScalarType> dtype_of_safetensors(const std::string& name) {
  for (const Row& row : kRows) {
    if (name == row.safetensors) return row.dtype;
  }
  return std::nullopt;
}

std::optional<uint64_t> contiguous_bytes(const Shape& shape, at::ScalarType dtype) {
  uint64_t product = c10::elementSize(dtype);
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size > 0 && __builtin_mul_overflow(product, static_cast<uint64_t>(size), &product))
      return std::nullopt;
  }
  if (std::ranges::count(shape, 0) > 0) return 0;
  return product <= uint64_t{std::numeric_limits<int64_t>::max()} ? std::optional(product) : std::nullopt;
}

}  // namespace tutti

#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tensors/param_view.h"

namespace tutti {

// Names of dtypes in torch ("float32") and in safetensors ("F32"), for all dtypes that files may have.
std::string dtype_name(at::ScalarType dtype);  // asserts that the dtype has a name
std::string safetensors_name(at::ScalarType dtype);
std::optional<at::ScalarType> dtype_of_name(const std::string& name);
std::optional<at::ScalarType> dtype_of_safetensors(const std::string& name);

// Bytes of a contiguous tensor; nullopt if a size is negative, or the sizes other than 0 overflow.
std::optional<uint64_t> contiguous_bytes(const Shape& shape, at::ScalarType dtype);

}  // namespace tutti

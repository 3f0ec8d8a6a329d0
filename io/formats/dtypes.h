#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace tutti {

// The dtypes that files may hold, by the names that torch ("float32") and safetensors ("F32") give them.
std::string dtype_name(at::ScalarType dtype);  // asserts that files may hold it
std::string safetensors_name(at::ScalarType dtype);
std::optional<at::ScalarType> dtype_of_name(const std::string& name);
std::optional<at::ScalarType> dtype_of_safetensors(const std::string& name);

}  // namespace tutti

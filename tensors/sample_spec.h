#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tensors/param_view.h"

namespace tutti {

// What one sample of a dataset looks like; a model is built to fit it.
struct SampleSpec {
  std::map<std::string, Shape> shapes = {};  // per array, without the sample dimension: "input" -> {1, 8, 8}
  int64_t classes = 0;                       // integer targets and tokens lie below it; 0 = unknown
  std::map<std::string, at::ScalarType> dtypes = {};  // per array; one that is missing is unknown

  // "uint8 [28, 28]", "int64 number"; the array must be there.
  std::string describe(const std::string& array) const;
};

// "[1, 8, 8]"
std::string shape_text(at::IntArrayRef shape);

}  // namespace tutti

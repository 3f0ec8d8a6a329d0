#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tensors/param_view.h"

namespace tutti {

// What one sample of a dataset looks like; a model is built to fit it.
struct SampleSpec {
  std::map<std::string, Shape> shapes;  // per array, without the sample dimension: "input" -> {1, 8, 8}
  int64_t classes = 0;                  // of integer targets; 0 = unknown
};

}  // namespace tutti

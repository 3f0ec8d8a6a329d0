#include "tensors/sample_spec.h"

#include <c10/core/ScalarType.h>

namespace tutti {

std::string SampleSpec::describe(const std::string& array) const {
  const auto dtype = dtypes.find(array);
  const std::string type = dtype == dtypes.end() ? "" : c10::getDtypeNames(dtype->second).first + ' ';
  const Shape& shape = shapes.at(array);
  return type + (shape.empty() ? "number" : shape_text(shape));
}

std::string shape_text(at::IntArrayRef shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

}  // namespace tutti

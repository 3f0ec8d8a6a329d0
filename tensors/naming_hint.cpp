#include "tensors/naming_hint.h"

namespace tutti {

std::string naming_hint(const SampleSpec& samples, const std::string& array) {
  std::string text, input, target;
  for (const auto& [name, shape] : samples.shapes) {
    text += (text.empty() ? "; it has '" : ", '") + name + "' (" + samples.describe(name) + " a sample)";
    (shape.empty() ? target : input) = name;
  }
  const bool known = samples.shapes.size() == 2 && !input.empty() && !target.empty();
  if (text.empty()) return text;
  return text + ". data.train.arrays = { " +
         (known ? "input = \"" + input + "\", target = \"" + target + "\"" : array + " = \"...\"") +
         " } names arrays of an HDF5 file for the model";
}

}  // namespace tutti

#include "models/zoo/sample_check.h"

#include <algorithm>
#include <string>

namespace tutti {
namespace {

const Shape& shape_of(const Setting& section, const SampleSpec& samples, const std::string& array) {
  const auto found = samples.shapes.find(array);
  if (found == samples.shapes.end())
    section.at("kind").fail("the data has no array '" + array + "', which this model reads");
  return found->second;
}

[[noreturn]] void refuse(const Setting& section, const SampleSpec& samples, const std::string& array,
                         const std::string& expected) {
  section.at("kind").fail("expected '" + array + "' as " + expected + "; the data's is " +
                          samples.describe(array) + " a sample");
}

bool is_of(const SampleSpec& samples, const std::string& array, at::ScalarType dtype) {
  const auto found = samples.dtypes.find(array);
  return found == samples.dtypes.end() || found->second == dtype;
}

}  // namespace

const Shape& value_input(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = shape_of(section, samples, "input");
  if (!is_of(samples, "input", at::kFloat)) refuse(section, samples, "input", "float32");
  const bool hollow = std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; });
  if (shape.empty() || hollow) refuse(section, samples, "input", "an array with a value in it");
  return shape;
}

int64_t token_sequence(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = shape_of(section, samples, "input");
  if (shape.size() != 1 || shape[0] < 1 || !is_of(samples, "input", at::kLong))
    refuse(section, samples, "input", "a sequence of int64 tokens");
  if (shape_of(section, samples, "target") != shape || !is_of(samples, "target", at::kLong))
    refuse(section, samples, "target", "int64 tokens " + shape_text(shape) + ", one for each of 'input'");
  return shape[0];
}

void require_class_target(const Setting& section, const SampleSpec& samples) {
  if (!shape_of(section, samples, "target").empty() || !is_of(samples, "target", at::kLong))
    refuse(section, samples, "target", "a class index (an integer) a sample");
}

}  // namespace tutti

#include "models/zoo/sample_checks.h"

#include <algorithm>

#include "tensors/tree.h"

namespace tutti {
namespace {

bool may_be_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

// Advice on converting an "input" of bytes to float32. The file may have another dimension order: without a
// layout, the data's transforms have turned planes to [height, width, channels].
std::string bytes_hint(const Shape& shape) {
  constexpr int64_t kMostChannels = 4;
  constexpr const char* kToTensor = "[[data.train.transforms]] with to_tensor makes float32 of it";
  if (shape.size() == 2) return std::string("; ") + kToTensor;
  if (shape.size() != 3) return "; data.train.scale makes float32 of it";
  const bool ends_in_channels = shape[2] <= kMostChannels;
  if (!ends_in_channels && shape[0] > kMostChannels) return "";
  return std::string("; data.train.layout = ") +
         (ends_in_channels ? "\"NHWC\" (\"NCHW\" if the file has [channels, height, width])" : "\"NCHW\"") +
         ", with data.train.mean and std where you want them, makes float32 [channels, height, width] of "
         "images, and " +
         kToTensor + " too";
}

}  // namespace

const Shape& shape_of(const Setting& section, const SampleSpec& samples, const std::string& array) {
  const auto shape = samples.shapes.find(array);
  if (shape == samples.shapes.end())
    section.at("kind").fail("the data has no array '" + array + "', which this model reads" +
                            naming_hint(samples, array));
  return shape->second;
}

[[noreturn]] void refuse(const Setting& section, const SampleSpec& samples, const std::string& array,
                         const std::string& expected, const std::string& hint) {
  section.at("kind").fail("expected '" + array + "' as " + expected + "; the data's is " +
                          samples.describe(array) + " a sample" + hint);
}

bool has_dtype(const SampleSpec& samples, const std::string& array, at::ScalarType dtype) {
  const auto own = samples.dtypes.find(array);
  return own == samples.dtypes.end() || own->second == dtype;
}

const Shape& value_input(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = shape_of(section, samples, "input");
  if (!has_dtype(samples, "input", at::kFloat))
    refuse(section, samples, "input", "float32",
           samples.dtypes.at("input") == at::kByte ? bytes_hint(shape) : "");
  const bool empty = std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; });
  if (shape.empty() || empty) refuse(section, samples, "input", "an array with at least one value");
  return shape;
}

const Shape& token_sequence(const Setting& section, const SampleSpec& samples, const std::string& array) {
  const Shape& shape = shape_of(section, samples, array);
  if (shape.size() != 1 || shape[0] < 1 || !has_dtype(samples, array, at::kLong))
    refuse(section, samples, array, "a sequence of int64 tokens");
  return shape;
}

void require_one_a_token(const Setting& section, const SampleSpec& samples, const std::string& array,
                         const std::string& tokens) {
  const Shape& shape = token_sequence(section, samples, tokens);
  if (shape_of(section, samples, array) != shape || !has_dtype(samples, array, at::kLong))
    refuse(section, samples, array,
           "int64 tokens " + shape_text(shape) + ", one for each of '" + tokens + "'");
}

void require_vocabulary(const Setting& section, const SampleSpec& samples) {
  if (samples.classes > section.at("vocab_size").integer())
    section.at("vocab_size")
        .fail("expected at least " + std::to_string(samples.classes) + ": the data has tokens up to " +
              std::to_string(samples.classes - 1));
}

int64_t positive(const Setting& key) {
  if (key.integer() < 1) key.fail("expected an integer >= 1");
  return key.integer();
}

int64_t agreed_size(const Setting& section, const char* key, int64_t in_data, const std::string& what) {
  if (!section.has(key)) return in_data;
  const int64_t given = positive(section.at(key));
  if (given != in_data)
    section.at(key).fail("expected " + std::to_string(in_data) + ": the data has " + std::to_string(in_data) +
                         " " + what);
  return given;
}

int64_t num_classes(const Setting& section, const SampleSpec& samples) {
  if (!section.has("num_classes")) {
    if (samples.classes > 0) return samples.classes;
    section.fail("num_classes is needed: the data has no number of classes");
  }
  const int64_t given = positive(section.at("num_classes"));
  if (samples.classes > given)
    section.at("num_classes")
        .fail("expected at least " + std::to_string(samples.classes) + ": the data has targets up to " +
              std::to_string(samples.classes - 1));
  return given;
}

int64_t value_count(const Setting& section, const Shape& shape) {
  int64_t values = 1;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(values, size, &values))
      section.at("kind").fail("the data's 'input' is too large: " + shape_text(shape) + " a sample");
  return values;
}

int64_t image_channels(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = value_input(section, samples);
  if (shape.size() != 3)
    section.at("kind").fail("expected images [channels, height, width]; the data's 'input' is " +
                            shape_text(shape));
  const bool square = shape[0] == shape[1];
  if (!section.has("in_channels") && square && may_be_channels(shape[2]) && !may_be_channels(shape[0]))
    section.at("kind").fail("the data's 'input' is " + shape_text(shape) +
                            " a sample, which looks like [height, width, channels]; data.train.layout = "
                            "\"NHWC\" if so, else model.in_channels = " +
                            std::to_string(shape[0]));
  return agreed_size(section, "in_channels", shape[0], "channels an image");
}

void require_heads(const Setting& heads, int64_t features, const char* width) {
  if (features % heads.integer() != 0)
    heads.fail("expected a divisor of " + std::string(width) + ", " + std::to_string(features));
}

}  // namespace tutti

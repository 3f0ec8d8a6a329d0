#include "models/zoo/factory.h"

#include <algorithm>
#include <string>

#include "models/zoo/gpt.h"
#include "models/zoo/mlp.h"
#include "models/zoo/resnet.h"
#include "models/zoo/resnet_cifar.h"
#include "tensors/torch_error.h"

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

bool has_dtype(const SampleSpec& samples, const std::string& array, at::ScalarType dtype) {
  const auto found = samples.dtypes.find(array);
  return found == samples.dtypes.end() || found->second == dtype;
}

// Requires "input" to be float32 with at least one value per sample; returns its shape.
const Shape& value_input(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = shape_of(section, samples, "input");
  if (!has_dtype(samples, "input", at::kFloat)) refuse(section, samples, "input", "float32");
  const bool empty = std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; });
  if (shape.empty() || empty) refuse(section, samples, "input", "an array with at least one value");
  return shape;
}

// Requires "input" and "target" to be int64 token sequences of one length; returns the length.
int64_t token_sequence(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = shape_of(section, samples, "input");
  if (shape.size() != 1 || shape[0] < 1 || !has_dtype(samples, "input", at::kLong))
    refuse(section, samples, "input", "a sequence of int64 tokens");
  if (shape_of(section, samples, "target") != shape || !has_dtype(samples, "target", at::kLong))
    refuse(section, samples, "target", "int64 tokens " + shape_text(shape) + ", one for each of 'input'");
  return shape[0];
}

// Requires "target" to be an int64 class index.
void require_class_target(const Setting& section, const SampleSpec& samples) {
  if (!shape_of(section, samples, "target").empty() || !has_dtype(samples, "target", at::kLong))
    refuse(section, samples, "target", "a class index (an integer) a sample");
}

int64_t positive(const Setting& key) {
  if (key.integer() < 1) key.fail("expected an integer >= 1");
  return key.integer();
}

// The value in the recipe, which must equal the value in the data; the latter if the key is absent.
int64_t agreed_size(const Setting& section, const char* key, int64_t in_data, const std::string& what) {
  if (!section.has(key)) return in_data;
  const int64_t given = positive(section.at(key));
  if (given != in_data) section.at(key).fail("the data has " + std::to_string(in_data) + " " + what);
  return given;
}

int64_t num_classes(const Setting& section, const SampleSpec& samples) {
  if (!section.has("num_classes")) {
    if (samples.classes > 0) return samples.classes;
    section.fail("num_classes is needed: the data has no number of classes");
  }
  const int64_t given = positive(section.at("num_classes"));
  if (samples.classes > given)
    section.at("num_classes").fail("the data has targets up to " + std::to_string(samples.classes - 1));
  return given;
}

// Numbers in a sample.
int64_t value_count(const Setting& section, const Shape& shape) {
  int64_t values = 1;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(values, size, &values))
      section.at("kind").fail("the data's 'input' is too large: " + shape_text(shape) + " a sample");
  return values;
}

std::shared_ptr<Model> make_mlp(const Setting& section, const SampleSpec& samples) {
  const int64_t values = value_count(section, value_input(section, samples));
  require_class_target(section, samples);
  MlpOptions options{.in_features = agreed_size(section, "in_features", values, "values a sample"),
                     .hidden = section.at("hidden").integers(),
                     .num_classes = num_classes(section, samples),
                     .activation = section.at("activation").text()};
  for (const int64_t width : options.hidden)
    if (width < 1) section.at("hidden").fail("expected widths >= 1");
  return std::make_shared<Mlp>(options);
}

// Requires "input" to be images of float32 and "target" a class; returns the number of channels.
int64_t image_channels(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = value_input(section, samples);
  if (shape.size() != 3)
    section.at("kind").fail("expected images [channels, height, width]; the data's 'input' is " +
                            shape_text(shape));
  require_class_target(section, samples);
  return agreed_size(section, "in_channels", shape[0], "channels an image");
}

std::shared_ptr<Model> make_resnet(const Setting& section, const SampleSpec& samples) {
  const int64_t in_channels = image_channels(section, samples);
  const int64_t depth = section.at("depth").integer();
  if (!ResNet::has_depth(depth)) section.at("depth").fail("expected 18, 34, 50 or 101");
  return std::make_shared<ResNet>(ResNetOptions{.depth = depth,
                                                .width = positive(section.at("width")),
                                                .in_channels = in_channels,
                                                .num_classes = num_classes(section, samples)});
}

std::shared_ptr<Model> make_resnet_cifar(const Setting& section, const SampleSpec& samples) {
  const int64_t in_channels = image_channels(section, samples);
  const int64_t depth = section.at("depth").integer();
  if (depth < 8 || depth % 6 != 2) section.at("depth").fail("expected 6 n + 2: 20, 32, 56, ...");
  return std::make_shared<ResNetCifar>(ResNetCifarOptions{.depth = depth,
                                                          .width = positive(section.at("width")),
                                                          .in_channels = in_channels,
                                                          .num_classes = num_classes(section, samples)});
}

std::shared_ptr<Model> make_sequential(const Setting& section, const SampleSpec& samples) {
  const Shape& sample = value_input(section, samples);
  require_class_target(section, samples);
  const Setting& layers = section.at("layers");
  std::shared_ptr<SequentialNet> net;
  Shape scores;
  try {
    net = std::make_shared<SequentialNet>(layers.texts());
    scores = SequentialNet::output_shape(layers.texts(), sample);
  } catch (const std::exception& error) {
    layers.fail(one_line(error));
  }
  if (scores.size() != 1)
    layers.fail("they end in " + shape_text(scores) + " a sample, not in scores of classes");
  if (samples.classes > scores[0])
    layers.fail("they end in " + std::to_string(scores[0]) + " scores a sample; the data has targets up to " +
                std::to_string(samples.classes - 1));
  return net;
}

void check_gpt(const Setting& section, const GptOptions& options, const SampleSpec& samples) {
  const int64_t length = token_sequence(section, samples);
  if (length > options.n_positions)
    section.at("n_positions").fail("the data has sequences of " + std::to_string(length) + " tokens");
  if (samples.classes > options.vocab_size)
    section.at("vocab_size").fail("the data has tokens up to " + std::to_string(samples.classes - 1));
  if (options.n_embd % options.n_head != 0)
    section.at("n_head").fail("expected a divisor of n_embd, " + std::to_string(options.n_embd));
}

std::shared_ptr<Model> make_gpt(const Setting& section, const SampleSpec& samples) {
  const GptOptions options{.vocab_size = positive(section.at("vocab_size")),
                           .n_positions = positive(section.at("n_positions")),
                           .n_embd = positive(section.at("n_embd")),
                           .n_layer = positive(section.at("n_layer")),
                           .n_head = positive(section.at("n_head")),
                           .dropout = section.at("dropout").number()};
  check_gpt(section, options, samples);
  return std::make_shared<Gpt>(options);
}

}  // namespace

std::shared_ptr<Model> make_model(const Setting& section, const SampleSpec& samples) {
  const Setting& kind = section.at("kind");
  if (kind.text() == "mlp") return make_mlp(section, samples);
  if (kind.text() == "resnet") return make_resnet(section, samples);
  if (kind.text() == "resnet_cifar") return make_resnet_cifar(section, samples);
  if (kind.text() == "gpt") return make_gpt(section, samples);
  if (kind.text() == "sequential") return make_sequential(section, samples);
  if (kind.text() == "program") kind.fail("the program that reads the recipe brings no model");
  kind.fail("there is no such model");
}

}  // namespace tutti

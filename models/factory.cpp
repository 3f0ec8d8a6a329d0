#include "models/factory.h"

#include <functional>
#include <numeric>

#include "models/gpt.h"
#include "models/mlp.h"
#include "models/resnet_cifar.h"

namespace tutti {
namespace {

std::string text_of(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

const Shape& input_shape(const Setting& section, const SampleSpec& samples) {
  const auto found = samples.shapes.find("input");
  if (found == samples.shapes.end()) section.fail("the data has no array 'input', which this model reads");
  return found->second;
}

int64_t positive(const Setting& key) {
  if (key.integer() < 1) key.fail("expected an integer >= 1");
  return key.integer();
}

// The recipe's value where it has one, which then must be the data's; else the data's.
int64_t agreed(const Setting& section, const char* key, int64_t in_data, const std::string& what) {
  if (!section.has(key)) return in_data;
  const int64_t wanted = positive(section.at(key));
  if (wanted != in_data) section.at(key).fail("the data has " + std::to_string(in_data) + " " + what);
  return wanted;
}

int64_t num_classes(const Setting& section, const SampleSpec& samples) {
  if (!section.has("num_classes")) {
    if (samples.classes > 0) return samples.classes;
    section.fail("num_classes is needed: the data does not say how many classes it has");
  }
  const int64_t wanted = positive(section.at("num_classes"));
  if (samples.classes > wanted)
    section.at("num_classes").fail("the data has targets up to " + std::to_string(samples.classes - 1));
  return wanted;
}

std::shared_ptr<Model> make_mlp(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = input_shape(section, samples);
  const int64_t values = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  MlpOptions options{.in_features = agreed(section, "in_features", values, "values a sample"),
                     .hidden = section.at("hidden").integers(),
                     .num_classes = num_classes(section, samples),
                     .activation = section.at("activation").text()};
  for (const int64_t width : options.hidden)
    if (width < 1) section.at("hidden").fail("expected widths >= 1");
  return std::make_shared<Mlp>(options);
}

std::shared_ptr<Model> make_resnet_cifar(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = input_shape(section, samples);
  if (shape.size() != 3)
    section.fail("expected images [channels, height, width]; the data's 'input' is " + text_of(shape));
  const int64_t depth = section.at("depth").integer();
  if (depth < 8 || depth % 6 != 2) section.at("depth").fail("expected 6 n + 2: 20, 32, 56, ...");
  return std::make_shared<ResNetCifar>(
      ResNetCifarOptions{.depth = depth,
                         .width = positive(section.at("width")),
                         .in_channels = agreed(section, "in_channels", shape[0], "channels an image"),
                         .num_classes = num_classes(section, samples)});
}

void check_gpt(const Setting& section, const GptOptions& options, const SampleSpec& samples) {
  const Shape& shape = input_shape(section, samples);
  if (shape.size() != 1)
    section.fail("expected token sequences; the data's 'input' is " + text_of(shape) + " a sample");
  if (shape[0] > options.n_positions)
    section.at("n_positions").fail("the data has sequences of " + std::to_string(shape[0]) + " tokens");
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
  if (kind.text() == "resnet_cifar") return make_resnet_cifar(section, samples);
  if (kind.text() == "gpt") return make_gpt(section, samples);
  kind.fail("there is no such model");
}

}  // namespace tutti

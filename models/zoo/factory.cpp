#include "models/zoo/factory.h"

#include <algorithm>
#include <string>

#include "models/layers/attention.h"
#include "models/layers/bert_blocks.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/mlp.h"
#include "models/zoo/resnet.h"
#include "models/zoo/resnet_cifar.h"
#include "tensors/naming_hint.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

const Shape& shape_of(const Setting& section, const SampleSpec& samples, const std::string& array) {
  const auto found = samples.shapes.find(array);
  if (found == samples.shapes.end())
    section.at("kind").fail("the data has no array '" + array + "', which this model reads" +
                            naming_hint(samples, array));
  return found->second;
}

bool may_be_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

// What makes float32 of an "input" of bytes. The order of images in the file may be another one: without a
// layout, the data's transforms have planes turned to [height, width, channels].
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

[[noreturn]] void refuse(const Setting& section, const SampleSpec& samples, const std::string& array,
                         const std::string& expected, const std::string& hint = "") {
  section.at("kind").fail("expected '" + array + "' as " + expected + "; the data's is " +
                          samples.describe(array) + " a sample" + hint);
}

bool has_dtype(const SampleSpec& samples, const std::string& array, at::ScalarType dtype) {
  const auto found = samples.dtypes.find(array);
  return found == samples.dtypes.end() || found->second == dtype;
}

// Requires "input" to be float32 with at least one value per sample; returns its shape.
const Shape& value_input(const Setting& section, const SampleSpec& samples) {
  const Shape& shape = shape_of(section, samples, "input");
  if (!has_dtype(samples, "input", at::kFloat))
    refuse(section, samples, "input", "float32",
           samples.dtypes.at("input") == at::kByte ? bytes_hint(shape) : "");
  const bool empty = std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 1; });
  if (shape.empty() || empty) refuse(section, samples, "input", "an array with at least one value");
  return shape;
}

// Requires an array of int64 tokens, a sequence a sample; returns its shape.
const Shape& token_sequence(const Setting& section, const SampleSpec& samples, const std::string& array) {
  const Shape& shape = shape_of(section, samples, array);
  if (shape.size() != 1 || shape[0] < 1 || !has_dtype(samples, array, at::kLong))
    refuse(section, samples, array, "a sequence of int64 tokens");
  return shape;
}

// Requires `array` to have a number for each token of `tokens`.
void require_one_a_token(const Setting& section, const SampleSpec& samples, const std::string& array,
                         const std::string& tokens) {
  const Shape& shape = token_sequence(section, samples, tokens);
  if (shape_of(section, samples, array) != shape || !has_dtype(samples, array, at::kLong))
    refuse(section, samples, array,
           "int64 tokens " + shape_text(shape) + ", one for each of '" + tokens + "'");
}

// Requires an int64 class index.
void require_class(const Setting& section, const SampleSpec& samples, const std::string& array) {
  if (!shape_of(section, samples, array).empty() || !has_dtype(samples, array, at::kLong))
    refuse(section, samples, array, "a class index (an integer) a sample");
}

void require_class_target(const Setting& section, const SampleSpec& samples) {
  require_class(section, samples, "target");
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

// The value in the recipe, which must equal the value in the data; the latter if the key is absent.
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
  const bool square = shape[0] == shape[1];
  if (!section.has("in_channels") && square && may_be_channels(shape[2]) && !may_be_channels(shape[0]))
    section.at("kind").fail("the data's 'input' is " + shape_text(shape) +
                            " a sample, which looks like [height, width, channels]; data.train.layout = "
                            "\"NHWC\" if so, else model.in_channels = " +
                            std::to_string(shape[0]));
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

void require_heads(const Setting& heads, int64_t features, const char* width) {
  if (features % heads.integer() != 0)
    heads.fail("expected a divisor of " + std::string(width) + ", " + std::to_string(features));
}

std::shared_ptr<Model> make_gpt(const Setting& section, const SampleSpec& samples) {
  const GptOptions options{.vocab_size = positive(section.at("vocab_size")),
                           .n_positions = positive(section.at("n_positions")),
                           .n_embd = positive(section.at("n_embd")),
                           .n_layer = positive(section.at("n_layer")),
                           .n_head = positive(section.at("n_head")),
                           .dropout = section.at("dropout").number()};
  require_one_a_token(section, samples, "target", "input");
  require_vocabulary(section, samples);
  require_heads(section.at("n_head"), options.n_embd, "n_embd");
  return std::make_shared<Gpt>(options);
}

// The name of an array by transformers, or else tutti's.
std::string present(const SampleSpec& samples, const char* name, const char* other) {
  return samples.shapes.count(name) ? name : other;
}

// Requires tokens and, where they are, "attention_mask" and "token_type_ids" of the same shape; returns the
// name of the tokens.
std::string bert_tokens(const Setting& section, const SampleSpec& samples) {
  const std::string tokens = present(samples, "input_ids", "input");
  const Shape& shape = token_sequence(section, samples, tokens);
  for (const char* array : {"attention_mask", "token_type_ids"})
    if (samples.shapes.count(array) && samples.shapes.at(array) != shape)
      refuse(section, samples, array, shape_text(shape) + ", as '" + tokens + "'");
  return tokens;
}

BertOptions bert_options(const Setting& section) {
  const BertOptions options{
      .vocab_size = positive(section.at("vocab_size")),
      .hidden_size = positive(section.at("hidden_size")),
      .num_hidden_layers = positive(section.at("num_hidden_layers")),
      .num_attention_heads = positive(section.at("num_attention_heads")),
      .intermediate_size = positive(section.at("intermediate_size")),
      .hidden_act = section.at("hidden_act").text(),
      .hidden_dropout_prob = section.at("hidden_dropout_prob").number(),
      .attention_probs_dropout_prob = section.at("attention_probs_dropout_prob").number(),
      .max_position_embeddings = positive(section.at("max_position_embeddings")),
      .type_vocab_size = positive(section.at("type_vocab_size")),
      .initializer_range = section.at("initializer_range").number(),
      .layer_norm_eps = section.at("layer_norm_eps").number(),
      .pad_token_id = section.at("pad_token_id").integer()};
  require_heads(section.at("num_attention_heads"), options.hidden_size, "hidden_size");
  if (options.pad_token_id < 0 || options.pad_token_id >= options.vocab_size)
    section.at("pad_token_id")
        .fail("expected a token below vocab_size, in [0, " + std::to_string(options.vocab_size) + ')');
  return options;
}

std::shared_ptr<Model> make_bert_mlm(const Setting& section, const SampleSpec& samples) {
  require_one_a_token(section, samples, present(samples, "labels", "target"), bert_tokens(section, samples));
  const BertOptions options = bert_options(section);
  require_vocabulary(section, samples);
  return std::make_shared<BertForMaskedLm>(options);
}

std::shared_ptr<Model> make_bert_classification(const Setting& section, const SampleSpec& samples) {
  const bool counts_labels = bert_tokens(section, samples) != "input";  // the classes of "input" are tokens
  require_class(section, samples, present(samples, "labels", "target"));
  const BertOptions options = bert_options(section);
  const double dropout = section.has("classifier_dropout") ? section.at("classifier_dropout").number()
                                                           : options.hidden_dropout_prob;
  const int64_t classes = counts_labels ? num_classes(section, samples) : positive(section.at("num_classes"));
  return std::make_shared<BertForSequenceClassification>(options, classes, dropout);
}

}  // namespace

std::shared_ptr<Model> make_model(const Setting& section, const SampleSpec& samples) {
  const Setting& kind = section.at("kind");
  if (kind.text() == "mlp") return make_mlp(section, samples);
  if (kind.text() == "resnet") return make_resnet(section, samples);
  if (kind.text() == "resnet_cifar") return make_resnet_cifar(section, samples);
  if (kind.text() == "gpt") return make_gpt(section, samples);
  if (kind.text() == "bert_mlm") return make_bert_mlm(section, samples);
  if (kind.text() == "bert_classification") return make_bert_classification(section, samples);
  if (kind.text() == "sequential") return make_sequential(section, samples);
  if (kind.text() == "program") kind.fail("the program that reads the recipe brings no model");
  kind.fail("there is no such model");
}

int64_t overlong_sequences(Layer& model, const SampleSpec& samples) {
  const int64_t longest = longest_sequence(model);
  for (const char* array : {"input_ids", "input"}) {
    const auto found = samples.shapes.find(array);
    const bool tokens =
        found != samples.shapes.end() && found->second.size() == 1 && has_dtype(samples, array, at::kLong);
    if (longest > 0 && tokens && found->second[0] > longest) return found->second[0];
  }
  return 0;
}

void require_positions(const Setting& section, Layer& model, const SampleSpec& samples) {
  const int64_t found = overlong_sequences(model, samples), longest = longest_sequence(model);
  if (found == 0) return;
  const std::string length = std::to_string(found);
  for (const char* key : {"n_positions", "max_position_embeddings"})
    if (section.has(key) && section.at(key).integer() == longest)
      section.at(key).fail("expected at least " + length + ": the data has sequences of " + length +
                           " tokens");
  section.at("kind").fail("the data has sequences of " + length + " tokens; the model takes at most " +
                          std::to_string(longest));
}

}  // namespace tutti

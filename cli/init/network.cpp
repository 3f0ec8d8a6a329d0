#include "cli/init/network.h"

#include <algorithm>
#include <functional>

#include "recipe/catalog.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"

namespace tutti {
namespace {

constexpr int64_t kSmallestImage = 16, kLargestSmallImage = 96;

// A network of convolutions takes images with channels.
const ImageSamples* convolved(const Proposal& data) {
  const auto* images = samples_of<ImageSamples>(data);
  return images && images->have_channels && std::min(images->height, images->width) >= kSmallestImage
             ? images
             : nullptr;
}

RecipeLine number(const char* key, int64_t value, const char* comment = "") {
  return {key, std::to_string(value), comment};
}

Network mlp(const Proposal&) {
  return {.model = {{"kind", "\"mlp\"", "fully connected layers; inputs and classes come from the data"},
                    {"hidden", "[128, 64]", "widths of the hidden layers"}}};
}

Network resnet(int64_t depth) {
  return {.model = {{"kind", "\"resnet\"", "for large images; channels and classes come from the data"},
                    number("depth", depth, "layers: 18, 34, 50, 101 or 152")},
          .has_momentum = true};
}

Network resnet_cifar(int64_t depth) {
  return {.model = {{"kind", "\"resnet_cifar\"", "for small images; channels and classes come from the data"},
                    number("depth", depth, "layers: 20, 32, 44, 56 or 110")},
          .has_momentum = true};
}

Network unet(const Proposal&) {
  return {.model = {{"kind", "\"unet\"", "a class for each pixel; channels and classes come from the data"},
                    {"encoder_name", "\"resnet18\"", "edges of images are multiples of 32"}}};
}

ImageTargets targets_of(const Proposal& data) {
  const auto* images = samples_of<ImageSamples>(data);
  return images ? images->targets : ImageTargets::kClass;
}

// A divisor of the images' sides that leaves some 200 patches of large images, and 50 of small ones.
int64_t patch_size(const ImageSamples& images) {
  constexpr int64_t kUsual = 16, kPatchesASide = 8;
  int64_t patch =
      images.height > kLargestSmallImage ? kUsual : std::max<int64_t>(1, images.height / kPatchesASide);
  while (images.height % patch != 0) --patch;
  return patch;
}

Network vit(const Proposal& data, int64_t layers, int64_t heads, int64_t width) {
  const auto* images = convolved(data);
  return {.model = {{"kind", "\"vit\"", "a vision transformer; channels and classes come from the data"},
                    number("patch_size", patch_size(*images), "pixels; divides the images' size"),
                    number("num_layers", layers, "blocks; ViT-B has 12"),
                    number("num_heads", heads, "attention heads; they divide hidden_dim"),
                    number("hidden_dim", width, "width; ViT-B has 768"),
                    number("mlp_dim", 4 * width, "width of the feed-forward blocks")},
          .no_decay = {"*.bias", "*ln*", "class_token", "encoder.pos_embedding"}};
}

void add_vocabulary(RecipeLines& lines, int64_t vocabulary) {
  if (vocabulary > 0) lines.push_back(number("vocab_size", vocabulary, "tokens of the data are below"));
}

Network gpt(const TokenSamples& samples, int64_t layers, int64_t heads, int64_t width) {
  Network network = {
      .model = {{"kind", "\"gpt\"", "GPT-2: a transformer that predicts the next token"},
                number("n_layer", layers, "blocks; GPT-2 has 12"),
                number("n_embd", width, "width; GPT-2 has 768"),
                number("n_head", heads, "attention heads; they divide n_embd"),
                number("n_positions", samples.sequence_length, "longest sequence: that of the data")},
      .no_decay = {"*.bias", "*.ln_*", "*wpe*"}};
  add_vocabulary(network.model, samples.vocabulary);
  return network;
}

// `type`: a model_type of the Llama family
Network llama(const TokenSamples& samples, const std::string& type) {
  constexpr int64_t kWidth = 128, kFeedForward = 344;  // 8/3 of the width, in steps of 8
  Network network = {
      .model = {{"kind", "\"llama\"", "a small transformer of the Llama family: Mistral, Qwen, ..."},
                {"model_type", toml_text(type), "llama, mistral, qwen2 or qwen3"},
                number("num_hidden_layers", 4, "blocks; Llama 3.2 1B has 16"),
                number("hidden_size", kWidth, "width; Llama 3.2 1B has 2048"),
                number("intermediate_size", kFeedForward, "width of the feed-forward blocks"),
                number("num_attention_heads", 4, "attention heads; they divide hidden_size"),
                number("num_key_value_heads", 2, "heads of keys and values; they divide the attention heads"),
                number("max_position_embeddings", samples.sequence_length,
                       "longest sequence: that of the data"),
                {"tie_word_embeddings", "true", "the output layer has the embeddings' weights"}},
      .no_decay = {"*norm*"}};
  if (type == "qwen2") network.no_decay.push_back("*.bias");
  add_vocabulary(network.model, samples.vocabulary);
  return network;
}

struct BertSize {
  int64_t layers, heads, width;
};

RecipeLines bert_lines(const char* kind, const char* comment, const BertSize& size, int64_t sequence_length,
                       int64_t vocabulary) {
  RecipeLines lines = {
      {"kind", kind, comment},
      number("num_hidden_layers", size.layers, "blocks; BERT has 12"),
      number("hidden_size", size.width, "width; BERT has 768"),
      number("num_attention_heads", size.heads, "attention heads; they divide hidden_size"),
      number("intermediate_size", 4 * size.width, "width of the feed-forward blocks"),
      number("max_position_embeddings", sequence_length, "longest sequence: that of the data")};
  add_vocabulary(lines, vocabulary);
  return lines;
}

Network bert(const Proposal& data, const BertSize& size) {
  Network network = {.no_decay = {"*.bias", "*LayerNorm*"}};
  if (const auto* masked = samples_of<MaskedTokenSamples>(data)) {
    network.model = bert_lines("\"bert_mlm\"", "masked tokens, which labels of -100 are not", size,
                               masked->sequence_length, masked->vocabulary);
    return network;
  }
  const auto& texts = *samples_of<TextSamples>(data);
  network.model = bert_lines("\"bert_classification\"",
                             texts.classes == 0 ? "a number for each sequence" : "a class for each sequence",
                             size, texts.sequence_length, texts.vocabulary);
  if (texts.classes > 0)
    network.model.push_back(number("num_classes", texts.classes, "labels of the data are below"));
  return network;
}

struct Choice {
  std::string name;
  std::function<Network(const Proposal&)> make;
};

std::vector<Choice> token_choices() {
  const auto made = [](auto make) {
    return [make](const Proposal& data) { return make(*samples_of<TokenSamples>(data)); };
  };
  std::vector<Choice> choices = {{"gpt", made([](const auto& tokens) { return gpt(tokens, 4, 4, 128); })}};
  for (const char* type : {"llama", "mistral", "qwen2", "qwen3"})
    choices.push_back({type, made([type](const auto& tokens) { return llama(tokens, type); })});
  choices.push_back({"gpt2", made([](const auto& tokens) { return gpt(tokens, 12, 12, 768); })});
  return choices;
}

std::vector<Choice> image_choices(const Proposal& data) {
  std::vector<Choice> choices;
  for (const int64_t depth : {18, 34, 50, 101, 152})
    choices.push_back({"resnet" + std::to_string(depth), [depth](const Proposal&) { return resnet(depth); }});
  std::vector<Choice> small;
  for (const int64_t depth : {20, 32, 44, 56, 110})
    small.push_back(
        {"resnet" + std::to_string(depth), [depth](const Proposal&) { return resnet_cifar(depth); }});
  choices.insert(are_pictures(data) ? choices.end() : choices.begin(), small.begin(), small.end());
  if (const auto* images = convolved(data); images->height == images->width) {
    choices.push_back({"vit", [](const Proposal& data) { return vit(data, 6, 3, 192); }});
    choices.push_back({"vit_b", [](const Proposal& data) { return vit(data, 12, 12, 768); }});
  }
  choices.push_back({"mlp", mlp});
  return choices;
}

// Those that take such samples; the first is the default.
std::vector<Choice> choices_for(const Proposal& data) {
  if (samples_of<TokenSamples>(data)) return token_choices();
  if (samples_of<MaskedTokenSamples>(data) || samples_of<TextSamples>(data))
    return {{"bert",
             [](const Proposal& data) {
               return bert(data, {4, 4, 128});
             }},
            {"bert-small",
             [](const Proposal& data) {
               return bert(data, {2, 2, 64});
             }},
            {"bert-base", [](const Proposal& data) {
               return bert(data, {12, 12, 768});
             }}};
  if (targets_of(data) == ImageTargets::kMask) return {{"unet", unet}};
  if (convolved(data)) return image_choices(data);
  return {{"mlp", mlp}};
}

}  // namespace

bool are_pictures(const Proposal& data) {
  const auto* images = convolved(data);
  return images && std::max(images->height, images->width) > kLargestSmallImage;
}

std::vector<std::string> networks_for(const Proposal& data) {
  std::vector<std::string> names;
  for (const Choice& choice : choices_for(data)) names.push_back(choice.name);
  return names;
}

std::string lightest_network(const Proposal& data, const std::string& chosen) {
  const std::vector<std::string> names = networks_for(data);
  const std::string& now = chosen.empty() ? names[0] : chosen;
  for (const char* lightest : {"resnet20", "bert-small", "gpt", "mlp"})
    if (std::ranges::find(names, lightest) != names.end()) return same_name(now, lightest) ? "" : lightest;
  return "";
}

Network network(const Proposal& data, const std::string& name) {
  const std::vector<Choice> choices = choices_for(data);
  for (const Choice& choice : choices) {
    if (!name.empty() && !same_name(choice.name, name)) continue;
    Network network = choice.make(data);
    network.has_momentum = network.has_momentum && targets_of(data) != ImageTargets::kValues;
    return network;
  }
  throw UserError("--model " + name + ": the networks for " + data.summary + " are " +
                  joined(networks_for(data)));
}

}  // namespace tutti

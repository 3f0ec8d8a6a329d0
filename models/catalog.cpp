#include "models/catalog.h"

#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

constexpr double kWidest = 1e9;  // the product of two widths fits an int64

Key in_channels() {
  return Key{"in_channels", kInteger, "none", "channels of an image; from the data when absent"}
      .at_least(1)
      .at_most(kWidest);
}

Key num_classes() {
  return Key{"num_classes", kInteger, "none", "number of classes; from the data when absent"}
      .at_least(1)
      .at_most(kWidest);
}

Entry mlp() {
  return {
      "mlp",
      "Fully connected layers with an activation between them, for classification.",
      {
          Key{"hidden", kIntegers, "[128, 64]", "widths of the hidden layers"}.at_least(1).at_most(kWidest),
          Key{"in_features", kInteger, "none", "width of a flattened sample; from the data when absent"}
              .at_least(1)
              .at_most(kWidest),
          num_classes(),
          Key{"activation", kText, "relu", "between the layers"}.one_of({"relu", "gelu", "tanh"}),
      }};
}

Entry resnet() {
  return {"resnet",
          "The residual networks for large images of He et al., 2015, as torchvision has them.",
          {Key{"depth", kInteger, "50", "layers"}.one_of({"18", "34", "50", "101"}),
           Key{"width", kInteger, "64", "channels of the stem; torchvision's networks have 64"}
               .at_least(1)
               .at_most(1e5),
           in_channels(), num_classes()}};
}

Entry resnet_cifar() {
  return {"resnet_cifar",
          "The residual network for small images of He et al., 2015, section 4.2.",
          {Key{"depth", kInteger, "20", "layers"}.one_of({"20", "32", "44", "56", "110"}),
           Key{"width", kInteger, "16", "channels of the first stage; each next one has twice as many"}
               .at_least(1)
               .at_most(kWidest),
           in_channels(), num_classes()}};
}

Entry gpt() {
  return {
      "gpt",
      "GPT-2: pre-norm transformer blocks, learned positions, the output tied to the token embedding.",
      {
          Key{"vocab_size", kInteger, "256", "tokens in the vocabulary; 256 for bytes"}.at_least(2).at_most(
              kWidest),
          Key{"n_positions", kInteger, "256", "longest sequence"}
              .also_named({"max_sequence_length", "max_seq_len", "n_ctx"})
              .at_least(1)
              .at_most(kWidest),
          Key{"n_embd", kInteger, "256", "width of the model"}
              .also_named({"d_model"})
              .at_least(1)
              .at_most(kWidest),
          Key{"n_layer", kInteger, "4", "blocks"}.also_named({"n_layers"}).at_least(1).at_most(10000),
          Key{"n_head", kInteger, "4", "attention heads; they divide n_embd"}
              .also_named({"n_heads"})
              .at_least(1)
              .at_most(kWidest),
          Key{"dropout", kNumber, "0", "of embeddings, attention and residual branches"}
              .at_least(0)
              .less_than(1),
      }};
}

Key probability(const char* name, const char* fallback, const char* doc) {
  return Key{name, kNumber, fallback, doc}.at_least(0).less_than(1);
}

Key size(const char* name, const char* fallback, const char* doc) {
  return Key{name, kInteger, fallback, doc}.at_least(1).at_most(kWidest);
}

// transformers' BertConfig: names, and defaults of bert-base-uncased.
std::vector<Key> bert_keys() {
  return {
      size("vocab_size", "30522", "tokens in the vocabulary"),
      size("hidden_size", "768", "width of the model"),
      Key{"num_hidden_layers", kInteger, "12", "blocks"}.at_least(1).at_most(10000),
      size("num_attention_heads", "12", "attention heads; they divide hidden_size"),
      size("intermediate_size", "3072", "width of the feed-forward blocks"),
      Key{"hidden_act", kText, "gelu", "activation; gelu_new is the tanh approximation"}.one_of(
          {"gelu", "gelu_new", "relu", "silu", "tanh"}),
      probability("hidden_dropout_prob", "0.1", "dropout of embeddings and residual branches"),
      probability("attention_probs_dropout_prob", "0.1", "dropout of attention probabilities"),
      size("max_position_embeddings", "512", "longest sequence")
          .also_named({"max_sequence_length", "max_seq_len"}),
      size("type_vocab_size", "2", "token types (segments)"),
      Key{"initializer_range", kNumber, "0.02", "standard deviation of initial weights"}.at_least(0),
      Key{"layer_norm_eps", kNumber, "1e-12", "added to variances"}.more_than(0),
      Key{"pad_token_id", kInteger, "0", "token of padding, whose embedding is not trained by lookups"}
          .at_least(0),
  };
}

Entry bert_mlm() {
  return {"bert_mlm",
          "BERT for masked language modelling: of tokens with the transform mask_tokens, or of arrays "
          "'input_ids' and 'labels'; 'attention_mask' and 'token_type_ids' may be there too.",
          bert_keys()};
}

Entry bert_classification() {
  Entry entry{"bert_classification",
              "BERT for classification of sequences: reads the arrays of bert_mlm, and classes as labels.",
              bert_keys()};
  entry.keys.push_back(size("num_classes", "2", "number of classes").also_named({"num_labels"}));
  entry.keys.push_back(
      probability("classifier_dropout", "none", "before the classifier; default: hidden_dropout_prob"));
  return entry;
}

Entry sequential() {
  return {"sequential",
          "Layers one after another, described as PyTorch prints them, for classification.",
          {Key{"layers", kTexts, "",
               "for example [\"Flatten()\", \"Linear(64, 32)\", \"ReLU()\", \"Linear(32, 10)\"]; there are "
               "Linear, "
               "Conv1d, Conv2d, Conv3d, BatchNorm1d, BatchNorm2d, BatchNorm3d, LayerNorm, GroupNorm, ReLU, "
               "LeakyReLU, GELU, SiLU, Sigmoid, Tanh, "
               "Identity, Flatten, MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Dropout"}}};
}

}  // namespace

Catalog model_catalog() {
  return {
      .section = "model",
      .noun = "model",
      .doc = "The model to train.",
      .keys = {{"weights", kPath, "none",
                "initial weights by parameter name: a .safetensors or .h5 file; drawn from the seed when "
                "absent"},
               Key{"loss", kText, "none",
                   "of a classifier, by composer.loss's names; soft_cross_entropy when absent"}
                   .one_of({"soft_cross_entropy", "binary_cross_entropy_with_logits"}),
               {"ignore_index", kInteger, "-100",
                "a target that counts in no loss and no metric; other numbers become -100 as the data are "
                "read"}},
      .entries = {mlp(),
                  resnet(),
                  resnet_cifar(),
                  gpt(),
                  bert_mlm(),
                  bert_classification(),
                  sequential(),
                  plugin_entry("model"),
                  {"program", "The model that a C++ program passes to Trainer (commands/trainer.h)."}}};
}

}  // namespace tutti

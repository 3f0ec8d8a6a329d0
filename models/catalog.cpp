#include "models/catalog.h"

#include "recipe/catalog.h"

namespace tutti {
namespace {

using enum KeyType;

constexpr double kWidest = 1e9;  // the product of two widths fits an int64

Entry mlp() {
  return {
      "mlp",
      "Fully connected layers with an activation between them, for classification.",
      {
          Key{"hidden", kIntegers, "[128, 64]", "widths of the hidden layers"}.at_least(1).at_most(kWidest),
          Key{"in_features", kInteger, "none", "width of a flattened sample; from the data when absent"}
              .at_least(1)
              .at_most(kWidest),
          Key{"num_classes", kInteger, "none", "number of classes; from the data when absent"}
              .at_least(1)
              .at_most(kWidest),
          Key{"activation", kText, "relu", "between the layers"}.one_of({"relu", "gelu", "tanh"}),
      }};
}

Entry resnet_cifar() {
  return {"resnet_cifar",
          "The residual network for small images of He et al., 2015, section 4.2.",
          {
              Key{"depth", kInteger, "20", "layers"}.one_of({"20", "32", "44", "56", "110"}),
              Key{"width", kInteger, "16", "channels of the first stage; each next one has twice as many"}
                  .at_least(1)
                  .at_most(kWidest),
              Key{"in_channels", kInteger, "none", "channels of an image; from the data when absent"}
                  .at_least(1)
                  .at_most(kWidest),
              Key{"num_classes", kInteger, "none", "number of classes; from the data when absent"}
                  .at_least(1)
                  .at_most(kWidest),
          }};
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

Entry sequential() {
  return {"sequential",
          "Layers one after another, described as PyTorch prints them, for classification.",
          {Key{"layers", kTexts, "",
               "for example [\"Flatten()\", \"Linear(64, 32)\", \"ReLU()\", \"Linear(32, 10)\"]; there are "
               "Linear, "
               "Conv2d, BatchNorm1d, BatchNorm2d, LayerNorm, ReLU, LeakyReLU, GELU, SiLU, Sigmoid, Tanh, "
               "Identity, Flatten, MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, Dropout"}}};
}

}  // namespace

Catalog model_catalog() {
  return {.section = "model",
          .noun = "model",
          .doc = "The model to train.",
          .keys = {{"weights", kPath, "none",
                    "initial weights by parameter name: a .safetensors or .h5 file; drawn from the seed when "
                    "absent"},
                   Key{"loss", kText, "none",
                       "of a classifier, by composer.loss's names; soft_cross_entropy when absent"}
                       .one_of({"soft_cross_entropy", "binary_cross_entropy_with_logits"})},
          .entries = {mlp(),
                      resnet_cifar(),
                      gpt(),
                      sequential(),
                      plugin_entry("model"),
                      {"program", "The model that a C++ program passes to Trainer (commands/trainer.h)."}}};
}

}  // namespace tutti

#include "models/zoo/catalog.h"

#include <memory>
#include <string>
#include <utility>

#include "models/loss_options.h"
#include "models/zoo/options.h"
#include "recipe/catalog.h"

namespace tutti {

using enum KeyType;

Catalog model_catalog() {
  std::vector<Entry> entries = ModelKinds::entries();
  entries.push_back(plugin_entry("model"));
  entries.push_back(
      {"hf",
       "The model of a folder of Hugging Face's transformers: config.json names it (gpt2: the kind gpt; "
       "llama, mistral, qwen2 and qwen3: llama; bert: bert_mlm, bert_classification or bert_contrastive), "
       "and its weights are read; or of diffusers: a UNet2DModel or the pipeline with one. The recipe of the "
       "run has that kind.",
       {Key{"path", kPath, "", "the folder, or its name in Hugging Face's cache on this machine"}.also_named(
            {"pretrained_model_name_or_path"}),
        Key{"head", kText, "none", "of a bert; as in config.json when absent"}.one_of(
            {"mlm", "classification", "contrastive"}),
        Key{"num_classes", kInteger, "none",
            "of a classification; as in config.json when absent, as its loss (problem_type)"}
            .at_least(1),
        Key{"pooling", kText, "none", "of head = \"contrastive\": the embedding of a text"}.one_of(
            {"mean", "cls"}),
        Key{"temperature", kNumber, "none", "of head = \"contrastive\""}.more_than(0),
        {"symmetric", kBoolean, "none", "of head = \"contrastive\""},
        {"simcse", kBoolean, "none", "of head = \"contrastive\""},
        Key{"dropout", kNumber, "none", "of all layers; as in config.json when absent"}.at_least(0).less_than(
            1)}});
  entries.push_back({"program", "The model that a C++ program passes to Trainer (commands/trainer.h)."});
  Catalog catalog = section_catalog<ModelKeys>();
  catalog.noun = "model";
  catalog.entries = std::move(entries);
  return catalog;
}

Kind<LaterTrained> LaterTrained::kind() {
  return {"model.unfreeze",
          "Parameters that are frozen at first, and trained from a time on; where several match, the first "
          "counts. Learning rates follow the schedule; the optimizer's state begins at that time.",
          {option("match", &LaterTrained::match, "name patterns: [\"layer4.*\"]").required(),
           option("at", &LaterTrained::at, "\"2ep\", \"500ba\", \"0.3dur\"").required()}};
}

Kind<ModelKeys> ModelKeys::kind() {
  using Keys = ModelKeys;
  static const auto losses = std::make_shared<const Catalog>(loss_catalog());
  return {
      "model",
      "The model to train.",
      {option("weights", &Keys::weights,
              "initial weights by parameter name, drawn from the seed when absent: a file (.safetensors, "
              ".h5, .pt, .pth, .bin, .ckpt), an .index.json of such files, a folder of Hugging Face's, or "
              "the name of a model in this machine's caches of torch hub and Hugging Face: \"resnet18\"")
           .as(kPath),
       option("weights_strict", &Keys::weights_strict,
              "false: tensors that only the file or only the model has are ignored, with a warning"),
       option("weights_ignore", &Keys::weights_ignore,
              "patterns of tensors that are not read, by their name in the file or in the model: "
              "[\"fc\", \"*.bias\"]"),
       option("weights_rename", &Keys::weights_rename,
              "names in the file, and those of the model in their place; a * is the same text in both: "
              "{ \"encoder.*\" = \"bert.encoder.*\" }")
           .as(kNamedTexts),
       option("freeze", &Keys::freeze,
              "patterns of parameters that are not trained: [\"embeddings.*\"]; running statistics still "
              "change")
           .as(kTexts),
       option("unfreeze", &Keys::unfreeze,
              "[[model.unfreeze]]: parameters that are not trained at first, and the times from which they "
              "are trained")
           .each(std::make_shared<const Catalog>(section_catalog<LaterTrained>()))
           .as(KeyType::kTables),
       option("loss", &Keys::loss, "of a model that is trained against 'target'; cross_entropy when absent")
           .each(losses),
       option("ignore_index", &Keys::ignore_index,
              "a target that counts in no loss and no metric; other numbers become -100 as the data are "
              "read")}};
}

}  // namespace tutti
